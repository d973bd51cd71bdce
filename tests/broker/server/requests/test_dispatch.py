"""Routing: what is served, what is refused, and what a handler learns about its caller."""

import tracemalloc
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from barnabas_broker.security.acls import CLUSTER_NAME, AclOperation, ResourceType
from barnabas_broker.security.authorizer import AllowAll
from barnabas_broker.server.node.broker_server import BrokerServer
from barnabas_broker.server.requests.dispatch import Dispatcher, Route, collect_handlers
from barnabas_broker.server.requests.handlers import metadata
from barnabas_kafka.errors import ErrorCode
from barnabas_kafka.protocol import codec, registry
from barnabas_kafka.protocol.messages.api_versions import ApiVersionsResponse
from barnabas_kafka.protocol.messages.envelope import EnvelopeRequest
from barnabas_kafka.protocol.registry import ApiKey, VersionRange, api
from barnabas_kafka.records.builder import build_batch
from tests.broker.controller.embedded import Denying, Embedded
from tests.broker.server.running import (
    Wire,
    fetch_request,
    port_of,
    produce_request,
    running_node,
)

BATCH = build_batch([(0, None, b"value", ())])


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
    routes = [handler.fast for handler in collect_handlers() if handler.fast is not None]
    assert len(routes) > 5
    frame = memoryview(bytearray(16 << 20))
    call: Any = SimpleNamespace(version=4, correlation_id=1)
    tracemalloc.start()
    try:
        for route in routes:
            assert route(frame, call) is None
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < len(frame) // 16


def test_an_unknown_api_key_ends_the_connection(wire: Wire) -> None:
    """A key from nowhere is refused without looking at the rest."""
    wire.socket.sendall(bytes.fromhex("0000000a7fff000000000001ffff"))
    assert wire.closed_by_broker()


def test_a_failing_handler_is_answered_and_logged(
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


def test_without_quotas_no_request_is_throttled(tmp_path: Path) -> None:
    """The quotas of a broker on which none are set."""
    call = Embedded(tmp_path).call(0)
    assert call.usage is None
    assert call.mutation_quota(strict_since=0) is None


def test_a_denial_is_audited_once_for_a_request(tmp_path: Path) -> None:
    """A fast route and the handler ask the same; so does a fetch that waits."""
    denying = Denying((AclOperation.READ, ResourceType.TOPIC, "secret"))
    call = Embedded(tmp_path).call(0, authorizer=denying)
    for _ in range(3):
        assert not call.allowed(AclOperation.READ, ResourceType.TOPIC, "secret")
    assert call.allowed(AclOperation.READ, ResourceType.GROUP, "secret")
    assert denying.audited == [True, False, False, True]


def test_without_an_authorizer_all_may(tmp_path: Path) -> None:
    """Nobody is asked then."""
    call = Embedded(tmp_path).call(0, authorizer=AllowAll())
    assert call.allowed(AclOperation.READ, ResourceType.GROUP, "a")
    assert call.denied is None


@pytest.mark.parametrize(("value", "is_fast"), [("true", True), ("false", False)])
def test_fast_routes_can_be_switched_off(
    tmp_path: Path, value: str, *, is_fast: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """So that tests can compare; the handler serves all requests then."""
    handled = []
    handle = Dispatcher._handled

    def counted(self: Dispatcher, route: Route, *rest: Any) -> Any:
        handled.append(route.handler.api_key)
        return handle(self, route, *rest)

    monkeypatch.setattr(Dispatcher, "_handled", counted)
    settings = {"barnabas.fast.path.enable": value}
    with running_node(tmp_path, settings) as node, Wire(port_of(node)) as wire:
        wire.create_topic("t")
        frames = [wire.frame(produce_request("t", BATCH), 9) for _ in range(3)]
        wire.socket.sendall(b"".join(frames))
        assert all(wire.receive_frame() for _ in frames)
        assert wire.fetch("t").records
    fast = {ApiKey.PRODUCE, ApiKey.FETCH}
    assert fast.isdisjoint(handled) if is_fast else fast <= set(handled)
