"""A pipeline's pod, asked over HTTP."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest

from barnabas_operator.progress import Progress, ask


class _Pod(BaseHTTPRequestHandler):
    reported = b""

    def do_GET(self) -> None:
        """Whatever the test wants told."""
        self.send_response(200)
        self.end_headers()
        self.wfile.write(self.reported)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the base's name
        """Nothing to tell."""


@pytest.fixture
def address() -> Iterator[str]:
    """Where the pod answers."""
    with HTTPServer(("127.0.0.1", 0), _Pod) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield f"http://127.0.0.1:{server.server_address[1]}/status"
        server.shutdown()
        thread.join()


@pytest.mark.parametrize(
    ("reported", "progress"),
    [
        (b"{}", Progress(phase="Starting")),
        (b'{"phase": "Running", "rows": 5, "rowsPerSecond": 1.26, "lag": 2, "lastBatchId": 0}',
         Progress(phase="Running", rows=5, rows_per_second=1.3, lag=2, last_batch_id=0)),
        (b'{"phase": "Failed", "message": "m", "lag": {"a": 1, "b": {"0": 2}}}',
         Progress(phase="Failed", message="m", lag=3)),
        (b"not yet", None),
        (b"[]", None),
        (b'{"rows": "many"}', None),
        (b'{"rows": 1e999}', None),
        (b'{"rows": 9223372036854775808}', None),
        (b'{"rowsPerSecond": NaN}', None),
        (b'{"lag": []}', Progress(phase="Starting")),
        (b'{"lag": [1]}', None),
        (b'{"phase": "not a word"}', None),
        (b'{"message": "\\ud800"}', Progress(phase="Starting", message="?")),
    ],
)  # fmt: skip
def test_answers(address: str, reported: bytes, progress: Progress | None) -> None:
    """What is not told is as at the beginning; what is no status is no answer."""
    _Pod.reported = reported
    assert ask(address) == progress


def test_a_missing_pod_is_no_error() -> None:
    """A pod that is not there does not answer, which is no error."""
    assert ask("http://127.0.0.1:1/status") is None
