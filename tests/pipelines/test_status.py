"""What a pipeline says of itself, out of what Spark says of it."""

from __future__ import annotations

import http.client
import json
import socket
from pathlib import Path
from typing import Any

import pytest

from barnabas_pipelines.errors import PipelineError
from barnabas_pipelines.status import Board, Phase, Status, after, lag, served
from tests.waiting import ANSWER, seconds


def progress(batch: int, rows: int, **changes: Any) -> dict[str, Any]:
    """A report of Spark's, with the fields we read."""
    return {
        "batchId": batch,
        "timestamp": f"2026-01-01T00:00:{batch:02}.000Z",
        "numInputRows": rows,
        "processedRowsPerSecond": 123.456,
        "sources": [
            {
                "endOffset": {"packages": {"0": 10, "1": 20}},
                "latestOffset": {"packages": {"0": 15, "1": 20}},
            }
        ],
    } | changes


def test_reports_add_up() -> None:
    """Batches and rows are counted; rate, lag and id are the last batch's."""
    status = Status(name="p", last_batch_id=6)
    for report in (progress(7, 100), progress(8, 20)):
        status = after(status, report)
    assert status == Status(
        name="p",
        batches=2,
        rows=120,
        rows_per_second=123.5,
        lag=5,
        last_batch_id=8,
        updated="2026-01-01T00:00:08.000Z",
    )


def test_a_report_of_nothing_new_is_no_batch() -> None:
    """It has the id of a batch to come, and its rate is none."""
    status = after(after(Status(name="p"), progress(0, 100)), progress(1, 0))
    assert (status.batches, status.rows, status.last_batch_id) == (1, 100, 0)
    assert status.rows_per_second == 0.0


def test_offsets_may_come_as_text() -> None:
    """Or not at all, before anything is known."""
    source = {"endOffset": '{"t":{"0":1}}', "latestOffset": '{"t":{"0":4,"1":9}}'}
    assert lag({"sources": [source]}) == 3
    assert lag({"sources": [{"endOffset": None, "latestOffset": None}]}) == 0
    assert lag({}) == 0


@pytest.mark.parametrize("rate", [None, float("nan"), float("inf")])
def test_a_rate_that_is_no_number_is_none(rate: float | None) -> None:
    """JSON has no infinity."""
    status = after(Status(name="p"), progress(0, 1, processedRowsPerSecond=rate))
    assert status.rows_per_second == 0.0


def test_a_status_is_json_in_the_apis_words(tmp_path: Path) -> None:
    """camelCase, and null for what is not known yet."""
    board = Board(tmp_path / "status.json", Status(name="p"))
    board.phase(Phase.WAITING_FOR_TOPICS, "the cluster has no topic t")
    assert json.loads((tmp_path / "status.json").read_text()) == {
        "name": "p",
        "phase": "WaitingForTopics",
        "batches": 0,
        "rows": 0,
        "rowsPerSecond": 0.0,
        "lag": None,
        "lastBatchId": -1,
        "updated": "",
        "message": "the cluster has no topic t",
    }


def test_a_status_is_written_when_it_changes(tmp_path: Path) -> None:
    """An idle pipeline does not write."""
    path = tmp_path / "status.json"
    board = Board(path, Status(name="p"))
    board.show(board.status)
    first = path.stat().st_ino
    board.show(Status(name="p"))
    assert path.stat().st_ino == first
    board.phase(Phase.RUNNING)
    assert json.loads(path.read_text())["phase"] == "Running"


def test_a_status_that_cannot_be_written_is_an_error(tmp_path: Path) -> None:
    """With the path."""
    board = Board(tmp_path / "absent" / "status.json", Status(name="p"))
    with pytest.raises(PipelineError, match=r"cannot write .*status\.json: No such file"):
        board.phase(Phase.RUNNING)


def test_a_status_is_served(tmp_path: Path) -> None:
    """As it is at the time; other paths are told where it is."""
    board = Board(tmp_path / "status.json", Status(name="p"))
    with served(board, ("127.0.0.1", 0)) as (host, port):
        connection = http.client.HTTPConnection(host, port, timeout=seconds(ANSWER))
        for phase in (Phase.RUNNING, Phase.STOPPING):
            board.phase(phase)
            connection.request("GET", "/status")
            answer = connection.getresponse()
            assert answer.headers["Content-Type"] == "application/json"
            assert json.load(answer)["phase"] == phase
        connection.request("GET", "/")
        answer = connection.getresponse()
        assert (answer.status, answer.read()) == (404, b"there is only /status\n")
        connection.close()


def test_an_address_that_is_taken_is_said(tmp_path: Path) -> None:
    """Two pipelines on a laptop want the same port."""
    board = Board(tmp_path / "status.json", Status(name="p"))
    with socket.create_server(("127.0.0.1", 0)) as taken:
        address = taken.getsockname()
        with (
            pytest.raises(PipelineError, match=f"{address[1]}: Address already in use; name"),
            served(board, address),
        ):
            pass
