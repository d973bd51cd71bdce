"""Answers of pods that may run anything."""

from __future__ import annotations

import contextlib
import socket
import socketserver
import threading
from collections.abc import Iterator
from typing import Any

import pytest

from barnabas_operator.answers import get_json
from tests.waiting import ANSWER, RUN, seconds


@contextlib.contextmanager
def pod(*said: bytes, again: bool = False) -> Iterator[str]:
    """A pod that says this to each request, `again` until the other side hangs up; its address."""

    class Handler(socketserver.BaseRequestHandler):
        def handle(self) -> None:
            with contextlib.suppress(OSError):
                self.request.recv(4096)
                while True:
                    for each in said:
                        self.request.sendall(each)
                    if not again:
                        return

    with socketserver.ThreadingTCPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_address[1]}/status"
        finally:
            server.shutdown()
            thread.join()


def test_an_answer() -> None:
    """Whatever its status, unless one of some is asked for."""
    with pod(b"HTTP/1.1 503 x\r\nContent-Length: 2\r\n\r\n{}") as url:
        assert get_json(url, seconds(ANSWER)) == {}
        assert get_json(url, seconds(ANSWER), statuses=range(200, 300)) is None


@pytest.mark.parametrize(
    ("said", "again"),
    [
        # Informational answers may be any number.
        ([b"HTTP/1.1 100 Continue\r\n\r\n"], True),
        ([b"HTTP/1.1 200 OK\r\n\r\n" + b"1" * 4096], True),
    ],
)
def test_an_answer_without_end_has_a_deadline(said: list[bytes], again: bool) -> None:
    """The pass of a cluster waits for it, and other clusters for the operator."""
    with pod(*said, again=again) as url:
        assert get_json(url, 0.2) is None


def test_a_name_server_that_does_not_answer_costs_no_more_than_the_deadline(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Admin ports with TLS, and pipelines, are reached by name."""
    answered = threading.Event()

    def hang(*_: Any, **_named: Any) -> Any:
        answered.wait(seconds(RUN))
        answered.set()
        raise OSError("no answer")

    monkeypatch.setattr(socket, "getaddrinfo", hang)
    try:
        assert get_json("http://absent.example/status", 0.2) is None
        assert not answered.is_set()
    finally:
        answered.set()


@pytest.mark.parametrize("host", ["a" * 64, "a..b"])
def test_an_invalid_host_gives_no_answer(host: str) -> None:
    """No name server is asked for it."""
    assert get_json(f"http://{host}/status", seconds(ANSWER)) is None


@pytest.mark.parametrize(
    "body", [b"[" * 100_000, b"\xff", b"1" * 5000], ids=["nested", "no text", "a long number"]
)
def test_unparsable_bodies_are_no_answer(body: bytes) -> None:
    """Nested too deeply is none either."""
    with pod(b"HTTP/1.1 200 OK\r\n\r\n" + body) as url:
        assert get_json(url, seconds(ANSWER)) is None


def test_a_port_without_http_gives_no_answer() -> None:
    """As of a port that serves something else."""
    with pod(b"\x00\x01\r\n\r\n") as url:
        assert get_json(url, seconds(ANSWER)) is None


def test_an_answer_leads_nowhere_else() -> None:
    """The operator reaches more than who may run a pod."""
    with pod(b"HTTP/1.1 200 OK\r\n\r\n{}") as other:
        moved = f"HTTP/1.1 302 Found\r\nLocation: {other}\r\nContent-Length: 0\r\n\r\n".encode()
        with pod(moved) as url:
            assert get_json(url, seconds(ANSWER)) is None
