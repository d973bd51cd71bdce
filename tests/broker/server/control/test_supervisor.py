"""The supervisor's own decisions; that it ends real sessions is in `test_against_apache`."""

import socket
import ssl
import struct
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress

import pytest

from barnabas_broker.server.control import supervisor
from barnabas_broker.server.control.supervisor import NONE, Received, end_session

GRANTED = struct.pack("!iiiq", 20, 0, 6000, 0xABC) + struct.pack("!i", 0)
EXPIRED = struct.pack("!iiiq", 20, 0, 0, 0) + struct.pack("!i", 0)
CLOSED = struct.pack("!iiqi", 16, 1, 7, 0)


@contextmanager
def member(*answers: bytes, tls: ssl.SSLContext | None = None) -> Iterator[tuple[str, list[bytes]]]:
    """A member of an ensemble that answers one request of each connection, then hangs up.

    Yields its address and what it was sent. A client that it has no TLS with is hung up on.
    """
    heard: list[bytes] = []
    with socket.create_server(("127.0.0.1", 0)) as server:

        def serve() -> None:
            for answer in answers:
                plain, _ = server.accept()
                try:
                    connection = plain if tls is None else tls.wrap_socket(plain, server_side=True)
                except OSError:
                    plain.close()
                    continue
                with connection:
                    heard.append(connection.recv(4096))
                    connection.sendall(answer)
                    # Until it is through with the answer: to hang up on what it sends resets.
                    with suppress(ConnectionResetError, ssl.SSLError):
                        while data := connection.recv(4096):
                            heard.append(data)

        thread = threading.Thread(target=serve)
        thread.start()
        yield f"127.0.0.1:{server.getsockname()[1]}", heard
        thread.join()


def line(hosts: str, timeout_ms: int = 60_000) -> str:
    """What a broker tells."""
    return f"abc 0102 {timeout_ms} {hosts}"


def test_the_last_whole_line_counts() -> None:
    """However it is cut into pieces; nothing is to be ended before anything was told."""
    reported = Received()
    assert reported.last == NONE
    for data, last in ((b"1 a", NONE), (b"b 2 c\n2", "1 ab 2 c"), (b" x\n-\n", NONE)):
        reported.take(data)
        assert reported.last == last


def test_a_session_is_closed() -> None:
    """ConnectRequest with its id and password, then closeSession."""
    with member(GRANTED + CLOSED) as (address, heard):
        assert end_session(line(address)) == "0xabc is closed now"
    connect = struct.pack("!iqiqi", 0, 0, 60_000, 0xABC, 2) + b"\x01\x02\0"
    assert b"".join(heard) == (
        struct.pack("!i", len(connect)) + connect + struct.pack("!iii", 8, 1, -11)
    )


def test_a_session_that_has_ended() -> None:
    """There is nothing to say about it."""
    with member(EXPIRED) as (address, _):
        assert end_session(line(address)) == ""


@pytest.mark.parametrize("answer", [b"", b"HTTP/1.1 200 OK\r\n\r\n", GRANTED[:10], GRANTED])
def test_another_member_is_asked(answer: bytes) -> None:
    """Where one answers nonsense or hangs up in the middle."""
    with member(answer) as (first, _), member(GRANTED + CLOSED) as (second, _):
        assert end_session(line(f"{first},{second}")) == "0xabc is closed now"


def test_it_gives_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """A container whose broker has died is to be started again."""
    monkeypatch.setattr(supervisor, "GIVE_UP_S", 0.2)
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))  # Refuses every connection.
        address = f"127.0.0.1:{held.getsockname()[1]}"
        assert "no ZooKeeper answers" in end_session(line(address))
