"""Scenarios of rebalances: consumers of either protocol, a clock, and a transcript.

A scenario has consumers, each a client as its protocol asks: it joins, beats every three seconds,
gives up and takes over partitions, and reads and commits at the steps of the scenario. Requests and
responses are written down, but for heartbeats whose response changes nothing. The clock moves by
seconds; at each all act in the order of arrival until none sends anything more.
"""

from __future__ import annotations

import re
from typing import Any, Protocol

from barnabas_broker.cli.groups.assignors import Subscriber, plan
from barnabas_kafka.errors import ErrorCode
from barnabas_kafka.protocol.consumer_protocol import (
    Assignment,
    Subscription,
    TopicPartitions,
    read_assignment,
    read_subscription,
)
from barnabas_kafka.protocol.embedded import pack
from barnabas_kafka.protocol.messages.consumer_group_heartbeat import (
    TopicPartitions as AssignedById,
)
from tests.broker.coordinator.group.consumer.scenarios import ConsumerScenario

BEAT_MS = 3000
SESSION_MS = 10_000
POLL_INTERVAL_MS = 30_000

Partition = tuple[str, int]


class Reader(Protocol):
    """Somebody who reads."""

    name: str
    reads: set[Partition]
    is_up: bool

    def act(self) -> bool:
        """Do the next thing; false where there is nothing to do now."""
        ...

    def leave(self) -> None:
        """Say goodbye, as one that may be back."""
        ...

    def commit(self, topic: str, partition: int, offset: int) -> ErrorCode:
        """Commit as a member."""
        ...


class RebalanceScenario:
    """One scenario and its transcript."""

    def __init__(self, title: str, **topics: int) -> None:
        self.scenario = ConsumerScenario(topics, session_ms=SESSION_MS, heartbeat_ms=BEAT_MS)
        self.lines = [title, "=" * len(title), ""]
        self.cast: dict[str, Reader] = {}
        self.read: dict[Partition, int] = {}
        self._began_ms = self.scenario.now_ms
        self._stage = ""
        self.tell("The group has " + _count(topics) + ".")

    @property
    def transcript(self) -> str:
        return "\n".join(self.lines).rstrip() + "\n"

    # --- what is written down

    def tell(self, text: str) -> None:
        """What the audience is told."""
        self.lines.append(text)

    def say(self, who: str, what: str, answer: str = "") -> None:
        """What somebody says, and what it is answered."""
        second = (self.scenario.now_ms - self._began_ms) // 1000
        line = f"  {second:3} s  {who:<7} {what}"
        self.lines.append(f"{line:<58} -> {answer}" if answer else line)

    def stage(self) -> None:
        """The state of the group, where it has changed."""
        group = self.scenario.shard.groups.get("team")
        if group is None:
            return
        if group.consumers is None:
            now = f"[{group.state_name}, generation {group.generation}]"
        else:
            now = f"[{group.state_name}, group epoch {group.consumers.epoch}]"
        if now != self._stage:
            self._stage = now
            self.lines.append(f"         {now}")

    def who_reads(self) -> None:
        """Who reads what now."""
        shares = [
            f"{each.name} reads {listed(each.reads)}" for each in self.cast.values() if each.is_up
        ]
        self.lines += ["", "  " + "; ".join(shares) + ".", ""]

    # --- what happens

    def enter(self, reader: Reader, text: str = "") -> None:
        """Somebody starts."""
        self.tell(text or f"{reader.name} starts.")
        self.cast[reader.name] = reader
        self.settle()

    def settle(self) -> None:
        """Let everybody act until nobody has anything to do at this moment."""
        for _ in range(100):
            acted = [each.act() for each in list(self.cast.values()) if each.is_up]
            self.stage()
            if not any(acted):
                return
        raise AssertionError("they never stop talking")

    def pass_seconds(self, seconds: int) -> None:
        """Let time pass."""
        for _ in range(seconds):
            self.scenario.pass_time(1000)
            self.stage()
            self.settle()

    def kill(self, name: str) -> None:
        """Somebody is gone without a word."""
        self.tell(f"{name} is killed.")
        self.cast[name].is_up = False

    def stop(self, name: str) -> None:
        """Somebody leaves in order."""
        self.tell(f"{name} is stopped.")
        reader = self.cast[name]
        reader.leave()
        reader.is_up = False
        reader.reads = set()
        self.stage()
        self.settle()

    def poll(self, name: str, topic: str, partition: int, records: int) -> None:
        """Somebody reads on from what is committed."""
        assert (topic, partition) in self.cast[name].reads
        group = self.scenario.shard.groups["team"]
        known = {(each.topic, each.partition): at.offset for each, at in group.offsets.items()}
        start = known.get((topic, partition), 0)
        self.say(name, f"reads records {start} to {start + records - 1} of {topic}-{partition}")
        self.read[topic, partition] = start + records

    def commit(self, name: str, topic: str, partition: int) -> None:
        """Somebody commits what was read last."""
        offset = self.read[topic, partition]
        code = self.cast[name].commit(topic, partition, offset)
        self.say(name, f"commits {offset} for {topic}-{partition}", code.name)


