"""Routing: what is served, what is refused, and what a handler learns about its caller."""

import tracemalloc
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from barnabas_broker.security.acls import CLUSTER_NAME, AclOperation, ResourceType
from barnabas_broker.security.authorizer import AllowAll
from barnabas_broker.security.principals import ANONYMOUS
from barnabas_broker.server.node.broker_server import BrokerServer
from barnabas_broker.server.requests.dispatch import Caller, collect_handlers
from barnabas_broker.server.requests.fast.fetch import PlainFetches
from barnabas_broker.server.requests.fast.heartbeat import PlainHeartbeats
from barnabas_broker.server.requests.fast.offset_commit import PlainCommits
from barnabas_broker.server.requests.fast.reading_rights import ReadingRights
from barnabas_broker.server.requests.handlers import metadata
from barnabas_kafka.errors import ErrorCode
from barnabas_kafka.protocol import codec, registry
from barnabas_kafka.protocol.messages.api_versions import ApiVersionsResponse
from barnabas_kafka.protocol.messages.envelope import EnvelopeRequest
from barnabas_kafka.protocol.registry import ApiKey, VersionRange, api
from tests.broker.controller.embedded import Denying, Embedded
from tests.broker.server.running import Wire, fetch_request, port_of


def test_every_advertised_version_exists_in_the_protocol() -> None:
    """A handler must not claim versions nobody has declared."""
    handlers = collect_handlers()
    assert len({handler.api_key for handler in handlers}) == len(handlers)
    for handler in handlers:
        declared = registry.api(handler.api_key).versions
        assert declared.min <= handler.versions.min <= handler.versions.max <= declared.max


def test_api_versions_of_the_future_is_answered_in_version_0(wire: Wire) -> None:
    """The downgrade dance of KIP-511: the client learns which version to ask again in."""
    wire.socket.sendall(bytes.fromhex("0000000e 0012 007f 00000007 0004 77697265".replace(" ", "")))
    frame = wire.receive_frame()
    assert int.from_bytes(frame[:4], "big") == 7
    response = codec.decode(ApiVersionsResponse, frame[4:], 0)
    assert response.error_code == ErrorCode.UNSUPPORTED_VERSION
    assert [(key.api_key, key.min_version, key.max_version) for key in response.api_keys] == [
        (18, 0, 4)
    ]


def test_an_api_without_handler_ends_the_connection(wire: Wire) -> None:
    """Envelope is declared but belongs to KRaft: no response could be understood."""
    wire.send(EnvelopeRequest(), 0)
    assert wire.closed_by_broker()


def test_an_unserved_version_ends_the_connection(wire: Wire) -> None:
    """A client that ignores ApiVersions cannot be answered."""
    wire.send(fetch_request([("t", 0, 0)]), 18)
    assert wire.closed_by_broker()


def test_large_requests_are_not_copied_to_be_seen_as_large() -> None:
    """A hundred megabytes would take tens of milliseconds, in which nobody is served."""
    broker: Any = SimpleNamespace()
    quotas: Any = SimpleNamespace()
    ways = (
        PlainFetches(broker, AllowAll(), quotas),
        PlainCommits(broker, AllowAll()),
        PlainHeartbeats(broker, AllowAll()),
    )
    frame = memoryview(bytearray(16 << 20))
    caller = Caller("L", "h", ANONYMOUS)
    tracemalloc.start()
    try:
        for way in ways:
            assert way.serve(frame, 4, 1, caller, 0) is None
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < len(frame) // 16


def test_an_unknown_api_key_ends_the_connection(wire: Wire) -> None:
    """A key from nowhere is refused without looking at the rest."""
    wire.socket.sendall(bytes.fromhex("0000000a7fff000000000001ffff"))
    assert wire.closed_by_broker()


def test_a_failing_handler_is_told_and_logged(
    node: BrokerServer,
    wire: Wire,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """A bug in one handler is an UNKNOWN_SERVER_ERROR to one client, and a traceback in the log."""

    def broken() -> int:
        raise ZeroDivisionError("a bug")

    monkeypatch.setattr(type(node.broker), "draw_session_id", lambda self: broken())
    response = wire.ask(fetch_request([("t", 0, 0)], session_epoch=0), 12)
    assert response.error_code == ErrorCode.UNKNOWN_SERVER_ERROR
    assert "a bug" in caplog.text
    with Wire(port_of(node)) as other:
        assert other.ask(fetch_request([("t", 0, 0)]), 12).error_code == 0


def test_requests_before_the_client_id_existed_are_served(wire: Wire) -> None:
    """ApiVersions is listed among what it lists, at its own range."""
    handlers = {handler.api_key: handler.versions for handler in collect_handlers()}
    assert (handlers[ApiKey.API_VERSIONS].min, handlers[ApiKey.API_VERSIONS].max) == (0, 4)


def test_a_handler_names_its_api_and_versions_that_the_codecs_know() -> None:
    """A version that is advertised can be decoded."""
    handler = metadata.HANDLER
    assert handler.api_key is ApiKey.METADATA
    assert handler.versions == VersionRange(0, 12)
    assert handler.versions.max <= api(handler.api_key).versions.max


def test_the_authorizer_is_asked_about_the_resource_that_is_meant(tmp_path: Path) -> None:
    """One topic may be hidden while others are not; the cluster is a resource of its own."""
    denying = Denying(
        (AclOperation.READ, ResourceType.TOPIC, "secret"),
        (AclOperation.ALTER, ResourceType.CLUSTER, CLUSTER_NAME),
    )
    call = Embedded(tmp_path).call(0, authorizer=denying)
    assert call.allowed(AclOperation.READ, ResourceType.TOPIC, "open")
    assert not call.allowed(AclOperation.READ, ResourceType.TOPIC, "secret")
    assert call.allowed_on_cluster(AclOperation.DESCRIBE)
    assert not call.allowed_on_cluster(AclOperation.ALTER)


def test_authorised_operations_are_a_bit_field(tmp_path: Path) -> None:
    """What the caller may not do has its bit cleared (KIP-430)."""
    denying = Denying((AclOperation.WRITE, ResourceType.TOPIC, None))
    embedded = Embedded(tmp_path)
    allowed = embedded.call(0).allowed_operations(ResourceType.TOPIC, "a")
    without = embedded.call(0, authorizer=denying).allowed_operations(ResourceType.TOPIC, "a")
    assert allowed - without == 1 << AclOperation.WRITE


def test_without_quotas_nobody_waits(tmp_path: Path) -> None:
    """The quotas of a broker on which none are set."""
    call = Embedded(tmp_path).call(0)
    assert call.usage is None
    assert call.mutation_quota(strict_since=0) is None


CALLER = Caller("PLAINTEXT", "127.0.0.1", ANONYMOUS)


def test_each_is_asked_for_by_kind_and_name() -> None:
    """A group is no topic of the same name, and to read is what is asked for."""
    group = AclOperation.READ, ResourceType.GROUP, "a"
    topic = AclOperation.READ, ResourceType.TOPIC, "b"
    authorizer = Denying(group, topic)
    rights = ReadingRights(authorizer)
    assert not rights.unlimited
    assert [rights.of_group(CALLER, name) for name in "ab"] == [False, True]
    assert [rights.of_topic(CALLER, name) for name in "ab"] == [True, False]


def test_without_an_authorizer_all_may() -> None:
    """Nobody is asked then."""
    rights = ReadingRights(AllowAll())
    assert rights.unlimited
    assert rights.of_group(CALLER, "a")
    assert rights.of_topic(CALLER, "a")
