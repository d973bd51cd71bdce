"""A shard with topics, a clock that only scenarios move, and members of the consumer protocol.

`Actor` does what a client does: it sends what it owns, gives up what it is told to give up, and
begins anew where it is fenced.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any
from uuid import UUID

from barnabas_broker.coordinator.group.consumer.group import ConsumerGroup
from barnabas_broker.coordinator.group.consumer.heartbeat import Beat
from barnabas_broker.coordinator.group.consumer.records import Partitions
from barnabas_broker.coordinator.group.limits import ConsumerLimits
from barnabas_broker.coordinator.group.members import Client
from barnabas_broker.coordinator.group.records import KIND, Record, decode
from barnabas_kafka.errors import ErrorCode
from barnabas_kafka.protocol.consumer_protocol import Subscription, read_assignment
from barnabas_kafka.protocol.consumer_protocol import TopicPartitions as TopicPartitionsByName
from barnabas_kafka.protocol.embedded import pack
from barnabas_kafka.protocol.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
    TopicPartitions,
)
from tests.broker.coordinator.group.consumer.topics import Topics, read_target
from tests.broker.coordinator.group.scenarios import TEAM, Scenario

SESSION_MS = 45_000
REBALANCE_MS = 30_000


class ConsumerScenario(Topics, Scenario):
    """One group's life in a shard with topics; keywords are limits of the consumer protocol."""

    def __init__(self, topics: dict[str, int], **limits: Any) -> None:
        super().__init__(consumers=replace(ConsumerLimits(), **limits))
        for name, partitions in topics.items():
            self.put_topic(name, partitions)

    def new_id(self) -> str:
        self.ids += 1
        return f"made-{self.ids}"

    @property
    def consumers(self) -> ConsumerGroup:
        consumers = self.group.consumers
        assert consumers is not None
        return consumers

    def partitions(self, name: str) -> Partitions:
        known = self.image.topics[name]
        return frozenset((known.id, each) for each in range(len(known.partitions)))

    def beat(
        self, member_id: str, epoch: int, *, version: int = 1, **fields: Any
    ) -> ConsumerGroupHeartbeatResponse:
        """Send a heartbeat, and give its answer; a first one says what it must."""
        self.asked += 1
        if epoch == 0:
            first = {"rebalance_timeout_ms": REBALANCE_MS, "topic_partitions": []}
            fields = {**first, "subscribed_topic_names": ["t"], **fields}
        request = ConsumerGroupHeartbeatRequest(
            group_id=TEAM, member_id=member_id, member_epoch=epoch, **fields
        )
        beat = Beat(
            request=request,
            version=version,
            client=Client("client", "/10.0.0.1"),
            waiter=self.asked,
            visible=lambda name: not name.startswith("secret"),
        )
        self.perform(self.shard.consumer_heartbeat(beat, self.now_ms))
        response: ConsumerGroupHeartbeatResponse = self.answers[self.asked]
        return response

    def refusal(self, member_id: str, epoch: int, **fields: Any) -> ErrorCode:
        """What a heartbeat is answered."""
        return ErrorCode(self.beat(member_id, epoch, **fields).error_code)

    def restart(self) -> None:
        """Go on with a shard that was read back from the bytes that were written."""
        self.shard = self._shard()
        for record in self.written:
            read = decode(*_readable(record))
            assert read == record
            self.shard.replay(read, self.now_ms)
        self.shard.on_image(self.image)
        for result in self.shard.loaded(self.now_ms):
            self.perform(result)


def _readable(record: Record) -> tuple[bytes, bytes | None]:
    return KIND.encode(record)


class Actor:
    """A client of the protocol, as its rules ask."""

    def __init__(self, scenario: ConsumerScenario, member_id: str, **first: Any) -> None:
        self.scenario = scenario
        self.id = member_id
        self.first = first
        self.epoch = 0
        self.owned: Partitions = frozenset()
        self.reported: Partitions = frozenset()

    @property
    def reads(self) -> list[int]:
        """The numbers of the partitions that it owns."""
        return sorted(number for _, number in self.owned)

    def beat(self) -> ErrorCode:
        """One heartbeat; what it is told to read it reads from then on."""
        fields: dict[str, Any] = {"topic_partitions": _listed(self.owned)}
        if self.epoch == 0:
            self.owned = self.reported = frozenset()
            fields = dict(self.first)
        response = self.scenario.beat(self.id, self.epoch, **fields)
        code = ErrorCode(response.error_code)
        if code in (ErrorCode.FENCED_MEMBER_EPOCH, ErrorCode.UNKNOWN_MEMBER_ID):
            self.epoch = 0
            self.owned = self.reported = frozenset()
        elif code is ErrorCode.NONE:
            self.epoch = response.member_epoch
            if response.assignment is not None:
                self.reported = read_target(response.assignment)
                self.owned = self.reported
        return code

    def leave(self, epoch: int = -1) -> ErrorCode:
        instance = self.first.get("instance_id")
        self.epoch = 0
        self.owned = frozenset()
        return self.scenario.refusal(self.id, epoch, instance_id=instance)