def listed(partitions: set[Partition]) -> str:
    """`a-0,1 b-2`, or nothing."""
    topics: dict[str, list[str]] = {}
    for topic, number in sorted(partitions):
        topics.setdefault(topic, []).append(str(number))
    return " ".join(f"{name}-{','.join(some)}" for name, some in topics.items()) or "nothing"


def _count(topics: dict[str, int]) -> str:
    return " and ".join(f"topic {name} of {count} partitions" for name, count in topics.items())


class Classic:
    """A reader of the classic protocol, as Java's consumer: eager, or cooperative."""

    def __init__(
        self,
        rebalance: RebalanceScenario,
        name: str,
        *topics: str,
        pattern: str | None = None,
        assignor: str = "range",
        instance: str | None = None,
    ) -> None:
        self._rebalance, self.name, self._instance = rebalance, name, instance
        self._named, self._pattern, self._assignor = set(topics), pattern, assignor
        self.reads: set[Partition] = set()
        self.is_up = True
        self.syncs = True
        self._id = ""
        self._generation = -1
        self._waits: tuple[str, int] | None = None
        self._joins = True
        self._reported: list[Any] = []
        self._leads = False
        self._known: dict[str, int] = {}
        self._beat_at = 0

    @property
    def _scenario(self) -> ConsumerScenario:
        return self._rebalance.scenario

    def _topics(self) -> set[str]:
        names = self._scenario.image.topics
        if self._pattern is not None:
            return {each for each in names if re.fullmatch(self._pattern, each)}
        return {each for each in self._named if each in names}

    def _counts(self) -> dict[str, int]:
        image = self._scenario.image
        return {each: len(image.topics[each].partitions) for each in sorted(self._topics())}

    # --- one step

    def act(self) -> bool:
        if self._waits is not None:
            return self._hear()
        if not self._joins and self._known != self._counts() and (self._leads or self._pattern):
            # Its metadata has changed: one that follows only cares for its own subscription.
            self._rebalance.say(self.name, f"sees {_count(self._counts())}")
            self._joins = True
        if self._joins:
            self._join()
            return True
        if self._scenario.now_ms >= self._beat_at:
            return self._beat()
        return False

    def _join(self) -> None:
        self._joins = False
        self._known = self._counts()
        if self._assignor == "range" and self.reads:
            self._rebalance.say(self.name, f"gives up {listed(self.reads)}")
            self.reads = set()
        owned = [
            TopicPartitions(topic=topic, partitions=[number])
            for topic, number in sorted(self.reads)
        ]
        metadata = pack(Subscription(topics=sorted(self._topics()), owned_partitions=owned), 1)
        asked = self._scenario.join(
            self.name,
            self._id,
            instance=self._instance,
            protocols=(self._assignor,),
            metadata=metadata,
            session_timeout_ms=SESSION_MS,
            rebalance_timeout_ms=POLL_INTERVAL_MS,
        )
        self._waits = ("JoinGroup", asked)
        if self._scenario.answer(asked) is None:
            self._rebalance.say(self.name, "JoinGroup", "waits for the others")

    def _hear(self) -> bool:
        assert self._waits is not None
        what, asked = self._waits
        answer = self._scenario.answer(asked)
        if answer is None:
            return False
        self._waits = None
        code = ErrorCode(answer.error_code)
        if code is not ErrorCode.NONE:
            self._refused(what, code, answer)
        elif what == "JoinGroup":
            self._joined(answer)
        else:
            self._synced(answer)
        return True

    def _refused(self, what: str, code: ErrorCode, answer: Any) -> None:
        if code is ErrorCode.MEMBER_ID_REQUIRED:
            self._id = answer.member_id
            self._rebalance.say(self.name, what, f"come as {self._id}")
        else:
            self._rebalance.say(self.name, what, code.name)
            if code is ErrorCode.FENCED_INSTANCE_ID:
                self.is_up = False
            if code is ErrorCode.UNKNOWN_MEMBER_ID:
                self._forget()
        self._joins = True

    def _forget(self) -> None:
        self._id, self._generation, self.reads = "", -1, set()

    def _joined(self, answer: Any) -> None:
        self._id, self._generation = answer.member_id, answer.generation_id
        self._leads = bool(answer.leader) and answer.leader == self._id
        self._reported = answer.members
        part = "leads" if self._leads else "follows"
        self._rebalance.say(self.name, "JoinGroup", f"generation {self._generation}, {part}")
        self._beat_at = self._scenario.now_ms + BEAT_MS
        if self.syncs:
            self._sync()

    def _sync(self) -> None:
        assign: dict[str, bytes] = {}
        if self._leads:
            assign = self._plan()
        asked = self._scenario.sync(
            self._id,
            generation=self._generation,
            assign=assign,
            group_instance_id=self._instance,
        )
        self._waits = ("SyncGroup", asked)
        if self._scenario.answer(asked) is None:
            self._rebalance.say(self.name, "SyncGroup", "waits for the leader")

    def _plan(self) -> dict[str, bytes]:
        subscribers = []
        for each in self._reported:
            said = read_subscription(each.metadata)
            has = frozenset(
                (topic.topic, number)
                for topic in said.owned_partitions
                for number in topic.partitions
            )
            subscribers.append(
                Subscriber(
                    each.member_id,
                    frozenset(said.topics),
                    instance_id=each.group_instance_id,
                    has=has,
                )
            )
        wanted = frozenset[str]().union(*(each.topics for each in subscribers))
        images = self._scenario.image.topics
        counts = {name: len(images[name].partitions) for name in sorted(wanted)}
        shares = plan(self._assignor, subscribers, counts)
        if self._assignor != "range":
            # Cooperative: what somebody else still has is given in the next generation.
            held = {part: each.id for each in subscribers for part in each.has}
            shares = {
                member: frozenset(p for p in share if held.get(p, member) == member)
                for member, share in shares.items()
            }
        reported = {member: listed(set(share)) for member, share in sorted(shares.items())}
        self._rebalance.say(
            self.name, "plans " + "; ".join(f"{k}: {v}" for k, v in reported.items())
        )
        return {member: _assignment(share) for member, share in shares.items()}

    def _synced(self, answer: Any) -> None:
        had = self.reads
        self.reads = {
            (topic.topic, number)
            for topic in read_assignment(answer.assignment).assigned_partitions
            for number in topic.partitions
        }
        self._rebalance.say(self.name, "SyncGroup", listed(self.reads))
        if self._assignor != "range" and had - self.reads:
            self._rebalance.say(self.name, f"gives up {listed(had - self.reads)}")
            self._joins = True

    def _beat(self) -> bool:
        self._beat_at = self._scenario.now_ms + BEAT_MS
        code = self._scenario.heartbeat(
            self._id, generation=self._generation, instance=self._instance
        )
        if code is ErrorCode.NONE:
            return False
        self._rebalance.say(self.name, "Heartbeat", code.name)
        if code is ErrorCode.FENCED_INSTANCE_ID:
            self.is_up = False
            return True
        if code is ErrorCode.UNKNOWN_MEMBER_ID:
            self._forget()
        if code is ErrorCode.ILLEGAL_GENERATION:
            self.reads = set()
        self._joins = True
        return True

    def leave(self) -> None:
        if self._instance is not None:
            return  # Static members say nothing: they come back.
        (code,) = self._scenario.leave((self._id, None))
        self._rebalance.say(self.name, "LeaveGroup", code.name)
        self._forget()
        self._joins = True

    def commit(self, topic: str, partition: int, offset: int) -> ErrorCode:
        return self._scenario.commit(
            offset,
            topic=topic,
            partition=partition,
            member=self._id,
            generation=self._generation,
        )


