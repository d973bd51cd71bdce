"""Sessions with an ensemble that is not there; `test_against_apache` has one that is."""

import contextlib
import socket
import threading
from collections.abc import Iterator

import pytest

from barnabas_broker.zk import registry, session
from barnabas_broker.zk.registry import RegistryError, brokers_in
from barnabas_broker.zk.session import SessionStore
from barnabas_broker.zk.session_counts import SessionCounts, SessionState
from barnabas_broker.zk.store import CoordinationError
from tests.waiting import ANSWER, START, seconds


@pytest.fixture
def nobody() -> Iterator[str]:
    """An address that refuses every connection."""
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        yield f"127.0.0.1:{held.getsockname()[1]}"


def test_an_unreachable_ensemble_is_reported_with_its_settings(nobody: str) -> None:
    """One line that names the address and the settings."""
    store = SessionStore(f"{nobody}/a", session_timeout_ms=6000)
    with pytest.raises(CoordinationError) as caught:
        store.open(connection_timeout_ms=200)
    store.close()
    assert f"no ZooKeeper answers at {nobody}/a within 200 ms" in str(caught.value)
    assert "zookeeper.connection.timeout.ms" in str(caught.value)


def test_an_attempt_to_connect_can_be_ended(nobody: str) -> None:
    """A broker that is told to stop while it starts does not wait for the ensemble."""
    store = SessionStore(nobody, session_timeout_ms=6000)
    ended: list[str] = []

    def connect() -> None:
        try:
            store.open(connection_timeout_ms=100_000)
        except CoordinationError as error:
            ended.append(str(error))

    thread = threading.Thread(target=connect)
    thread.start()
    store.close()
    thread.join()
    assert len(ended) == 1


def test_a_name_look_up_that_hangs_does_not_hold_up_the_end(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """kazoo waits for its connection thread: where the ensemble's names are gone, for very long."""
    looking, go_on = threading.Event(), threading.Event()

    def hang(*_: object, **__: object) -> list[object]:
        looking.set()
        go_on.wait(seconds(START))
        raise socket.gaierror(socket.EAI_NONAME, "unknown")

    monkeypatch.setattr(socket, "getaddrinfo", hang)
    monkeypatch.setattr(session, "CLOSE_TIMEOUT_S", 0.01)
    store = SessionStore("zookeeper.gone:2181", session_timeout_ms=6000)
    opening = threading.Thread(target=open_in_vain, args=(store,))
    opening.start()
    try:
        assert looking.wait(seconds(ANSWER))
        store.close()
        assert "did not answer within" in caplog.text
    finally:
        go_on.set()
        opening.join()


def open_in_vain(store: SessionStore) -> None:
    """Until the store is closed."""
    with contextlib.suppress(CoordinationError):
        store.open(connection_timeout_ms=100_000)


def test_without_a_session_nothing_is_owned(nobody: str) -> None:
    """Ephemeral znodes need one."""
    store = SessionStore(nobody, session_timeout_ms=6000)
    with pytest.raises(CoordinationError, match="no session"):
        _ = store.session
    store.close()


def test_a_port_that_is_none() -> None:
    """What kazoo says of an address is told with the setting's name."""
    with pytest.raises(CoordinationError, match=r"zookeeper\.connect=host:port"):
        SessionStore("host:port", session_timeout_ms=6000)


@pytest.mark.parametrize("connect", ["127.0.0.1:1", "127.0.0.1:1,127.0.0.1:2/chroot"])
def test_no_broker_is_found_without_zookeeper(
    monkeypatch: pytest.MonkeyPatch, connect: str
) -> None:
    """In bounded time, and with what to type instead."""
    monkeypatch.setattr(registry, "TIMEOUT_MS", 300)
    with pytest.raises(RegistryError, match="--bootstrap-server"):
        brokers_in(connect)


def test_every_change_is_a_state_and_a_count() -> None:
    """A session that was expired and one that was closed are two things."""
    counts = SessionCounts()
    seen = [counts.state]
    for change in (
        counts.connected,
        counts.disconnected,
        counts.connected,
        counts.expired,
        counts.refused,
    ):
        change()
        seen.append(counts.state)
    counts.closed()
    assert seen == [
        SessionState.CONNECTING,
        SessionState.CONNECTED,
        SessionState.CONNECTING,
        SessionState.CONNECTED,
        SessionState.EXPIRED,
        SessionState.AUTH_FAILED,
    ]
    assert counts.state is SessionState.CLOSED
    assert (counts.connects, counts.disconnects, counts.expires, counts.refusals) == (2, 1, 1, 1)


def test_session_listeners_are_optional() -> None:
    """Times are told to whoever wants them."""
    counts = SessionCounts()
    counts.took(5)
    heard: list[int] = []
    counts.took = heard.append
    counts.took(7)
    assert heard == [7]
