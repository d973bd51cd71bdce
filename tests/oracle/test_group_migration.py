"""Apache Kafka 4 and Barnabas take groups from one protocol to the other (KIP-848)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from difflib import ndiff
from itertools import count, groupby
from operator import itemgetter
from typing import Any, Final
from uuid import UUID

import pytest

from barnabas_broker.coordinator.group.consumer.records import ConsumerRecord, Kind
from barnabas_broker.coordinator.group.records import GroupRecord, Plain, decode
from barnabas_kafka.errors import ErrorCode
from barnabas_kafka.protocol.consumer_protocol import (
    Assignment,
    Subscription,
    TopicPartitions,
    read_assignment,
)
from barnabas_kafka.protocol.embedded import pack
from barnabas_kafka.protocol.embedded_consumers import ConsumerGroupMetadataValue
from barnabas_kafka.protocol.messages import consumer_group_heartbeat as consumers
from barnabas_kafka.protocol.messages.consumer_group_describe import ConsumerGroupDescribeRequest
from barnabas_kafka.protocol.messages.describe_groups import DescribeGroupsRequest
from barnabas_kafka.protocol.messages.fetch import FetchResponse
from barnabas_kafka.protocol.messages.find_coordinator import FindCoordinatorRequest
from barnabas_kafka.protocol.messages.heartbeat import HeartbeatRequest
from barnabas_kafka.protocol.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from barnabas_kafka.protocol.messages.leave_group import LeaveGroupRequest, MemberIdentity
from barnabas_kafka.protocol.messages.list_groups import ListGroupsRequest
from barnabas_kafka.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from barnabas_kafka.protocol.messages.sync_group import (
    SyncGroupRequest,
    SyncGroupRequestAssignment,
)
from barnabas_kafka.records import batch
from tests.clients.brokers import Barnabas
from tests.clients.wire import Wire, fetch
from tests.oracle.apache import ApacheKRaft
from tests.oracle.sides import Side, named
from tests.waiting import wait_for

pytestmark = pytest.mark.jvm

SETTINGS: Final = {
    "offsets.topic.num.partitions": "1",
    "group.initial.rebalance.delay.ms": "0",
    # Nobody is put out for being slow.
    "group.consumer.session.timeout.ms": "240000",
    "group.consumer.max.session.timeout.ms": "240000",
}
SLOW_MS: Final = 240_000
STRATEGY: Final = "cooperative-sticky"
PASSING: Final = {
    ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    ErrorCode.NOT_COORDINATOR,
}


@dataclass
class Scene:
    """One broker, a topic of two partitions, and what is said in one group of two members."""

    side: Side
    group: str
    topic: str
    id: UUID
    reported: list[tuple[str, Any]] = field(default_factory=list)
    member: str = ""
    generation: int = -1
    owned: list[int] = field(default_factory=list)
    drawn: dict[str, str] = field(default_factory=dict)

    def hear(self, label: str, request: Any, version: int) -> Any:
        """Ask, and keep the answer."""
        answer = self.side.ask(f"{self.group}: {label}", request, version)
        self.reported.append((label, self.side.reported[f"{self.group}: {label}"]))
        return answer

    # --- the classic member

    def join(self, label: str, **fields: Any) -> Any:
        owned = [TopicPartitions(topic=self.topic, partitions=self.owned)] if self.owned else []
        metadata = pack(Subscription(topics=[self.topic], owned_partitions=owned), 1)
        request = JoinGroupRequest(
            group_id=self.group,
            member_id=self.member,
            protocol_type="consumer",
            session_timeout_ms=SLOW_MS,
            rebalance_timeout_ms=SLOW_MS,
            protocols=[JoinGroupRequestProtocol(name=STRATEGY, metadata=metadata)],
            **fields,
        )
        answer = self.hear(label, request, 5)
        self.member, self.generation = answer.member_id, answer.generation_id
        self.drawn.setdefault(self.member, f"member {len(self.drawn) + 1}")
        return answer

    def enter(self, label: str) -> None:
        """Join in two steps."""
        self.join(f"{label} asks for an id")
        self.join(label)

    def sync(self, label: str, *partitions: int) -> None:
        """Fetch the assignment, or hand one out that gives these to itself."""
        share = [TopicPartitions(topic=self.topic, partitions=list(partitions))]
        assigned = pack(Assignment(assigned_partitions=share), 1)
        assignments = [SyncGroupRequestAssignment(member_id=self.member, assignment=assigned)]
        request = SyncGroupRequest(
            group_id=self.group,
            generation_id=self.generation,
            member_id=self.member,
            protocol_type="consumer",
            protocol_name=STRATEGY,
            assignments=assignments if partitions else [],
        )
        answer = self.hear(label, request, 5)
        if answer.error_code == ErrorCode.NONE:
            reported = read_assignment(answer.assignment).assigned_partitions
            self.owned = sorted(number for each in reported for number in each.partitions)
            self.reported.append(("reads", self.owned))

    def beat(self, label: str) -> None:
        request = HeartbeatRequest(
            group_id=self.group, generation_id=self.generation, member_id=self.member
        )
        self.hear(label, request, 4)

    def commit(self, label: str, member: str, epoch: int, version: int) -> None:
        partition = OffsetCommitRequestPartition(partition_index=0, committed_offset=7)
        request = OffsetCommitRequest(
            group_id=self.group,
            member_id=member,
            generation_id_or_member_epoch=epoch,
            topics=[OffsetCommitRequestTopic(name=self.topic, partitions=[partition])],
        )
        self.hear(label, request, version)

    # --- the member of the consumer protocol

    def speak(self, label: str, member: str, epoch: int, **fields: Any) -> Any:
        if epoch == 0:
            fields = {
                "rebalance_timeout_ms": SLOW_MS,
                "subscribed_topic_names": [self.topic],
                "server_assignor": "range",
                "topic_partitions": [],
                **fields,
            }
        request = consumers.ConsumerGroupHeartbeatRequest(
            group_id=self.group, member_id=member, member_epoch=epoch, **fields
        )
        return self.hear(label, request, 1)

    def owns(self, *partitions: int) -> list[consumers.TopicPartitions]:
        if not partitions:
            return []
        return [consumers.TopicPartitions(topic_id=self.id, partitions=list(partitions))]

    # --- both

    def look(self, label: str) -> None:
        """What anybody is shown of the group."""
        self.hear(f"{label}, described", ConsumerGroupDescribeRequest(group_ids=[self.group]), 1)
        self.side.ask(f"{self.group}: {label}, listed", ListGroupsRequest(), 5)
        listed = self.side.reported[f"{self.group}: {label}, listed"]["groups"]
        found = [each for each in listed if each["group_id"] == self.group]
        self.reported.append((f"{label}, listed", found))


def up_and_down(scene: Scene) -> None:
    """A classic member, another of the consumer protocol that comes and goes, and the end."""
    scene.enter("classic joins")
    scene.sync("classic leads", 0, 1)
    scene.speak("new joins", "~", 0)
    scene.look("both are there")
    scene.beat("classic hears of it")
    scene.join("classic joins again")
    scene.sync("classic is told less")
    scene.speak("new waits", "~", 2)
    scene.join("classic has let go")
    scene.sync("classic is done")
    scene.speak("new gets the rest", "~", 2)
    scene.beat("classic is at rest")
    scene.commit("classic commits", scene.member, scene.generation, 8)
    scene.commit("classic commits in the wrong generation", scene.member, 1, 8)
    scene.commit("new commits", "~", 2, 9)
    scene.look("all is settled")
    scene.speak("new leaves", "~", -1)
    scene.look("classic is alone")
    scene.beat("classic hears of that")
    scene.join("classic joins the classic group")
    scene.sync("classic leads again", 0, 1)
    scene.beat("classic is at rest again")


def static_members(scene: Scene) -> None:
    """A static member changes its protocol there and back, and keeps what it reads."""
    scene.join("classic joins", group_instance_id="i")
    scene.sync("classic leads", 0, 1)
    scene.speak("it comes in the new protocol", "~", 0, instance_id="i")
    scene.look("it is new")
    scene.speak("it is told nothing new", "~", 1, instance_id="i")
    scene.member = ""
    scene.join("it comes in the old protocol", group_instance_id="i")
    scene.sync("it is told what it had")
    scene.look("it is old")


def refused(scene: Scene) -> None:
    """What members of either protocol may not do in a group of both."""
    scene.speak("new joins", "~", 0)
    scene.enter("classic joins")
    mine, scene.member = scene.member, "nobody"
    scene.beat("nobody beats")
    scene.sync("nobody syncs")
    scene.member = "~"
    scene.beat("new beats like a classic one")
    scene.member, epoch = mine, scene.generation
    scene.generation = 99
    scene.beat("classic beats in the wrong generation")
    scene.sync("classic syncs in the wrong generation")
    scene.generation = epoch
    metadata = pack(Subscription(topics=[scene.topic]), 1)
    for kind, name in (("connect", STRATEGY), ("consumer", "another")):
        request = JoinGroupRequest(
            group_id=scene.group,
            protocol_type=kind,
            session_timeout_ms=SLOW_MS,
            rebalance_timeout_ms=SLOW_MS,
            protocols=[JoinGroupRequestProtocol(name=name, metadata=metadata)],
            member_id=mine,
        )
        scene.hear(f"{kind} {name}", request, 5)
    for label, ids in (("two leave", ("nobody", mine)), ("new is removed", ("~",))):
        leavers = [MemberIdentity(member_id=each) for each in ids]
        scene.hear(label, LeaveGroupRequest(group_id=scene.group, members=leavers), 4)
    scene.speak("new goes on", "~", 2, topic_partitions=scene.owns())
    scene.look("nobody is left")


QUESTIONS: Final = (up_and_down, static_members, refused)


@pytest.fixture(scope="module")
def sides(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Side, Side]]:
    """Apache's broker and ours, with the same settings."""
    with (
        ApacheKRaft(overrides=SETTINGS) as apache,
        Barnabas(tmp_path_factory.mktemp("barnabas"), {"broker.id": "0"} | SETTINGS) as barnabas,
    ):
        yield Side(apache.bootstrap), Side(barnabas.bootstrap)


