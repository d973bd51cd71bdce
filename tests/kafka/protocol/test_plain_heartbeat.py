"""The short way through Heartbeat: what the declared codec says, compiled and pure."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from barnabas_kafka.protocol import codec, plain_heartbeat, registry
from barnabas_kafka.protocol.headers import (
    RequestHeader,
    decode_client,
    encode_request_header,
    encode_response_header,
)
from barnabas_kafka.protocol.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from barnabas_kafka.protocol.plain_heartbeat import PlainHeartbeat
from tests.kafka.pure import pure

API = registry.api(12)
VERSIONS = st.integers(plain_heartbeat.FIRST_VERSION, plain_heartbeat.LAST_VERSION)
INT32 = st.integers(-(2**31), 2**31 - 1)
NAMES = st.text(st.characters(codec="utf-8"), max_size=40)
REQUESTS = st.builds(
    HeartbeatRequest,
    group_id=NAMES,
    generation_id=INT32,
    member_id=NAMES,
    group_instance_id=st.none() | NAMES,
)


PURE = pure("barnabas_kafka.protocol.plain_heartbeat")


def _frame(request: HeartbeatRequest, version: int, client_id: str | None = "client") -> bytes:
    """A request as the declared codec writes it."""
    if version < 3:
        request.group_instance_id = None
    header = encode_request_header(RequestHeader(12, version, 7, client_id))
    return header + codec.encode(request, version)


def _declared(frame: bytes, version: int) -> tuple[object, ...]:
    """The content of a request, by the declared codec."""
    _, body = decode_client(frame, 0, API.request_header_version(version))
    request, end = codec.decode_from(HeartbeatRequest, frame, version, body)
    assert end == len(frame)
    return tuple(getattr(request, name) for name in PlainHeartbeat._fields)


def _read(frame: bytes, version: int) -> PlainHeartbeat | None:
    """What both lives of the module find, which is the same."""
    found: PlainHeartbeat | None = PURE.read(frame, version)
    assert plain_heartbeat.read(frame, version) == found
    return found


@given(version=VERSIONS, request=REQUESTS, client_id=st.none() | NAMES)
def test_requests_are_read_as_declared(
    version: int, request: HeartbeatRequest, client_id: str | None
) -> None:
    """Every part of a request without anything special is found, and nothing else."""
    frame = _frame(request, version, client_id)
    plain = _read(frame, version)
    assert plain is not None
    assert plain == _declared(frame, version)
    assert _read(frame + b"\0", version) is None


@settings(max_examples=300)
@given(
    version=VERSIONS,
    request=REQUESTS,
    edits=st.lists(st.tuples(st.integers(0, 2000), st.integers(0, 255)), min_size=1, max_size=4),
    cut=st.integers(0, 40),
)
def test_what_is_read_of_damaged_requests_is_what_is_declared(
    version: int, request: HeartbeatRequest, edits: list[tuple[int, int]], cut: int
) -> None:
    """Either the short way leaves a request alone, or it finds what the declared codec finds."""
    whole = bytearray(_frame(request, version))
    for where, value in edits:
        whole[8 + where % (len(whole) - 8)] = value
    frame = bytes(whole[: len(whole) - cut] if cut < 20 else whole)
    plain = _read(frame, version)
    if plain is not None:
        assert plain == _declared(frame, version)


@settings(max_examples=300)
@given(frame=st.binary(max_size=80), version=st.integers(-1, 6))
def test_noise_is_left_alone(frame: bytes, version: int) -> None:
    """Random bytes never raise, and hardly ever look like a request."""
    plain = _read(frame, version)
    if plain is not None:
        assert plain == _declared(frame, version)


@pytest.mark.parametrize("version", range(5))
@pytest.mark.parametrize("code", [0, 27, -1])
def test_answers_are_written_as_declared(version: int, code: int) -> None:
    """Byte for byte what the declared codec writes."""
    header = encode_response_header(7, API.response_header_version(version))
    body = header + codec.encode(HeartbeatResponse(error_code=code), version)
    for module in (plain_heartbeat, PURE):
        assert module.answer(version, 7, code) == len(body).to_bytes(4, "big") + body
