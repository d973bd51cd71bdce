"""What one request of a group's member costs by its fast route and by its handler, in process.

    .venv/bin/python -m benchmarks.group_path [ROUNDS]

A broker is started in this process, and frames go to two dispatchers, one with and one without fast
routes. They take turns, a round each of thread time, and what counts is the ratio of a pair: so
other programs slow down both.
"""

from __future__ import annotations

import asyncio
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from statistics import median
from typing import Any, Final

from barnabas_broker.security.authorizer import AllowAll
from barnabas_broker.server.node.broker_server import BrokerServer
from barnabas_broker.server.requests.dispatch import Dispatcher, Reply
from barnabas_broker.server.requests.pending_responses import PendingResponse
from barnabas_kafka.protocol import codec
from barnabas_kafka.protocol.headers import RequestHeader, encode_request_header
from barnabas_kafka.protocol.messages.find_coordinator import FindCoordinatorRequest
from barnabas_kafka.protocol.messages.heartbeat import HeartbeatRequest
from barnabas_kafka.protocol.messages.join_group import (
    JoinGroupRequest,
    JoinGroupRequestProtocol,
    JoinGroupResponse,
)
from barnabas_kafka.protocol.messages.sync_group import (
    SyncGroupRequest,
    SyncGroupRequestAssignment,
    SyncGroupResponse,
)
from barnabas_kafka.protocol.registry import api
from barnabas_kafka.protocol.schema import Message
from barnabas_kafka.settings.broker import BrokerSettings
from benchmarks.produce_path import now_ms

CALLS: Final = 2000
MEMBERS: Final = 100
FIRST_JOIN_VERSION: Final = 3
"""The last in which a member gets its id with its first answer."""
JOIN_VERSION: Final = 9
SYNC_VERSION: Final = 5
HEARTBEAT_VERSION: Final = 4
METADATA: Final = bytes(100)
SETTINGS: Final = {
    "listeners": "PLAINTEXT://127.0.0.1:0",
    "broker.id": "0",
    "group.initial.rebalance.delay.ms": "200",
    "offsets.topic.num.partitions": "1",
}


def frame_of(request: Message, version: int) -> memoryview:
    """The request as it is received."""
    header = RequestHeader(request.api_key, version, 1, "benchmark")
    return memoryview(encode_request_header(header) + codec.encode(request, version))


async def answer(dispatcher: Dispatcher, request: Message, version: int) -> Any:
    """The response to a request, without its header."""
    reply: Any = dispatcher.serve(
        frame_of(request, version), dispatcher.caller("PLAINTEXT", "127.0.0.1")
    )
    while isinstance(reply, Reply):
        await asyncio.wait({reply.future})
        reply = dispatcher.encode(reply, reply.future)
    of = api(request.api_key)
    data = b"".join(bytes(each) for each in reply)
    skipped = 8 + (of.response_header_version(version) > 0)
    return codec.decode_from(of.response, memoryview(data), version, skipped)[0]


def joining(member_id: str, group: str = "group") -> JoinGroupRequest:
    """As a consumer joins."""
    return JoinGroupRequest(
        group_id=group,
        session_timeout_ms=300_000,
        rebalance_timeout_ms=300_000,
        member_id=member_id,
        protocol_type="consumer",
        protocols=[JoinGroupRequestProtocol(name="range", metadata=METADATA)],
    )


async def form(dispatcher: Dispatcher) -> tuple[JoinGroupResponse, JoinGroupResponse]:
    """A stable group of two: what its leader and its follower were answered."""
    find = FindCoordinatorRequest(key="group", key_type=0)
    while (await answer(dispatcher, find, 1)).error_code:  # Its topic is created first.
        pass
    first = await answer(dispatcher, joining(""), 3)
    while first.error_code:  # Its partition is loaded first.
        first = await answer(dispatcher, joining(""), 3)
    both = (joining(""), joining(first.member_id))
    answers = await asyncio.gather(*(answer(dispatcher, each, 3) for each in both))
    leader, follower = sorted(answers, key=lambda it: it.member_id != it.leader)
    assigned = [
        SyncGroupRequestAssignment(member_id=each.member_id, assignment=METADATA)
        for each in answers
    ]
    sync = SyncGroupRequest(
        group_id="group",
        generation_id=leader.generation_id,
        member_id=leader.member_id,
        assignments=assigned,
    )
    await answer(dispatcher, sync, 3)
    return leader, follower


def requests_of(follower: JoinGroupResponse) -> dict[str, tuple[Message, int]]:
    """What a follower of a stable group sends, in the newest versions; nothing is changed by it."""
    generation, member = follower.generation_id, follower.member_id
    named: dict[str, Any] = {"group_id": "group", "generation_id": generation, "member_id": member}
    sync = SyncGroupRequest(**named, protocol_type="consumer", protocol_name="range")
    return {
        "Heartbeat": (HeartbeatRequest(**named), HEARTBEAT_VERSION),
        "JoinGroup": (joining(member), JOIN_VERSION),
        "SyncGroup": (sync, SYNC_VERSION),
    }


def microseconds(serve: Callable[[], object]) -> float:
    """Thread time of one call."""
    began = time.thread_time_ns()
    for _ in range(CALLS):
        serve()
    return (time.thread_time_ns() - began) / CALLS / 1000


