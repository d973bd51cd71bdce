"""What an admin port answers, and what is made of it."""

from __future__ import annotations

import json
import socket
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest

from barnabas_operator.restart_check import (
    AdminAccess,
    CheckResult,
    in_sync,
    recovery,
    restart_check,
)
from tests.broker.security.test_admin_access import TOKEN, files
from tests.broker.server.running import running_node
from tests.waiting import wait_for


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
        assert restart_check(url) == in_sync(url) == CheckResult(ok=True)


def test_no_with_the_partitions_at_risk() -> None:
    """The first are named, the rest are counted."""
    partitions = [
        {"topic": "orders", "partition": number, "reason": "0 other in-sync replicas"}
        for number in range(5)
    ]
    reported = {"mayRestart": False, "atRisk": {"count": 7, "partitions": partitions}}
    with answering(503, json.dumps(reported).encode()) as url:
        found = restart_check(url)
    assert found.reason.startswith("orders-0 has 0 other in-sync replicas; orders-1 has")
    assert found.reason.endswith("orders-2 has 0 other in-sync replicas and 4 more")
    with answering(503, b'{"caughtUp": false, "percent": 66.7}') as url:
        assert in_sync(url).reason == "66.7 % of its replicas are in sync"


@pytest.mark.parametrize(("status", "body"), [(200, b"live\n"), (404, b"no"), (200, b"[]")])
def test_whatever_else_is_no_yes(status: int, body: bytes) -> None:
    """A broker that does not say that it may be restarted may not."""
    with answering(status, body) as url:
        assert restart_check(url).reason == "GET /restart: no answer"
        assert not in_sync(url).ok


@pytest.mark.parametrize("risk", ["{}", '{"count": 1, "partitions": [{}]}', "[]", "7"])
def test_an_odd_no_is_a_no(risk: str) -> None:
    """Whatever listens in the pod cannot end the pass."""
    with answering(503, f'{{"mayRestart": false, "atRisk": {risk}}}'.encode()) as url:
        found = restart_check(url)
    assert found == CheckResult(ok=False, reason="GET /restart: not an answer of a broker")


def test_a_malformed_http_response_is_not_safe_to_restart() -> None:
    """As above."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        thread = threading.Thread(target=_say, args=(server, b"\x00\x01 not http\r\n\r\n"))
        thread.start()
        assert not restart_check(f"http://127.0.0.1:{server.getsockname()[1]}").ok
        thread.join()


def _say(server: socket.socket, text: bytes) -> None:
    connection, _ = server.accept()
    with connection:
        connection.recv(4096)
        connection.sendall(text)


def test_an_unreachable_broker_is_not_safe_to_restart() -> None:
    """No response is no permission."""
    with answering(200, b"") as url:
        pass
    assert not restart_check(url).ok


@pytest.mark.parametrize(
    ("status", "body", "line"),
    [
        (200, b'{"logs": 9, "remainingLogsToRecover": 3, "dirs": []}', "3 of 9 logs remain"),
        (200, b'{"logs": 9, "remainingLogsToRecover": 0}', ""),
        (404, b"no such path", ""),
        (200, b"[]", ""),
    ],
)  # fmt: skip
def test_progress_of_log_recovery(status: int, body: bytes, line: str) -> None:
    """A broker that does not know the path says nothing, which is no trouble."""
    with answering(status, body) as url:
        assert recovery(url) == line


def test_a_port_with_token_and_tls(tmp_path: Path) -> None:
    """A broker's own port: without the token there is no answer, and so no yes."""
    with running_node(tmp_path / "data", files(tmp_path)) as node:
        assert node.admin is not None
        url = node.admin.url
        trusting = ssl.create_default_context(cafile=str(tmp_path / "authority.pem"))
        access = AdminAccess(token=TOKEN, tls=trusting)
        assert TOKEN not in repr(access)
        wait_for("a yes", lambda: in_sync(url, access), until=lambda found: found.ok)
        assert restart_check(url, access).ok
        assert recovery(url, access) == ""
        for lacking in (AdminAccess(tls=trusting), AdminAccess(token=TOKEN)):
            assert not restart_check(url, lacking).ok
            assert not in_sync(url, lacking).ok
