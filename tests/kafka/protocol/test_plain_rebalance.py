"""The short ways through JoinGroup and SyncGroup: what the codecs say, compiled and pure."""

from types import ModuleType

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from barnabas_kafka.protocol import codec, plain_rebalance, registry
from barnabas_kafka.protocol.headers import (
    RequestHeader,
    decode_client,
    encode_request_header,
    encode_response_header,
)
from barnabas_kafka.protocol.messages.join_group import (
    JoinGroupRequest,
    JoinGroupRequestProtocol,
    JoinGroupResponse,
    JoinGroupResponseMember,
)
from barnabas_kafka.protocol.messages.sync_group import (
    SyncGroupRequest,
    SyncGroupRequestAssignment,
    SyncGroupResponse,
)
from barnabas_kafka.protocol.plain_rebalance import PlainJoin, PlainSync
from tests.kafka.pure import pure

JOIN, SYNC = registry.api(11), registry.api(14)
MOST = 5
INT16 = st.integers(-(2**15), 2**15 - 1)
INT32 = st.integers(-(2**31), 2**31 - 1)
NAMES = st.text(st.characters(codec="utf-8"), max_size=20)
# Longer than what one byte of a varint says.
BYTES = st.binary(max_size=20) | st.binary(min_size=126, max_size=130)

JOIN_REQUESTS = st.builds(
    JoinGroupRequest,
    group_id=NAMES,
    session_timeout_ms=INT32,
    rebalance_timeout_ms=INT32,
    member_id=NAMES,
    group_instance_id=st.none() | NAMES,
    protocol_type=NAMES,
    protocols=st.lists(
        st.builds(JoinGroupRequestProtocol, name=NAMES, metadata=BYTES), max_size=MOST
    ),
    reason=st.none() | NAMES,
)
SYNC_REQUESTS = st.builds(
    SyncGroupRequest,
    group_id=NAMES,
    generation_id=INT32,
    member_id=NAMES,
    group_instance_id=st.none() | NAMES,
    protocol_type=st.none() | NAMES,
    protocol_name=st.none() | NAMES,
    assignments=st.lists(
        st.builds(SyncGroupRequestAssignment, member_id=NAMES, assignment=BYTES), max_size=MOST
    ),
)
REQUESTS = st.tuples(JOIN_REQUESTS, st.integers(0, 9)) | st.tuples(SYNC_REQUESTS, st.integers(0, 5))
JOIN_RESPONSES = st.builds(
    JoinGroupResponse,
    throttle_time_ms=st.sampled_from((0, 0, 0, 5)),
    error_code=INT16,
    generation_id=INT32,
    protocol_type=st.none() | NAMES,
    protocol_name=st.none() | NAMES,
    leader=NAMES,
    skip_assignment=st.booleans(),
    member_id=NAMES,
    members=st.lists(
        st.builds(
            JoinGroupResponseMember,
            member_id=NAMES,
            group_instance_id=st.none() | NAMES,
            metadata=BYTES,
        ),
        max_size=4,
    ),
)
SYNC_RESPONSES = st.builds(
    SyncGroupResponse,
    throttle_time_ms=st.sampled_from((0, 0, 0, 5)),
    error_code=INT16,
    protocol_type=st.none() | NAMES,
    protocol_name=st.none() | NAMES,
    assignment=BYTES,
)
# Beyond what an int16 counts.
LONG = "x" * 0x8000
PURE = pure("barnabas_kafka.protocol.plain_rebalance")

Plain = PlainJoin | PlainSync


def _api(request: JoinGroupRequest | SyncGroupRequest) -> registry.Api:
    return JOIN if isinstance(request, JoinGroupRequest) else SYNC


def _frame(
    request: JoinGroupRequest | SyncGroupRequest, version: int, client_id: str | None = "client"
) -> bytes:
    """A request as the declared codec writes it."""
    if version < (5 if isinstance(request, JoinGroupRequest) else 3):
        request.group_instance_id = None
    header = encode_request_header(RequestHeader(_api(request).key, version, 7, client_id))
    return header + codec.encode(request, version)


