"""Requests to identity providers that do not answer as they should: bounded in time."""

from __future__ import annotations

import socket
import threading
from contextlib import suppress
from typing import Any

import pytest

from barnabas_broker.server.network import identity_provider
from barnabas_broker.server.network.identity_provider import fetch
from tests.waiting import RUN, seconds


def test_a_provider_that_drips(monkeypatch: pytest.MonkeyPatch) -> None:
    """A header line now and then does not put off the end of a fetch, nor leaves it a thread."""
    monkeypatch.setattr(identity_provider, "FETCH_TIMEOUT_S", 0.5)
    ended = threading.Event()
    with socket.create_server(("127.0.0.1", 0)) as server:

        def drip() -> None:
            connection, _ = server.accept()
            with connection, suppress(OSError):
                connection.sendall(b"HTTP/1.1 200 OK\r\n")
                while not ended.wait(0.05):
                    connection.sendall(b"X-Slow: 1\r\n")

        thread = threading.Thread(target=drip)
        thread.start()
        try:
            with pytest.raises(TimeoutError, match="not received in"):
                fetch(f"http://127.0.0.1:{server.getsockname()[1]}/", None, bytes_max=100)
        finally:
            ended.set()
            thread.join()


def test_a_provider_that_takes_its_time_to_connect_and_then_drips(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The connection is there just when time is over: it ends all the same."""
    monkeypatch.setattr(identity_provider, "FETCH_TIMEOUT_S", 0.2)
    ended, over, connect = threading.Event(), threading.Event(), socket.create_connection
    end = identity_provider._Deadline._end

    def slow(address: tuple[str, int], timeout: float) -> socket.socket:
        connection = connect(address, seconds(RUN))
        assert over.wait(seconds(RUN))
        return connection

    def noted(deadline: identity_provider._Deadline) -> None:
        end(deadline)
        over.set()

    monkeypatch.setattr(socket, "create_connection", slow)
    monkeypatch.setattr(identity_provider._Deadline, "_end", noted)
    with socket.create_server(("127.0.0.1", 0)) as server:

        def drip() -> None:
            connection, _ = server.accept()
            with connection, suppress(OSError):
                connection.sendall(b"HTTP/1.1 200 OK\r\n\r\n")
                for _ in range(100):
                    if ended.wait(0.05):
                        return
                    connection.sendall(b" ")

        thread = threading.Thread(target=drip)
        thread.start()
        try:
            with pytest.raises(OSError, match="not received in"):
                fetch(f"http://127.0.0.1:{server.getsockname()[1]}/", None, bytes_max=100)
            assert not ended.is_set()
            assert thread.is_alive()
        finally:
            ended.set()
            thread.join()


def test_a_name_server_that_does_not_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    """The look-up counts, too."""
    answered = threading.Event()

    def hang(*_: Any, **_named: Any) -> Any:
        answered.wait(seconds(RUN))
        raise OSError("no answer")

    monkeypatch.setattr(identity_provider, "FETCH_TIMEOUT_S", 0.2)
    monkeypatch.setattr(socket, "getaddrinfo", hang)
    try:
        with pytest.raises(OSError, match=r"not received|timed out|urlopen"):
            fetch("http://absent.example/keys", None, bytes_max=100)
    finally:
        answered.set()
