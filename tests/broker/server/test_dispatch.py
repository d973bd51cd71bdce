"""Routing: what is served, what is refused, and how."""

import pytest

from barnabas_broker.server.dispatch import collect_handlers
from barnabas_broker.server.node import Node
from barnabas_kafka.errors import ErrorCode
from barnabas_kafka.protocol import codec, registry
from barnabas_kafka.protocol.messages.api_versions import ApiVersionsResponse
from barnabas_kafka.protocol.messages.envelope import EnvelopeRequest
from barnabas_kafka.protocol.registry import ApiKey
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


def test_an_unknown_api_key_ends_the_connection(wire: Wire) -> None:
    """A key from nowhere is refused without looking at the rest."""
    wire.socket.sendall(bytes.fromhex("0000000a7fff000000000001ffff"))
    assert wire.closed_by_broker()


def test_a_failing_handler_is_told_and_logged(
    node: Node, wire: Wire, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
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
