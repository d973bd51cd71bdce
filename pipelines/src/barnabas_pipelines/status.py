"""What a pipeline says of itself: a JSON file on its volume, and the same over HTTP at /status.

A Spark pipeline has no consumer group: its progress lives in its checkpoint, and Kafka does not
know its lag. This is where it can be seen.
"""

from __future__ import annotations

import json
import math
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from enum import StrEnum
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, Final

from barnabas_pipelines.batches import write_atomically
from barnabas_pipelines.errors import PipelineError


class Phase(StrEnum):
    """What a pipeline is doing."""

    STARTING = "Starting"
    WAITING_FOR_BROKER = "WaitingForBroker"
    WAITING_FOR_AUTHENTICATION = "WaitingForAuthentication"
    WAITING_FOR_AUTHORIZATION = "WaitingForAuthorization"
    WAITING_FOR_TOPICS = "WaitingForTopics"
    RUNNING = "Running"
    STOPPING = "Stopping"
    STOPPED = "Stopped"  # On request.
    COMPLETED = "Completed"  # It has all that was there when it began, and was to do no more.
    FAILED = "Failed"


@dataclass(frozen=True, slots=True, kw_only=True)
class Status:
    """A pipeline as it is now; counts are since the start of the process."""

    name: str
    phase: Phase = Phase.STARTING
    batches: int = 0
    rows: int = 0
    rows_per_second: float = 0.0  # In the last batch; 0 when idle.
    lag: int | None = None  # Records in the topics and not yet in files; None: not known yet.
    last_batch_id: int = -1
    updated: str = ""  # When Spark last said something, as ISO 8601 in UTC.
    message: str = ""

    def as_json(self) -> str:
        """One JSON object, on one line."""
        fields = {
            "name": self.name,
            "phase": self.phase.value,
            "batches": self.batches,
            "rows": self.rows,
            "rowsPerSecond": self.rows_per_second,
            "lag": self.lag,
            "lastBatchId": self.last_batch_id,
            "updated": self.updated,
            "message": self.message,
        }
        return json.dumps(fields) + "\n"


def after(status: Status, progress: Mapping[str, Any]) -> Status:
    """The status after one of Spark's progress reports (StreamingQueryProgress as JSON)."""
    rows = int(progress.get("numInputRows", 0))
    rate = float(progress.get("processedRowsPerSecond") or 0.0)
    reported = replace(
        status,
        rows_per_second=round(rate, 1) if rows and math.isfinite(rate) else 0.0,
        lag=lag(progress),
        updated=str(progress.get("timestamp", "")),
    )
    if rows == 0:  # A report of nothing new has the id of a batch to come.
        return reported
    return replace(
        reported,
        batches=status.batches + 1,
        rows=status.rows + rows,
        last_batch_id=int(progress["batchId"]),
    )


def lag(progress: Mapping[str, Any]) -> int:
    """How many offsets the ends of the topics are ahead of the batch."""
    behind = 0
    for source in progress.get("sources", ()):
        latest = _offsets(source.get("latestOffset"))
        done = _offsets(source.get("endOffset"))
        for topic, partitions in latest.items():
            for partition, end in partitions.items():
                behind += max(0, end - done.get(topic, {}).get(partition, end))
    return behind


def _offsets(value: object) -> Mapping[str, Mapping[str, int]]:
    """Spark has offsets as an object, or as the text of one."""
    found = json.loads(value) if isinstance(value, str) else value
    return found if isinstance(found, Mapping) else {}


class Board:
    """The latest status, for the file and for HTTP."""

    def __init__(self, path: Path, status: Status) -> None:
        self._path = path
        self.status = status

    def show(self, status: Status) -> None:
        """Take a status, and write it down if it is another; raises PipelineError if it cannot."""
        if status == self.status and self._path.exists():
            return
        self.status = status
        try:
            write_atomically(self._path, status.as_json())
        except OSError as error:
            raise PipelineError(f"cannot write {self._path}: {error.strerror}") from error

    def phase(self, phase: Phase, message: str = "") -> None:
        """The pipeline does something else now."""
        self.show(replace(self.status, phase=phase, message=message))


PATHS: Final = ("/status", "/status/")


@contextmanager
def served(board: Board, address: tuple[str, int]) -> Iterator[tuple[str, int]]:
    """Serve GET /status at host and port (0: a free one) meanwhile; yields where.

    Raises PipelineError where the address cannot be had.
    """

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            found = self.path.split("?")[0] in PATHS
            body = board.status.as_json().encode() if found else b"there is only /status\n"
            self.send_response(200 if found else 404)
            self.send_header("Content-Type", "application/json" if found else "text/plain")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            """Probes ask every few seconds: not worth a line."""

    host, port = address
    try:
        server = ThreadingHTTPServer((host, port), Handler)
    except OSError as error:
        text = f"cannot serve the status at {host}:{port}: {error.strerror}; name another address"
        raise PipelineError(text) from error
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, name="status", daemon=True)
    thread.start()
    try:
        yield host, int(server.server_address[1])
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
