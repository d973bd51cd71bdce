"""Members of consumer groups on bare sockets, hundreds of them in one process.

Each has a connection of its own, as consumers have, and at most one request in flight. What a
member does next is a plain function of the answer that it got, so a whole group is taken through a
rebalance by one loop that waits for all connections at once. Versions are the last ones without
tagged fields, so error codes are found without decoding.
"""

from __future__ import annotations

import select
import socket
import struct
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Final

from barnabas_kafka.protocol.codec import decode, encode
from barnabas_kafka.protocol.messages.find_coordinator import FindCoordinatorRequest
from barnabas_kafka.protocol.messages.heartbeat import HeartbeatRequest
from barnabas_kafka.protocol.messages.join_group import (
    JoinGroupRequest,
    JoinGroupRequestProtocol,
    JoinGroupResponse,
)
from barnabas_kafka.protocol.messages.leave_group import LeaveGroupRequest, MemberIdentity
from barnabas_kafka.protocol.messages.sync_group import (
    SyncGroupRequest,
    SyncGroupRequestAssignment,
)
from barnabas_kafka.protocol.schema import Request
from benchmarks.workers import frames
from benchmarks.workers.raw import STALLED_AFTER, connect

JOIN_VERSION: Final = 5
SYNC_VERSION: Final = 3
HEARTBEAT_VERSION: Final = 3
LEAVE_VERSION: Final = 3
FIND_VERSION: Final = 2

NOT_YET: Final = frozenset({14, 15, 16})
"""Coordinator loading, not available, not here: ask again."""
REBALANCING: Final = 27
MEMBER_ID_REQUIRED: Final = 79

SESSION_MS: Final = 45_000
REBALANCE_MS: Final = 60_000
# What the range assignor's members say and are given for one topic; the broker reads neither.
SUBSCRIPTION: Final = b"\x00\x01\x00\x00\x00\x01\x00\x0bbench-topic\xff\xff\xff\xff\x00\x00\x00\x00"
ASSIGNMENT: Final = (
    b"\x00\x01\x00\x00\x00\x01\x00\x0bbench-topic\x00\x00\x00\x01\x00\x00\x00\x07\xff\xff\xff\xff"
)

Answered = Callable[["Member", bytes], bool]
"""Told of a member's answer (from the correlation id on); returns whether the member is done."""


@dataclass(slots=True, eq=False)
class Member:
    """One member with its connection, and what it knows of its group."""

    connection: socket.socket
    group: str
    id: str = ""
    generation: int = -1
    leads: bool = False
    peers: list[str] = field(default_factory=list)
    _received: bytearray = field(default_factory=bytearray)

    def send(self, request: Request, version: int) -> None:
        """Send a request."""
        frame = frames.framed(type(request).api_key, version, encode(request, version))
        self.connection.sendall(frame)

    def join(self) -> None:
        """Send JoinGroup under the id that it has."""
        request = JoinGroupRequest(
            group_id=self.group,
            session_timeout_ms=SESSION_MS,
            rebalance_timeout_ms=REBALANCE_MS,
            member_id=self.id,
            protocol_type="consumer",
            protocols=[JoinGroupRequestProtocol(name="range", metadata=SUBSCRIPTION)],
        )
        self.send(request, JOIN_VERSION)

    def joined(self, answer: bytes) -> None:
        """Take up the generation of a JoinGroup answer."""
        response = decode(JoinGroupResponse, answer[4:], JOIN_VERSION)
        self.id, self.generation = response.member_id, response.generation_id
        self.leads = response.leader == self.id
        self.peers = [peer.member_id for peer in response.members]

    def sync(self) -> None:
        """Send SyncGroup, as the leader with everybody's assignment."""
        assignments = [
            SyncGroupRequestAssignment(member_id=peer, assignment=ASSIGNMENT) for peer in self.peers
        ]
        request = SyncGroupRequest(
            group_id=self.group,
            generation_id=self.generation,
            member_id=self.id,
            assignments=assignments,
        )
        self.send(request, SYNC_VERSION)

    def heartbeat(self) -> None:
        """Send Heartbeat."""
        request = HeartbeatRequest(
            group_id=self.group, generation_id=self.generation, member_id=self.id
        )
        self.send(request, HEARTBEAT_VERSION)

    def receive(self) -> bytes | None:
        """An answer from its correlation id on, None while it is not all there."""
        got = self.connection.recv(1 << 18)
        if not got:
            raise EOFError("the broker closed the connection")
        self._received += got
        if len(self._received) < 4:
            return None
        (size,) = struct.unpack_from(">i", self._received)
        if len(self._received) < 4 + size:
            return None
        answer = bytes(self._received[4 : 4 + size])
        del self._received[: 4 + size]
        return answer


