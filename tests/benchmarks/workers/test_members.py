"""Members of the benchmark know what they are told, and take a group through its rebalances."""

from __future__ import annotations

import socket
import struct
from collections.abc import Iterator

import pytest

from barnabas_kafka.protocol.codec import decode, encode
from barnabas_kafka.protocol.headers import decode_request_header
from barnabas_kafka.protocol.messages.heartbeat import HeartbeatResponse
from barnabas_kafka.protocol.messages.join_group import (
    JoinGroupRequest,
    JoinGroupResponse,
    JoinGroupResponseMember,
)
from barnabas_kafka.protocol.messages.sync_group import SyncGroupRequest, SyncGroupResponse
from benchmarks.workers import frames, members
from benchmarks.workers.members import Member, Rebalance


@pytest.fixture
def pair() -> Iterator[tuple[Member, socket.socket]]:
    """A member, and the end of its connection that a broker would have."""
    ours, theirs = socket.socketpair()
    with ours, theirs:
        yield Member(ours, "g"), theirs


def correlated(body: bytes) -> bytes:
    """An answer as a member is given it."""
    return struct.pack(">i", frames.CORRELATION_ID) + bytes(body)


def asked(connection: socket.socket) -> tuple[int, bytes]:
    """The version and the body of the next request."""
    (size,) = struct.unpack(">i", connection.recv(4, socket.MSG_WAITALL))
    frame = connection.recv(size, socket.MSG_WAITALL)
    header, position = decode_request_header(frame, 0)
    return header.api_version, frame[position:]


def test_a_member_joins_under_the_id_it_is_given_and_syncs(
    pair: tuple[Member, socket.socket],
) -> None:
    """As the leader, with an assignment for each; it is done when its own has come."""
    member, broker = pair
    course = Rebalance()
    named = JoinGroupResponse(error_code=members.MEMBER_ID_REQUIRED, member_id="m-1")
    assert not course(member, correlated(encode(named, members.JOIN_VERSION)))
    version, body = asked(broker)
    assert decode(JoinGroupRequest, body, version).member_id == "m-1"
    joined = JoinGroupResponse(
        generation_id=3,
        protocol_name="range",
        leader="m-1",
        member_id="m-1",
        members=[JoinGroupResponseMember(member_id=name) for name in ("m-1", "m-2")],
    )
    assert not course(member, correlated(encode(joined, members.JOIN_VERSION)))
    version, body = asked(broker)
    sync = decode(SyncGroupRequest, body, version)
    assert (sync.generation_id, [each.member_id for each in sync.assignments]) == (3, member.peers)
    assert course(member, correlated(encode(SyncGroupResponse(), members.SYNC_VERSION)))


def test_a_follower_sends_heartbeats_until_the_rebalance(
    pair: tuple[Member, socket.socket],
) -> None:
    """Then it joins; any other answer ends the run."""
    member, broker = pair
    course = Rebalance()
    course.beating.add(member)
    for code in (0, members.REBALANCING):
        answer = HeartbeatResponse(error_code=code)
        assert not course(member, correlated(encode(answer, members.HEARTBEAT_VERSION)))
    asked(broker)
    version, body = asked(broker)
    assert decode(JoinGroupRequest, body, version).group_id == "g"
    course.beating.add(member)
    unknown = correlated(encode(HeartbeatResponse(error_code=25), members.HEARTBEAT_VERSION))
    with pytest.raises(RuntimeError, match="error 25"):
        course(member, unknown)


def test_an_answer_in_pieces_is_put_together(pair: tuple[Member, socket.socket]) -> None:
    """None until the last byte has come."""
    member, broker = pair
    broker.sendall(struct.pack(">i", 6) + b"abc")
    assert member.receive() is None
    broker.sendall(b"def")
    assert member.receive() == b"abcdef"
    broker.close()
    with pytest.raises(EOFError):
        member.receive()