@pytest.mark.parametrize("question", QUESTIONS, ids=lambda question: question.__name__)
def test_answers_and_records_are_the_same(
    sides: tuple[Side, Side], question: Callable[[Scene], None]
) -> None:
    """What members are told, and what `__consumer_offsets` remembers, in the same order.

    But for what each broker draws, the order of members, and the topics' metadata: Apache writes a
    hash of that since 4.1, as a part of another record, and reads what it wrote before.
    """
    scenarios = []
    for side in sides:
        _await_coordinator(side)
        name = question.__name__
        topic = side.topic(f"topic-{name}", partitions=2)
        scene = Scene(side, name, topic, side.id_of(topic))
        _await_topic(scene)
        try:
            question(scene)
        finally:
            side.close()
        drawn = {repr(scene.id): "the topic", **scene.drawn}
        reported = [f"{label}: {named(answer, drawn)}" for label, answer in scene.reported]
        records = (decode(*entry) for entry in _records(side.bootstrap))
        written = [
            (kind, _without(line, drawn))
            for kind, line in (_shown(each) for each in records if each and each.group_id == name)
        ]
        # Members stand in the order of Apache's hash maps.
        for _, lines in groupby(written, key=itemgetter(0)):
            reported += sorted(line for _, line in lines if line)
        scenarios.append(reported)
    parted = [line for line in ndiff(scenarios[0], scenarios[1]) if line[0] in "+-"]
    assert not parted, "\n".join(["", *parted])