def _declared(api: registry.Api, frame: bytes, version: int) -> Plain:
    """The content of a request, by the declared codec."""
    client_id, body = decode_client(frame, 0, api.request_header_version(version))
    request, end = codec.decode_from(api.request, frame, version, body)
    assert end == len(frame)
    if isinstance(request, JoinGroupRequest):
        return PlainJoin(
            client_id or "",
            request.group_id,
            request.session_timeout_ms,
            request.rebalance_timeout_ms,
            request.member_id,
            request.group_instance_id,
            request.protocol_type,
            tuple((each.name, bytes(each.metadata)) for each in request.protocols),
        )
    assert isinstance(request, SyncGroupRequest)
    return PlainSync(
        request.group_id,
        request.generation_id,
        request.member_id,
        request.group_instance_id,
        request.protocol_type,
        request.protocol_name,
        [(each.member_id, bytes(each.assignment)) for each in request.assignments],
    )


def _read(api: registry.Api, frame: bytes, version: int, most: int = MOST) -> Plain | None:
    """What both lives of the module find, which is the same."""
    name = "read_join" if api is JOIN else "read_sync"
    found: Plain | None = getattr(PURE, name)(frame, version, most)
    assert getattr(plain_rebalance, name)(frame, version, most) == found
    return found


@given(asked=REQUESTS, client_id=st.none() | NAMES)
def test_requests_are_read_as_declared(
    asked: tuple[JoinGroupRequest | SyncGroupRequest, int], client_id: str | None
) -> None:
    """Every part of a request without anything special is found, and nothing else."""
    request, version = asked
    api, frame = _api(request), _frame(request, version, client_id)
    plain = _read(api, frame, version)
    assert plain == _declared(api, frame, version)
    assert _read(api, frame + b"\0", version) is None
    named = request.protocols if isinstance(request, JoinGroupRequest) else request.assignments
    assert (_read(api, frame, version, len(named) - 1) is None) or not named


@settings(max_examples=300)
@given(
    asked=REQUESTS,
    edits=st.lists(st.tuples(st.integers(0, 2000), st.integers(0, 255)), min_size=1, max_size=4),
    cut=st.integers(0, 40),
)
def test_what_is_read_of_damaged_requests_is_what_is_declared(
    asked: tuple[JoinGroupRequest | SyncGroupRequest, int],
    edits: list[tuple[int, int]],
    cut: int,
) -> None:
    """Either the short way leaves a request alone, or it finds what the declared codec finds."""
    request, version = asked
    whole = bytearray(_frame(request, version))
    for where, value in edits:
        whole[8 + where % (len(whole) - 8)] = value
    frame = bytes(whole[: len(whole) - cut] if cut < 20 else whole)
    plain = _read(_api(request), frame, version)
    if plain is not None:
        assert plain == _declared(_api(request), frame, version)


@settings(max_examples=300)
@given(frame=st.binary(max_size=80), version=st.integers(-1, 11))
def test_noise_is_left_alone(frame: bytes, version: int) -> None:
    """Random bytes never raise, and hardly ever look like a request."""
    for api in (JOIN, SYNC):
        plain = _read(api, frame, version)
        if plain is not None:
            assert plain == _declared(api, frame, version)


def _expected(response: JoinGroupResponse | SyncGroupResponse, version: int) -> bytes | None:
    """What the declared codec writes, None where it refuses."""
    api = JOIN if isinstance(response, JoinGroupResponse) else SYNC
    header = encode_response_header(7, api.response_header_version(version))
    try:
        body = header + codec.encode(response, version)
    except codec.EncodeError:
        return None
    return len(body).to_bytes(4, "big") + body


def _answered(
    module: ModuleType, response: JoinGroupResponse | SyncGroupResponse, version: int
) -> bytes | None:
    name = "answer_join" if isinstance(response, JoinGroupResponse) else "answer_sync"
    answer: bytes | None = getattr(module, name)(version, 7, response)
    return answer


@given(
    told=st.tuples(JOIN_RESPONSES, st.integers(0, 9)) | st.tuples(SYNC_RESPONSES, st.integers(0, 5))
)
def test_answers_are_written_as_declared(
    told: tuple[JoinGroupResponse | SyncGroupResponse, int],
) -> None:
    """Byte for byte what the declared codec writes; what that refuses is left to it."""
    response, version = told
    expected = _expected(response, version)
    for module in (plain_rebalance, PURE):
        answer = _answered(module, response, version)
        if answer is None:
            assert expected is None or response.throttle_time_ms
        else:
            assert answer == expected


@pytest.mark.parametrize("version", [0, 9])
def test_texts_that_no_response_has_room_for(version: int) -> None:
    """They are left to the declared codec where they do not fit."""
    response = JoinGroupResponse(protocol_name="range", leader=LONG)
    for module in (plain_rebalance, PURE):
        assert _answered(module, response, version) == _expected(response, version)
