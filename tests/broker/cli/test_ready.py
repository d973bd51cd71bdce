"""`barnabas broker ready`, as a probe runs it."""

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from click.testing import CliRunner

from barnabas_broker.cli.broker import broker
from barnabas_broker.testing import Broker
from barnabas_kafka.protocol import codec
from barnabas_kafka.protocol.messages.api_versions import ApiVersionsResponse
from tests.waiting import START, seconds


def probe(address: str) -> tuple[int, str]:
    """Run it; its exit code and the one line that it printed."""
    done = CliRunner().invoke(broker, ["ready", "-b", address, "--timeout", "60"])
    assert done.output.count("\n") == 1
    return done.exit_code, done.output


@contextmanager
def answering(answer: bytes) -> Iterator[str]:
    """Something on a port that gives everybody the same answer, and hangs up."""
    with socket.create_server(("127.0.0.1", 0)) as server:

        def serve() -> None:
            connection, _ = server.accept()
            with connection:
                connection.recv(1024)
                connection.sendall(answer)

        thread = threading.Thread(target=serve)
        thread.start()
        yield f"127.0.0.1:{server.getsockname()[1]}"
        thread.join()


def test_a_broker_that_serves() -> None:
    """Exit code 0."""
    with Broker(startup_timeout_s=seconds(START)) as started:
        code, line = probe(started.bootstrap_servers)
    assert (code, line.startswith("ready: ")) == (0, True)


def test_an_unreachable_broker_is_not_ready() -> None:
    """Exit code 1, and the reason."""
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        code, line = probe(f"127.0.0.1:{held.getsockname()[1]}")
    assert code == 1
    assert "refused" in line


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        (b"", "closed the connection"),
        (b"HTTP/1.1 400 Bad Request\r\n\r\n", "not a Kafka broker"),
        (b"\0\0\0\6\0\0\0\1\0\0", "not a Kafka broker"),
    ],
    ids=["hangs-up", "http", "too-short"],
)
def test_something_else_there(answer: bytes, reason: str) -> None:
    """A port that is open is not yet a broker."""
    with answering(answer) as address:
        code, line = probe(address)
    assert (code, reason in line) == (1, True)


def test_a_broker_that_refuses() -> None:
    """Its error has a name."""
    body = b"\0\0\0\1" + codec.encode(ApiVersionsResponse(error_code=35), 0)
    with answering(len(body).to_bytes(4, "big") + body) as address:
        assert probe(address) == (1, f"Error: not ready: {address} answers UNSUPPORTED_VERSION\n")


def test_no_address() -> None:
    """A wrong argument is told apart, by exit code 2."""
    assert probe("nowhere")[0] == 2
