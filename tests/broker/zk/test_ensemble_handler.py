"""How long silence is borne; `test_against_apache` has a session behind it."""

import socket
from collections.abc import Iterator
from contextlib import ExitStack
from itertools import repeat

import pytest

from barnabas_broker.zk import ensemble_handler
from barnabas_broker.zk.ensemble_handler import EnsembleHandler

LONG_S = 1000.0
"""No test gets there: what is waited for so long is waited for within the timeout."""


@pytest.fixture
def handler(monkeypatch: pytest.MonkeyPatch) -> EnsembleHandler:
    """One that is impatient."""
    monkeypatch.setattr(ensemble_handler, "TIMEOUT_MIN_S", 0.01)
    return EnsembleHandler()


@pytest.fixture
def silent() -> Iterator[socket.socket]:
    """It accepts connections and says nothing by itself."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield server


def test_a_silent_server_is_left(handler: EnsembleHandler, silent: socket.socket) -> None:
    """As often as nothing is said, at first."""
    for _ in repeat(None, 3):
        with handler.create_connection(silent.getsockname(), timeout=LONG_S) as connection:
            assert handler.select([connection], [], [], LONG_S) == ([], [], [])


def test_a_server_that_answered_once_is_awaited(
    handler: EnsembleHandler, silent: socket.socket
) -> None:
    """From the first word on a connection its silence is the session's business."""
    with ExitStack() as ends:
        connection = ends.enter_context(handler.create_connection(silent.getsockname()))
        accepted = ends.enter_context(silent.accept()[0])
        accepted.sendall(b"a")
        assert handler.select([connection], [], [], LONG_S)[0] == [connection]
        assert connection.recv(1) == b"a"
        # Twenty times the timeout, and less than is asked for.
        waiting = handler.select([connection], [], [], 0.2)
        assert waiting == ([], [], [])
        accepted.sendall(b"b")
        assert handler.select([connection], [], [], LONG_S)[0] == [connection]


def test_a_machine_that_is_gone(handler: EnsembleHandler) -> None:
    """It answers no SYN: a full backlog drops them as a dead machine does."""
    with ExitStack() as ends:
        full = ends.enter_context(socket.create_server(("127.0.0.1", 0), backlog=0))
        for _ in repeat(None, 8):
            waiting = ends.enter_context(socket.socket())
            waiting.setblocking(False)
            waiting.connect_ex(full.getsockname())
        with pytest.raises(TimeoutError):
            handler.create_connection(full.getsockname(), timeout=LONG_S)


def test_the_timeout_grows_with_each_silent_server(
    handler: EnsembleHandler, silent: socket.socket, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An ensemble that is slow, not dead, is heard in the end; then it is as at first."""
    asked: list[float] = []
    select = EnsembleHandler._select

    def noted(self: EnsembleHandler, *args: object) -> tuple[list[object], ...]:
        asked.append(float(str(args[-1])))
        return select(self, *args)

    monkeypatch.setattr(EnsembleHandler, "_select", noted)
    for spoken in (False, False, True, False):
        with handler.create_connection(silent.getsockname()) as connection, silent.accept()[0] as a:
            if spoken:
                a.sendall(b"a")
            handler.select([connection], [], [], LONG_S)
    assert asked == [0.01, 0.02, 0.04, 0.01]
