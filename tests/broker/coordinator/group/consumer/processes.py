"""Consumers as processes: one request at a time, asked again when nothing is heard.

`Modern` is the client's side of the consumer protocol (KIP-848): it joins with epoch 0, gives up
what it is no longer assigned before it says so, begins anew with nothing where it is fenced, and
leaves. `Classic` joins, syncs, and lets go of everything first, or of what it is told to.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, ClassVar, Final

from barnabas_broker.coordinator.group.consumer.member import (
    ABSENT_EPOCH,
    JOINING_EPOCH,
    LEAVING_EPOCH,
    NOTHING,
)
from barnabas_broker.coordinator.group.consumer.records import Partitions, by_topic
from barnabas_kafka.errors import ErrorCode
from barnabas_kafka.protocol.consumer_protocol import (
    Subscription,
    TopicPartitions,
    read_assignment,
    read_subscription,
    write_assignment,
)
from barnabas_kafka.protocol.embedded import pack
from barnabas_kafka.protocol.messages import consumer_group_heartbeat as beats
from tests.broker.coordinator.group.consumer.topics import read_target
from tests.broker.coordinator.group.world import Request

if TYPE_CHECKING:
    from tests.broker.coordinator.group.consumer.scheduler import World

REBALANCE_MS: Final = 4000
ENDS: Final = (
    ErrorCode.FENCED_INSTANCE_ID, ErrorCode.UNRELEASED_INSTANCE_ID, ErrorCode.GROUP_ID_NOT_FOUND,
)  # fmt: skip
"""What a process ends at, so that it is started again."""
FENCED: Final = (ErrorCode.FENCED_MEMBER_EPOCH, ErrorCode.UNKNOWN_MEMBER_ID)


class Process(ABC):
    """What both kinds have in common. `epoch` is the generation in the classic protocol."""

    protocol: ClassVar[str]
    name = "client"

    def __init__(self, world: World, place: int, topics: tuple[str, ...]) -> None:
        self.world, self.place, self.topics = world, place, topics
        self.instance = "i0" if place == 0 else None
        self.member_id, self.epoch = "", -1
        self.owned: Partitions = NOTHING
        self.positions: dict[Any, int] = {}
        self.number = 0
        self.is_gone = self.is_asleep = self.leaves = False
        self.mail: list[tuple[Request, Any]] = []
        self.pending: Request

    # --- what the world does to it

    @abstractmethod
    def begin(self) -> None:
        """Join."""

    @abstractmethod
    def leave(self) -> None:
        """Stop in order."""

    def ask_again(self) -> None:
        """Nothing was heard for long, and what still comes is for nobody."""
        self.ask(self.pending.kind, self.pending.details)

    def wake(self) -> None:
        """Go on after a pause, with what has arrived in it."""
        self.is_asleep = False
        mail, self.mail = self.mail, []
        for request, answer in mail:
            self.hear(request, answer)

    def hear(self, request: Request, answer: Any) -> None:
        """Take an answer; one to a request that was given up is thrown away."""
        if self.is_asleep:
            self.mail.append((request, answer))
        elif request.number != self.number or self.is_gone:
            return
        elif self.leaves:
            self.world.replace(self)
        elif request.kind == "fetch":
            self._fetched(answer)
        else:
            self._hear(request, answer, code_of(request.kind, answer))

    # --- what both do

    @abstractmethod
    def _hear(self, request: Request, answer: Any, code: ErrorCode) -> None:
        """Act on an answer that is for it."""

    @abstractmethod
    def beat(self) -> None:
        """Say that it lives."""

    def ask(self, kind: str, details: Any = None) -> None:
        self.number += 1
        self.pending = Request(self, self.number, kind, self.member_id, self.epoch, details)
        self.world.forget(self.pending)
        self.world.send(self.pending)

    def own(self, partitions: Partitions) -> None:
        """Read these and no others from now on."""
        self.owned = partitions
        self.positions = {each: at for each, at in self.positions.items() if each in partitions}

    def commit(self) -> bool:
        """Commit what it has read; false where there is nothing."""
        names = self.world.image.topic_ids
        offsets = {
            (names[topic_id], number): at
            for (topic_id, number), at in self.positions.items()
            if topic_id in names
        }
        if offsets:
            self.ask("commit", offsets)
        return bool(offsets)

    def read_on(self) -> None:
        """Find out where to read what is new, read, commit, or just live."""
        random = self.world.random
        if self.owned - self.positions.keys():
            self.ask("fetch")
            return
        for partition in self.positions:
            self.positions[partition] += random.randint(0, 3)
        if random.random() < 0.5 or not self.commit():
            self.beat()

    def _fetched(self, offsets: dict[tuple[str, int], int]) -> None:
        names = self.world.image.topic_ids
        for partition in self.owned - self.positions.keys():
            known = names.get(partition[0], ""), partition[1]
            offset = offsets.get(known, 0)
            self.positions[partition] = offset
        self.beat()


class Modern(Process):
    """A consumer with `group.protocol=consumer`."""

    protocol = "consumer"

    def __init__(
        self, world: World, place: int, topics: tuple[str, ...], regex: str | None
    ) -> None:
        super().__init__(world, place, topics)
        self.regex = regex
        self.member_id = f"m{world.new_id()}"
        self.reported: Partitions = NOTHING
        # What it was last heard to own, and whether the next heartbeat says everything.
        self.acknowledged: Partitions = NOTHING
        self.says_all = True

    def begin(self) -> None:
        self.epoch = JOINING_EPOCH
        self.reported = NOTHING
        self.own(NOTHING)
        self.beat()

    def leave(self) -> None:
        self.leaves = True
        self.own(NOTHING)
        absent = self.instance is not None and self.world.random.random() < 0.7
        self.epoch = ABSENT_EPOCH if absent else LEAVING_EPOCH
        self.ask("beat", {})

    def subscribe(self, topics: tuple[str, ...], regex: str | None) -> None:
        """Want other topics from the next heartbeat on."""
        self.topics, self.regex = topics, regex
        self.says_all = True

    def beat(self) -> None:
        """Say everything first, and where it may not have been heard; else what has changed."""
        fields: dict[str, Any] = {}
        if self.epoch == JOINING_EPOCH or self.says_all:
            self.says_all = False
            fields = {
                "rebalance_timeout_ms": REBALANCE_MS,
                "subscribed_topic_names": list(self.topics),
                "subscribed_topic_regex": self.regex or "",
                "server_assignor": self.world.assignor,
            }
        if fields or self.owned != self.acknowledged:
            fields["topic_partitions"] = [
                beats.TopicPartitions(topic_id=each.topic_id, partitions=each.partitions)
                for each in by_topic(self.owned)
            ]
        self.ask("beat", fields)

    def ask_again(self) -> None:
        if self.pending.kind == "beat" and not self.leaves:
            self.says_all = True
            self.beat()
        else:
            super().ask_again()

    def _hear(self, request: Request, answer: Any, code: ErrorCode) -> None:
        world = self.world
        if request.kind == "commit":
            if code is ErrorCode.NONE:
                world.note_commit(request.details)
                self.go_on()
            else:
                self.beat()
        elif code in FENCED:
            world.met["fenced"] += 1
            self.begin()
        elif code in ENDS:
            world.replace(self)
        elif code is not ErrorCode.NONE:
            self.says_all = True
            self.beat()
        else:
            assert answer.member_epoch >= self.epoch, "the epoch of a member went back"
            self.epoch = answer.member_epoch
            self.acknowledged = self.owned
            if answer.assignment is not None:
                self.reported = read_target(answer.assignment)
            if self.owned - self.reported and world.random.random() < 0.4 and self.commit():
                return
            self.go_on()

    def go_on(self) -> None:
        """Give up what it shall not read, sooner or later, and read what it shall."""
        if self.owned - self.reported:
            self.world.met["revoked"] += 1
            if self.world.random.random() < 0.3:
                self.beat()  # It is still at it.
                return
        if self.owned == self.reported:
            self.read_on()
            return
        self.own(self.reported)
        if self.world.random.random() < 0.5:
            self.read_on()
        else:
            self.beat()


class Classic(Process):
    """A consumer with `group.protocol=classic`, with an eager assignor or a cooperative one."""

    protocol = "classic"

    def __init__(self, world: World, place: int, topics: tuple[str, ...]) -> None:
        super().__init__(world, place, topics)
        # The generation in which it was told what to read, if it was since it joined.
        self.synced = -1
        self.leads_as_of: int | None = None

    def begin(self) -> None:
        """JoinGroup: an eager consumer stops reading first."""
        if self.world.is_eager:
            self.own(NOTHING)
        names = self.world.image.topic_ids
        owned = [
            TopicPartitions(topic=names[each.topic_id], partitions=each.partitions)
            for each in by_topic(self.owned)
            if each.topic_id in names
        ]
        subscription = Subscription(topics=list(self.topics), owned_partitions=owned)
        self.ask("join", pack(subscription, 1))

    def leave(self) -> None:
        self.leaves = True
        self.own(NOTHING)
        self.ask("leave")

    def beat(self) -> None:
        topics_changed = self.leads_as_of not in (None, self.world.image.version)
        if topics_changed:
            self.begin()
        else:
            self.ask("heartbeat")

    def _hear(self, request: Request, answer: Any, code: ErrorCode) -> None:
        if code is ErrorCode.MEMBER_ID_REQUIRED:
            self.member_id = answer.member_id
            self.begin()
        elif code is ErrorCode.FENCED_INSTANCE_ID:
            self.world.replace(self)
        elif code in (ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.ILLEGAL_GENERATION):
            self.world.met["lost"] += 1
            self.own(NOTHING)
            self.epoch = -1
            if code is ErrorCode.UNKNOWN_MEMBER_ID:
                self.member_id = ""
            self.begin()
        elif code is ErrorCode.REBALANCE_IN_PROGRESS:
            self.begin()
        elif code is not ErrorCode.NONE:
            self.ask_again()
        elif request.kind == "join":
            self._joined(answer)
        elif request.kind == "sync":
            self._synced(answer)
        elif request.kind == "commit":
            self.world.note_commit(request.details)
            self.beat()
        else:
            self.read_on()

    def _joined(self, answer: Any) -> None:
        self.member_id, self.epoch = answer.member_id, answer.generation_id
        self.synced = -1
        leads = bool(answer.leader) and answer.leader == answer.member_id
        self.leads_as_of = self.world.image.version if leads else None
        if answer.skip_assignment:
            self.leads_as_of = -1
        self.ask("sync", self._shares(answer.members))

    def _synced(self, answer: Any) -> None:
        topics = self.world.image.topics
        assigned = frozenset(
            (topics[each.topic].id, number)
            for each in read_assignment(answer.assignment).assigned_partitions
            if each.topic in topics
            for number in each.partitions
        )
        has_revoked = bool(self.owned - assigned)
        self.synced = self.epoch
        self.own(assigned)
        if has_revoked:
            self.begin()
        else:
            self.read_on()

    def _shares(self, members: Iterable[Any]) -> dict[str, bytes]:
        """Who gets what, where this one leads: in turn, but nothing that another one still has."""
        reported = {each.member_id: read_subscription(each.metadata) for each in members}
        had = {
            (owned.topic, number): member
            for member, subscription in reported.items()
            for owned in subscription.owned_partitions
            for number in owned.partitions
        }
        shares: dict[str, list[TopicPartitions]] = {member: [] for member in reported}
        result = 0
        for name, topic in sorted(self.world.image.topics.items()):
            wanting = sorted(member for member, each in reported.items() if name in each.topics)
            for number in range(len(topic.partitions) if wanting else 0):
                result += 1
                member = wanting[result % len(wanting)]
                if had.get((name, number), member) == member:
                    share = TopicPartitions(topic=name, partitions=[number])
                    shares[member].append(share)
        metadata = pack(Subscription(), 1)
        return {
            member: write_assignment(some, metadata=metadata) for member, some in shares.items()
        }


def code_of(kind: str, answer: Any) -> ErrorCode:
    """The error in the answer to a request of a kind."""
    if kind == "heartbeat":
        return ErrorCode(answer)
    if kind == "commit":
        return ErrorCode(answer.topics[0].partitions[0].error_code)
    return ErrorCode(answer.error_code)