class ClassicActor:
    """A client of the classic protocol with a cooperative assignor, or an eager one.

    It joins, syncs, beats, and joins again when it is told to or has let something go.
    """

    def __init__(
        self, scenario: ConsumerScenario, client: str, *, eager: bool = False, **first: Any
    ) -> None:
        self.scenario = scenario
        self.client = client
        self.eager = eager
        self.first = first
        self.id = ""
        self.generation = -1
        self.owned: Partitions = frozenset()
        self.leads = False
        self.asked = 0

    @property
    def reads(self) -> list[int]:
        """The numbers of the partitions that it owns."""
        return sorted(number for _, number in self.owned)

    @property
    def instance(self) -> str | None:
        return self.first.get("instance")

    def _metadata(self) -> bytes:
        owned = [] if self.eager else self._named()
        subscription = Subscription(topics=self.first.get("topics", ["t"]), owned_partitions=owned)
        return pack(subscription, 1)

    def _named(self) -> list[TopicPartitionsByName]:
        names = self.scenario.image.topic_ids
        return [
            TopicPartitionsByName(topic=names[each.topic_id], partitions=each.partitions)
            for each in _listed(self.owned)
        ]

    def join(self) -> Any:
        """JoinGroup, with the id that it asks for first; None while that waits."""
        if self.eager:
            self.owned = frozenset()
        self._ask_to_join()
        answer = self.hear()
        if answer is not None and answer.error_code == ErrorCode.MEMBER_ID_REQUIRED:
            self._ask_to_join()
            answer = self.hear()
        return answer

    def _ask_to_join(self) -> None:
        fields = {name: value for name, value in self.first.items() if name != "topics"}
        protocols = ("range",) if self.eager else ("cooperative-sticky",)
        self.asked = self.scenario.join(
            self.client, self.id, metadata=self._metadata(), protocols=protocols, **fields
        )

    def hear(self) -> Any:
        """The answer of its last JoinGroup, None while that waits."""
        answer = self.scenario.answer(self.asked)
        if answer is None:
            return None
        if answer.error_code == ErrorCode.UNKNOWN_MEMBER_ID:
            self.id, self.generation = "", -1
        elif answer.error_code in (ErrorCode.NONE, ErrorCode.MEMBER_ID_REQUIRED):
            self.id, self.generation = answer.member_id, answer.generation_id
            self.leads = bool(answer.leader) and answer.leader == answer.member_id
        return answer

    def sync(self, **assign: bytes) -> ErrorCode:
        """SyncGroup; what it is told to read it reads, and what it lacks it lets go."""
        asked = self.scenario.sync(
            self.id, generation=self.generation, assign=assign, group_instance_id=self.instance
        )
        answer = self.scenario.answer(asked)
        code = ErrorCode(answer.error_code)
        if code is ErrorCode.NONE:
            topics = self.scenario.image.topics
            self.owned = frozenset(
                (topics[each.topic].id, number)
                for each in read_assignment(answer.assignment).assigned_partitions
                for number in each.partitions
            )
        return code

    def beat(self) -> ErrorCode:
        """A heartbeat, and all that follows from its answer."""
        code = ErrorCode.REBALANCE_IN_PROGRESS
        if self.id and self.generation >= 0:
            code = self.scenario.heartbeat(
                self.id, generation=self.generation, instance=self.instance
            )
        if code in (ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.ILLEGAL_GENERATION):
            self.owned = frozenset()
            self.generation = -1
            if code is ErrorCode.UNKNOWN_MEMBER_ID:
                self.id = ""
        if code is not ErrorCode.NONE:
            had = self.owned
            answer = self.join()
            if answer is not None and answer.error_code == ErrorCode.NONE:
                self.sync()
            if had - self.owned and not self.eager:
                self.join()
                self.sync()
        return code

    def leave(self) -> ErrorCode:
        (code,) = self.scenario.leave((self.id, self.instance))
        self.id, self.generation, self.owned = "", -1, frozenset()
        return code


def _listed(partitions: Partitions) -> list[TopicPartitions]:
    topics: dict[UUID, list[int]] = {}
    for topic_id, number in sorted(partitions, key=lambda each: (each[0].int, each[1])):
        topics.setdefault(topic_id, []).append(number)
    return [
        TopicPartitions(topic_id=topic_id, partitions=numbers)
        for topic_id, numbers in topics.items()
    ]


def settle(*actors: Actor | ClassicActor, rounds: int = 8) -> None:
    """Let everybody speak in turn until all is as it shall be."""
    for _ in range(rounds):
        for actor in actors:
            actor.beat()
