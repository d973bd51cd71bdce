"""What an admin port answers, and what is made of it."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any

import pytest

from barnabas_operator.standing import Standing, has_caught_up, may_restart


@contextmanager
def answering(status: int, body: bytes) -> Iterator[str]:
    """An admin port that answers everything so; its address."""

    class Answer(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(status)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: Any) -> None:  # noqa: A002
            pass

    with HTTPServer(("127.0.0.1", 0), Answer) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()
            thread.join()


def test_yes() -> None:
    """Nothing is at risk, and everything is in sync."""
    with answering(200, b'{"mayRestart": true, "caughtUp": true}') as url:
        assert may_restart(url) == has_caught_up(url) == Standing(yes=True)


def test_no_with_the_partitions_at_risk() -> None:
    """The first are named, the rest are counted."""
    partitions = [
        {"topic": "orders", "partition": number, "reason": "0 other in-sync replicas"}
        for number in range(5)
    ]
    told = {"mayRestart": False, "atRisk": {"count": 7, "partitions": partitions}}
    with answering(503, json.dumps(told).encode()) as url:
        found = may_restart(url)
    assert found.reason.startswith("orders-0 has 0 other in-sync replicas; orders-1 has")
    assert found.reason.endswith("orders-2 has 0 other in-sync replicas and 4 more")
    with answering(503, b'{"caughtUp": false, "percent": 66.7}') as url:
        assert has_caught_up(url).reason == "66.7 % of its replicas are in sync"


@pytest.mark.parametrize(("status", "body"), [(200, b"live\n"), (404, b"no"), (200, b"[]")])
def test_whatever_else_is_no_yes(status: int, body: bytes) -> None:
    """A broker that does not say that it may be restarted may not."""
    with answering(status, body) as url:
        assert may_restart(url).reason == "it does not say whether it may be restarted"
        assert not has_caught_up(url).yes


def test_nobody_there() -> None:
    """As little."""
    with answering(200, b"") as url:
        pass
    assert not may_restart(url).yes