class Inbox:
    """Takes responses as a session does, which answers what has waited."""

    def __init__(self, dispatcher: Dispatcher) -> None:
        self._dispatcher = dispatcher
        self._caller = dispatcher.caller("PLAINTEXT", "127.0.0.1")
        self._frames: list[bytes] = []
        self._missing = 0
        self._whole = asyncio.Event()
        self.spent_ns = 0

    def answer(self, request: PendingResponse) -> None:
        """As `pending_responses.Connection`."""
        self._add(request.encoded())

    def _add(self, frame: bytes) -> None:
        self._frames.append(frame)
        self._missing -= 1
        if self._missing == 0:
            self._whole.set()

    async def ask(self, requests: Sequence[Message], response: type[Any], version: int) -> Any:
        """What they are answered, in whatever order; reading and writing here is not counted."""
        self._frames = []
        frames = [frame_of(request, version) for request in requests]
        began = time.thread_time_ns()
        for frame in frames:
            self._take(self._dispatcher.serve(frame, self._caller))
        self._missing = len(frames) - len(self._frames)
        if self._missing:
            self._whole.clear()
            await self._whole.wait()
        self.spent_ns += time.thread_time_ns() - began
        skipped = 8 + (api(response.api_key).response_header_version(version) > 0)
        return [
            codec.decode_from(response, memoryview(it), version, skipped)[0] for it in self._frames
        ]

    def _take(self, reply: Any) -> None:
        if isinstance(reply, PendingResponse):
            reply.session = self
        elif isinstance(reply, Reply):
            encode = partial(self._dispatcher.encode, reply)
            reply.future.add_done_callback(lambda future: self._take(encode(future)))
        else:
            self._add(b"".join(map(bytes, reply)))


async def rebalance(inbox: Inbox, group: str, members: list[str]) -> float:
    """Microseconds of thread time that each member took in a rebalance; its leader is first."""
    inbox.spent_ns = 0
    version = JOIN_VERSION if members[0] else FIRST_JOIN_VERSION
    joined = await inbox.ask([joining(it, group) for it in members], JoinGroupResponse, version)
    leader = joined[0].leader
    # Followers first: they wait for the leader.
    members[:] = sorted((it.member_id for it in joined), key=leader.__eq__)
    assigned = [SyncGroupRequestAssignment(member_id=it, assignment=METADATA) for it in members]
    syncs = [
        SyncGroupRequest(
            group_id=group,
            generation_id=joined[0].generation_id,
            member_id=member,
            protocol_type="consumer",
            protocol_name="range",
            assignments=assigned if member == leader else [],
        )
        for member in members
    ]
    synced = await inbox.ask(syncs, SyncGroupResponse, SYNC_VERSION)
    if any(it.error_code for it in (*joined, *synced)):
        raise RuntimeError(f"{group}: {joined[0]} {synced[0]}")
    members.reverse()
    return inbox.spent_ns / len(members) / 1000


async def rebalances(fast: Dispatcher, slow: Dispatcher, rounds: int) -> list[tuple[float, float]]:
    """Of two groups in turn, one by each dispatcher."""
    arms = [(Inbox(it), f"group {n}", [""] * MEMBERS) for n, it in enumerate((fast, slow))]
    pairs = []
    for _ in range(rounds + 1):
        seen = [await rebalance(*arm) for arm in arms]
        pairs.append((seen[0], seen[1]))
    return pairs[1:]


def show(name: str, pairs: Sequence[tuple[float, float]]) -> None:
    """A line of the table."""
    ratios = sorted(handler / route for route, handler in pairs)
    best = [min(times) for times in zip(*pairs, strict=True)]
    print(
        f"| {name} | {best[0]:.2f} us | {best[1]:.2f} us | "
        f"{median(ratios):.2f} ({ratios[0]:.2f} to {ratios[-1]:.2f}) |"
    )


async def measure(directory: str, rounds: int) -> None:
    """Start a broker, form a group, let both dispatchers take turns, print."""
    node = BrokerServer(BrokerSettings.from_mapping({**SETTINGS, "log.dirs": directory}))
    await node.start()
    try:
        of: dict[str, Any] = {
            "authorizer": AllowAll(),
            "quotas": node.broker.quotas,
            "clock_ms": now_ms,
        }
        without = [replace(each, fast=None, fast_run=None) for each in node.broker.handlers]
        fast = Dispatcher(node.broker, node.broker.handlers, **of)
        slow = Dispatcher(node.broker, without, **of)
        _, follower = await form(slow)
        caller = fast.caller("PLAINTEXT", "127.0.0.1")
        print("| Request | Fast route | Handler | Ratio (lowest to highest) |\n|---|---|---|---|")
        for name, (request, version) in requests_of(follower).items():
            frame = frame_of(request, version)
            calls: list[Callable[[], object]] = [
                partial(it.serve, frame, caller) for it in (fast, slow)
            ]
            answers: list[Any] = [call() for call in calls]
            sent = [b"".join(map(bytes, each)) for each in answers]
            if sent[0] != sent[1] or (await answer(slow, request, version)).error_code:
                raise RuntimeError(f"{name}: {sent}")
            pairs = [(microseconds(calls[0]), microseconds(calls[1])) for _ in range(rounds)]
            show(name, pairs)
        show(f"Rebalance of {MEMBERS}, each member", await rebalances(fast, slow, rounds))
    finally:
        await node.stop()


def main() -> int:
    """Print a table."""
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 41
    with tempfile.TemporaryDirectory(prefix="barnabas-group-") as directory:
        asyncio.run(measure(directory, rounds))
    return 0


if __name__ == "__main__":
    sys.exit(main())