def _await_coordinator(side: Side) -> None:
    """Have the topic of groups created, and its partition led and loaded."""
    side.wait(
        FindCoordinatorRequest(coordinator_keys=["probe"]),
        4,
        settled=lambda answer: not answer.coordinators[0].error_code,
    )
    side.wait(
        DescribeGroupsRequest(groups=["probe"]),
        5,
        settled=lambda answer: answer.groups[0].error_code not in PASSING,
    )


def _await_topic(scene: Scene) -> None:
    """Have the coordinator know the topic: Apache tells it a little later."""
    probe = Scene(scene.side, f"probe of {scene.group}", scene.topic, scene.id)
    attempts = count()
    wait_for(
        f"partitions of {scene.topic} in an assignment",
        lambda: probe.speak(f"attempt {next(attempts)}", "p", 0),
        until=lambda it: it.assignment is not None and it.assignment.topic_partitions,
    )


def _records(bootstrap: str) -> list[tuple[bytes, bytes | None]]:
    """Everything in `__consumer_offsets`."""
    found: list[tuple[bytes, bytes | None]] = []
    offset = 0
    with Wire(bootstrap) as wire:
        while True:
            answer = wire.ask(fetch("__consumer_offsets", offset), FetchResponse, 11)
            data = answer.responses[0].partitions[0].records
            if not data:
                return found
            assert isinstance(data, (bytes, memoryview))
            for position, header in batch.headers(data, allow_partial=True):
                found += [
                    (bytes(each.key or b""), None if each.value is None else bytes(each.value))
                    for each in batch.records(memoryview(data), position)
                ]
                offset = header.next_offset


def _shown(record: Plain) -> tuple[str, str]:
    """The kind of a record, and the record in words, which are empty where it is not compared."""
    if isinstance(record, ConsumerRecord):
        kind = record.kind.name
        if record.kind is Kind.TOPICS:
            return kind, ""
        if isinstance(record.value, ConsumerGroupMetadataValue):
            record.value.metadata_hash = 0
    elif isinstance(record, GroupRecord):
        kind = "classic"
        if record.metadata is not None:
            if not record.metadata.generation:
                return kind, ""  # Apache 4 writes that there will be a group; 3.9 does not.
            record.metadata.current_state_timestamp = 0
    else:
        return "offset", "an offset"
    return kind, repr(record)


def _without(line: str, drawn: dict[str, str]) -> str:
    """A line without what a broker draws."""
    for text, instead in drawn.items():
        line = line.replace(text, instead)
    return line