def _assignment(share: frozenset[Partition]) -> bytes:
    topics: dict[str, list[int]] = {}
    for topic, number in sorted(share):
        topics.setdefault(topic, []).append(number)
    made = [TopicPartitions(topic=name, partitions=some) for name, some in topics.items()]
    return pack(Assignment(assigned_partitions=made), 1)


class Modern:
    """A reader of the consumer protocol, as Java's: `uniform` unless it asks for an assignor."""

    def __init__(
        self,
        rebalance: RebalanceScenario,
        name: str,
        *topics: str,
        pattern: str | None = None,
        assignor: str | None = None,
        instance: str | None = None,
    ) -> None:
        self._rebalance, self.name, self._instance = rebalance, name, instance
        self._id = f"{name}-id" + ("" if instance is None else f"-{len(rebalance.lines)}")
        self._first: dict[str, Any] = {
            "subscribed_topic_names": list(topics),
            "subscribed_topic_regex": pattern,
            "server_assignor": assignor,
            "instance_id": instance,
            "rebalance_timeout_ms": POLL_INTERVAL_MS,
        }
        self.reads: set[Partition] = set()
        self.is_up = True
        self._epoch = 0
        self._beat_at = 0

    @property
    def _scenario(self) -> ConsumerScenario:
        return self._rebalance.scenario

    def act(self) -> bool:
        if self._scenario.now_ms < self._beat_at:
            return False
        self._beat_at = self._scenario.now_ms + BEAT_MS
        before = self._epoch
        first = {**self._first, "topic_partitions": []} if before == 0 else {}
        fields = first or {"topic_partitions": self._owned(), "instance_id": self._instance}
        answer = self._scenario.beat(self._id, before, **fields)
        code = ErrorCode(answer.error_code)
        what = "joins" if before == 0 else "beats"
        if code is not ErrorCode.NONE:
            self._rebalance.say(self.name, what, code.name)
            self._epoch, self.reads = 0, set()
            if code is not ErrorCode.UNRELEASED_INSTANCE_ID:
                self._beat_at = self._scenario.now_ms  # It joins again at once.
            return True
        self._epoch = answer.member_epoch
        reported = self.reads if answer.assignment is None else self._reported(answer.assignment)
        if self._epoch == before and reported == self.reads:
            return False
        self._rebalance.say(self.name, what, f"epoch {self._epoch}, {listed(reported)}")
        if self.reads - reported:
            self._rebalance.say(self.name, f"gives up {listed(self.reads - reported)}")
            self._beat_at = self._scenario.now_ms  # It says so at once.
        self.reads = reported
        return True

    def _reported(self, assignment: Any) -> set[Partition]:
        names = self._scenario.image.topic_ids
        return {
            (names[each.topic_id], number)
            for each in assignment.topic_partitions
            for number in each.partitions
        }

    def _owned(self) -> list[AssignedById]:
        topics = self._scenario.image.topics
        owned: dict[str, list[int]] = {}
        for name, number in sorted(self.reads):
            owned.setdefault(name, []).append(number)
        return [AssignedById(topic_id=topics[k].id, partitions=v) for k, v in owned.items()]

    def leave(self) -> None:
        epoch = -1 if self._instance is None else -2
        answer = self._scenario.beat(self._id, epoch, instance_id=self._instance)
        text = "leaves" if epoch == -1 else "leaves to come back"
        self._rebalance.say(self.name, text, ErrorCode(answer.error_code).name)
        self._epoch, self._beat_at, self.reads = 0, 0, set()

    def commit(self, topic: str, partition: int, offset: int) -> ErrorCode:
        return self._scenario.commit(
            offset, topic=topic, partition=partition, member=self._id, generation=self._epoch
        )
