"""What a TLS client sent before it left, whatever its connection waited for then."""

import ssl
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from barnabas_broker.server.node.broker_server import BrokerServer
from barnabas_broker.testing import Broker
from barnabas_kafka.protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from barnabas_kafka.protocol.messages.metadata import MetadataRequest
from barnabas_kafka.records.builder import build_batch
from tests.broker.server.network.test_sasl_authenticator import tls_client
from tests.broker.server.running import Wire, loop_of, port_of, produce_request, running_node
from tests.oracle.certificates import Certificate
from tests.waiting import ANSWER, seconds, wait_for

SMALL = build_batch([(0, None, b"small", ())])
LARGE = build_batch([(0, None, b"large" * 40_000, ())])
LISTENERS = "PLAINTEXT://localhost:0,SSL://localhost:0"


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The broker's key store, and a trust store with its authority."""
    directory = tmp_path_factory.mktemp("certificates")
    authority = Certificate("authority")
    authority.write_trust(directory / "trust.pem")
    Certificate("broker", authority, host="localhost").write_pem(directory / "broker.pem")
    return directory


@pytest.fixture(scope="module", params=["asyncio", "uvloop"])
def ports(
    tmp_path_factory: pytest.TempPathFactory, certificates: Path, request: pytest.FixtureRequest
) -> Iterator[tuple[int, int]]:
    """Those of a broker's plain and TLS listeners, on either event loop: each has its own TLS."""
    settings = {
        "listeners": LISTENERS,
        "ssl.keystore.location": str(certificates / "broker.pem"),
    }
    if request.param == "asyncio":
        with running_node(tmp_path_factory.mktemp("data"), settings) as node:
            yield port_of(node), tls_port(node)
    else:
        with Broker(settings) as broker:
            plain, tls = (it.rpartition(":")[2] for it in broker.listeners.values())
            yield int(plain), int(tls)


def tls_port(node: BrokerServer) -> int:
    """Where the TLS listener is."""
    return next(each.port for each in node.listeners if each.name == "SSL")


def long_poll(topic: str) -> FetchRequest:
    """A request whose answer takes longer than its client stays."""
    partition = FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=100)
    return FetchRequest(
        max_wait_ms=500,
        min_bytes=1000,
        max_bytes=1000,
        session_epoch=-1,
        topics=[FetchTopic(topic=topic, partitions=[partition])],
    )


@pytest.mark.parametrize("says_goodbye", [True, False], ids=["close_notify", "FIN only"])
@pytest.mark.parametrize(
    ("batch", "count", "behind_a_long_poll"),
    [(SMALL, 2000, True), (SMALL, 2000, False), (LARGE, 7, False)],
    ids=["behind a long poll", "small requests", "large requests"],
)
def test_requests_sent_before_a_disconnect_are_served(
    ports: tuple[int, int],
    certificates: Path,
    request: pytest.FixtureRequest,
    batch: bytes,
    count: int,
    *,
    behind_a_long_poll: bool,
    says_goodbye: bool,
) -> None:
    """A producer with acks=0 hears nothing, so that it may close behind its last request.

    What it sent is appended, be it behind a long poll, and more than a turn's worth of it.
    """
    topic = f"t{abs(hash(request.node.name))}"
    with Wire(ports[0]) as plain:
        plain.create_topic(topic)
        plain.create_topic(f"{topic}-empty")
        with Wire(ports[1]) as wire:
            frames = [wire.frame(produce_request(topic, batch, acks=0), 9)] * count
            if behind_a_long_poll:
                frames.insert(0, wire.frame(long_poll(f"{topic}-empty"), 12))
            context = tls_client(certificates)
            wire.socket = context.wrap_socket(wire.socket, server_hostname="localhost")
            wire.socket.settimeout(seconds(ANSWER))
            # With nothing unread, closing is no reset.
            assert wire.ask(MetadataRequest(topics=None), 9).brokers
            wire.socket.sendall(b"".join(frames))
            if says_goodbye:
                with suppress(ssl.SSLError):  # It is sent; an answer may come before theirs.
                    wire.socket.unwrap()
        wait_for(
            "all records",
            lambda: plain.fetch(topic).high_watermark,
            until=lambda end: end == count,
        )


def test_answers_behind_the_end_of_a_connection_are_no_news(
    tmp_path: Path, certificates: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """The event loop's TLS warns of each write to a connection that the broker has ended."""
    settings = {
        "listeners": LISTENERS,
        "ssl.keystore.location": str(certificates / "broker.pem"),
    }
    with running_node(tmp_path, settings) as node, Wire(tls_port(node)) as wire:
        context = tls_client(certificates)
        wire.socket = context.wrap_socket(wire.socket, server_hostname="localhost")
        wire.socket.settimeout(seconds(ANSWER))
        assert wire.ask(MetadataRequest(topics=None), 9).brokers
        listener = next(each for each in node.listeners if each.name == "SSL")
        (session,) = listener.sessions

        def end() -> None:
            session.close("the broker stops")
            session._outbound.send([b"an answer"] * 40)

        loop_of(node).call_soon_threadsafe(end)
        wait_for("its end", lambda: listener.sessions, until=lambda them: not them)
    assert "SSL connection is closed" not in caplog.text