def error_in(answer: bytes, *, after: int = 8) -> int:
    """The error code after the correlation id and, with the default, the throttle time."""
    (code,) = struct.unpack_from(">h", answer, after)
    return int(code)


class Crowd:
    """Members, waited for together."""

    def __init__(self, members: Sequence[Member]) -> None:
        self.members = members
        self._poller = select.epoll()
        self._by_descriptor = {member.connection.fileno(): member for member in members}
        for descriptor in self._by_descriptor:
            self._poller.register(descriptor, select.EPOLLIN)

    def until_all(self, answered: Answered) -> None:
        """Hand out answers until all members are done."""
        waiting = len(self.members)
        while waiting:
            ready = self._poller.poll(STALLED_AFTER)
            if not ready:
                raise TimeoutError(f"no answer for {STALLED_AFTER:g} s, {waiting} members wait")
            for descriptor, _ in ready:
                member = self._by_descriptor[descriptor]
                answer = member.receive()
                if answer is not None and answered(member, answer):
                    waiting -= 1

    def form(self) -> None:
        """Have all join their groups and be given something."""
        for member in self.members:
            member.join()
        self.until_all(Rebalance())

    def rebalance(self) -> None:
        """One rebalance of one group: the leader joins again, the others hear of it and follow."""
        for member in self.members:
            if member.leads:
                member.join()
        course = Rebalance()
        for member in self.members:
            if not member.leads:
                course.beating.add(member)
                member.heartbeat()
        self.until_all(course)

    def leave(self) -> None:
        """Leave, each group at once, so that nothing of it is left to be timed."""
        by_group: dict[str, list[Member]] = {}
        for member in self.members:
            by_group.setdefault(member.group, []).append(member)
        for group, members in by_group.items():
            leavers = [MemberIdentity(member_id=member.id) for member in members]
            request = LeaveGroupRequest(group_id=group, members=leavers)
            members[0].send(request, LEAVE_VERSION)
            while members[0].receive() is None:
                continue


class Rebalance:
    """What members do in a rebalance: hear of it, join, sync."""

    def __init__(self) -> None:
        self.beating: set[Member] = set()
        self._syncing: set[Member] = set()

    def __call__(self, member: Member, answer: bytes) -> bool:
        """One step of one member."""
        if member in self.beating:
            return self._heard(member, error_in(answer))
        if member in self._syncing:
            code = error_in(answer)
            if code:
                raise RuntimeError(f"SyncGroup answered error {code}")
            return True
        return self._joined(member, answer)

    def _heard(self, member: Member, code: int) -> bool:
        if code == REBALANCING:
            self.beating.discard(member)
            member.join()
        elif code == 0:  # Too early.
            member.heartbeat()
        else:
            raise RuntimeError(f"Heartbeat answered error {code}")
        return False

    def _joined(self, member: Member, answer: bytes) -> bool:
        code = error_in(answer)
        if code == MEMBER_ID_REQUIRED:
            member.joined(answer)
            member.join()
        elif code in NOT_YET:
            member.join()
        elif code:
            raise RuntimeError(f"JoinGroup answered error {code}")
        else:
            member.joined(answer)
            self._syncing.add(member)
            member.sync()
        return False


def await_coordinator(bootstrap: str, group: str) -> None:
    """Have the topic of offsets made, and wait until a group has its coordinator."""
    member = Member(connect(bootstrap), group)
    give_up_at = time.monotonic() + STALLED_AFTER
    while True:
        member.send(FindCoordinatorRequest(key=group), FIND_VERSION)
        answer = None
        while answer is None:
            answer = member.receive()
        code = error_in(answer)
        if not code:
            break
        if code not in NOT_YET or time.monotonic() > give_up_at:
            raise RuntimeError(f"FindCoordinator answered error {code}")
        time.sleep(0.05)
    member.connection.close()
