"""Groups and transactions go from one broker to the other, by what their topics hold.

Ours and Apache's take turns on one data directory and one ZooKeeper. What one coordinator has
written the other tells the same, and goes on with: members, commits, pending offsets, epochs.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from copy import copy
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import pytest
from confluent_kafka import Consumer, KafkaError, Producer, TopicPartition

from barnabas_kafka.errors import ErrorCode
from barnabas_kafka.protocol.messages.add_offsets_to_txn import AddOffsetsToTxnRequest
from barnabas_kafka.protocol.messages.describe_groups import DescribeGroupsRequest
from barnabas_kafka.protocol.messages.describe_transactions import DescribeTransactionsRequest
from barnabas_kafka.protocol.messages.list_groups import ListGroupsRequest
from barnabas_kafka.protocol.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
)
from tests.clients.brokers import Barnabas
from tests.oracle.apache import ApacheKafka, ZooKeeper
from tests.oracle.classic_members import Member, await_coordinator, fetch_offsets
from tests.oracle.questions_about_transactions import TransactionalProducer
from tests.oracle.sides import Side, differences
from tests.waiting import ANSWER, START, seconds, wait_for

pytestmark = pytest.mark.jvm

PARTITIONS: Final = range(3)
#: Records in each partition of a topic that a group reads, and how many it has read of the first.
RECORDS: Final = 4
SETTINGS: Final = {
    "offsets.topic.num.partitions": "3",
    "offsets.topic.replication.factor": "1",
    "transaction.state.log.num.partitions": "3",
    "transaction.state.log.replication.factor": "1",
    "transaction.state.log.min.isr": "1",
    "group.initial.rebalance.delay.ms": "0",
    # The longest that ZooKeeper grants: a session shall end with its broker, not before.
    "zookeeper.session.timeout.ms": "40000",
}


@pytest.fixture
def ours(tmp_path: Path) -> Iterator[Barnabas]:
    """Our broker, not yet started, on a ZooKeeper of its own."""
    with ZooKeeper(directory=tmp_path / "zookeeper") as zookeeper:
        where = {"broker.id": "1", "zookeeper.connect": zookeeper.connect}
        yield Barnabas(tmp_path / "ours", SETTINGS | where)


@pytest.fixture
def apaches(ours: Barnabas, tmp_path: Path) -> ApacheKafka:
    """Apache's, not yet started, on the same data."""
    return ApacheKafka(
        directory=tmp_path / "apache",
        zookeeper=ours.settings["zookeeper.connect"],
        overrides=SETTINGS | {"log.dirs": str(ours.log_dirs[0])},
        heap="512M",
        broker_id=1,
    )


@dataclass
class Readers:
    """A group of one consumer at a time, and the topic that it reads."""

    group: str
    topic: str
    read: dict[int, int] = field(default_factory=lambda: dict.fromkeys(PARTITIONS, 0))

    def read_on(self, bootstrap: str, protocol: str = "classic") -> None:
        """Subscribe, get all that was not read, and commit a part with a word to each partition."""
        settings = {
            "bootstrap.servers": bootstrap,
            "group.id": self.group,
            "group.protocol": protocol,
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
            "log_level": 0,
        }
        expected = {
            (number, offset)
            for number in PARTITIONS
            for offset in range(self.read[number], RECORDS)
        }
        consumer = Consumer(settings)
        consumer.subscribe([self.topic])
        found: set[tuple[int, int]] = set()

        def consume() -> set[tuple[int, int]]:
            for message in consumer.consume(len(expected), 0.5):
                assert message.error() is None, message.error()
                found.add((message.partition() or 0, message.offset() or 0))
            return found

        wait_for(f"the records {sorted(expected)}", consume, until=lambda it: it >= expected)
        assert found == expected
        self.read = {number: min(RECORDS, read + 1) for number, read in self.read.items()}
        at = [
            TopicPartition(self.topic, number, read, metadata=f"{read} of {number}")
            for number, read in self.read.items()
        ]
        consumer.commit(offsets=at, asynchronous=False)
        consumer.close()


@dataclass
class Producing:
    """A producer and what is known of its transaction."""

    client: TransactionalProducer
    topic: str
    group: str

    def open(self, label: str) -> None:
        """Write a record and an offset in a transaction that stays open."""
        producer = self.client
        producer.open(f"{label} opens", self.topic)
        self.write(f"{label} writes", 0)
        adding = AddOffsetsToTxnRequest(
            transactional_id=producer.name, producer_id=producer.id,
            producer_epoch=producer.epoch, group_id=self.group,
        )  # fmt: skip
        assert producer.side.ask(f"{label} adds offsets", adding, 3).error_code == 0
        at = TxnOffsetCommitRequestPartition(
            partition_index=0, committed_offset=3, committed_metadata=label
        )
        committing = TxnOffsetCommitRequest(
            transactional_id=producer.name, producer_id=producer.id, group_id=self.group,
            producer_epoch=producer.epoch,
            topics=[TxnOffsetCommitRequestTopic(name=self.topic, partitions=[at])],
        )  # fmt: skip
        answer = producer.side.ask(f"{label} commits offsets", committing, 3)
        assert answer.topics[0].partitions[0].error_code == 0

    def write(self, label: str, sequence: int, version: int = 9) -> int:
        """Produce one record; returns the error."""
        request = self.client.write(self.topic, sequence)
        answer = self.client.side.ask(label, request, version)
        code: int = answer.responses[0].partition_responses[0].error_code
        return code

    def at(self, side: Side) -> Producing:
        """The same producer at another broker."""
        found = TransactionalProducer(side, self.client.name)
        found.id, found.epoch = self.client.id, self.client.epoch
        return Producing(found, self.topic, self.group)

    def followed(self, label: str) -> Producing:
        """A successor, which has the same id and a later epoch; this one is shut out."""
        after = self.client.successor()
        after.begin(f"{label}: successor begins")
        assert after.id == self.client.id
        assert after.epoch > self.client.epoch
        assert self.write(f"{label}: old one writes", 1) == ErrorCode.INVALID_PRODUCER_EPOCH
        ended = self.client.side.ask(f"{label}: old one ends", self.client.end(True), 3)
        assert ended.error_code == ErrorCode.PRODUCER_FENCED
        return Producing(after, self.topic, self.group)


@dataclass
class Left:
    """What a broker was used for until it was stopped."""

    readers: list[Readers]
    members: list[Member]
    finished: Producing
    unfinished: dict[str, Producing]
    #: Speaks the second transaction protocol, which Apache's of that release lacks.
    second: Producing | None = None

    @property
    def groups(self) -> list[str]:
        """Every group there is."""
        own = [each.group for each in self.members]
        return [each.group for each in self.readers] + own + list(self.unfinished)

    @property
    def producers(self) -> list[Producing]:
        """Every transactional id there is."""
        also = [] if self.second is None else [self.second]
        return [self.finished, *self.unfinished.values(), *also]


def _filled(side: Side, name: str) -> str:
    """A topic with records, as many in each partition."""
    side.topic(name, partitions=len(PARTITIONS))
    producer = Producer({"bootstrap.servers": side.bootstrap, "log_level": 0})
    for number in PARTITIONS:
        for _ in range(RECORDS):
            producer.produce(name, b"value", partition=number)
    assert producer.flush(seconds(ANSWER)) == 0
    return name


def leave(side: Side, prefix: str) -> Left:
    """Groups without and with members, a transaction that is over and two that are not."""
    topic = _filled(side, prefix)
    readers = Readers(f"{prefix}-readers", topic)
    readers.read_on(side.bootstrap)
    members = []
    for instance in (None, "i"):
        member = Member(side, f"{prefix}-{'static' if instance else 'dynamic'}", [topic], instance)
        await_coordinator(side, member.group)
        member.enter(f"{member.group}:")
        committed = side.ask(f"{member.group}: commits", member.committing(topic, (1, 2), "so"), 8)
        assert not any(each.error_code for each in committed.topics[0].partitions)
        members.append(member)
    producers = {}
    for name in (f"{prefix}-finished", f"{prefix}-ends-itself", f"{prefix}-is-followed"):
        records = side.topic(name)
        client = TransactionalProducer(side, name)
        client.begin(f"{name}: begins")
        producers[name] = Producing(client, records, name)
        producers[name].open(f"{name}:")
    finished = producers.pop(f"{prefix}-finished")
    finished.client.close("finished: commits", True)
    return Left([readers], members, finished, producers)


def leave_what_is_newer(side: Side, left: Left) -> None:
    """A group that had the consumer protocol, and the second protocol of transactions."""
    readers = Readers("newer-readers", left.readers[0].topic)
    readers.read_on(side.bootstrap, "consumer")
    command = [str(Path(sys.executable).parent / "barnabas"), "groups", "downgrade", readers.group,
               "--bootstrap-server", side.bootstrap]  # fmt: skip
    done = subprocess.run(
        command, capture_output=True, text=True, timeout=seconds(START), check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    left.readers.append(readers)
    name = side.topic("second-protocol")
    client = TransactionalProducer(side, name)
    client.begin("second: begins")
    left.second = Producing(client, name, name)
    assert left.second.write("second: writes", 0, 12) == 0
    ended = side.ask("second: commits", client.end(True), 5)
    assert (ended.error_code, ended.producer_epoch) == (0, client.epoch + 1)
    client.epoch = ended.producer_epoch
    # Until the markers are written there is no next transaction.
    side.ask_until(
        "second: writes in the next",
        client.write(name, 0),
        12,
        settled=lambda answer: not answer.responses[0].partition_responses[0].error_code,
    )


def looks(left: Left, side: Side) -> tuple[dict[str, Any], list[Any]]:
    """What a broker tells of all that, and of the producers what two brokers draw differently."""
    for group in left.groups:
        await_coordinator(side, group)
    side.ask("offsets", fetch_offsets(*left.groups), 8)
    side.ask("stable offsets", fetch_offsets(*left.groups, stable=True), 8)
    side.ask("groups", DescribeGroupsRequest(groups=left.groups), 5)
    for state in ("Empty", "Stable"):
        side.ask(f"listed when {state}", ListGroupsRequest(states_filter=[state]), 5)
    for name in (each.client.name for each in left.producers):
        TransactionalProducer(side, name)
    ids = [each.client.name for each in left.producers]
    answer = side.ask("transactions", DescribeTransactionsRequest(transactional_ids=ids), 0)
    client, side.reported = side.reported, {}
    producers = {
        each.transactional_id: (each.producer_id, each.producer_epoch,
                                each.transaction_start_time_ms)
        for each in answer.transaction_states
    }  # fmt: skip
    return client, sorted(producers.items())


def go_on(left: Left, side: Side) -> None:
    """Everybody goes on at this broker where the other left off."""
    for readers in left.readers:
        readers.read_on(side.bootstrap)
    for before in left.members:
        member = copy(before)
        member.side = side
        _go_on_as_member(member, left.readers[0].topic)
    _end_of_the_finished(left.finished.at(side))
    if left.second is not None:
        left.second.at(side).followed("second")
        assert _committed(side.bootstrap, left.second.topic) == 1
    for name, before_here in left.unfinished.items():
        producer = before_here.at(side)
        asked = fetch_offsets(name, topic=producer.topic, stable=True)
        pending = _first(side.ask(f"{name}: pending", asked, 8))
        assert pending.error_code == ErrorCode.UNSTABLE_OFFSET_COMMIT
        if name.endswith("itself"):
            assert producer.write(f"{name}: goes on", 1) == 0
            producer.client.close(f"{name}: commits", True)
            assert _offset(side, f"{name}: committed offset", name, producer.topic) == 3
            assert _committed(side.bootstrap, producer.topic) == 2
            producer.followed(name)
        else:
            after = producer.followed(name)
            assert _offset(side, f"{name}: aborted", name, producer.topic) == -1
            after.open(f"{name}: successor")
            after.client.close(f"{name}: commits", True)
            assert _offset(side, f"{name}: committed offset", name, producer.topic) == 3
            assert _committed(side.bootstrap, producer.topic) == 1


def _go_on_as_member(member: Member, topic: str) -> None:
    """It has its id and generation still, until a static one is replaced or any leaves."""
    side, group = member.side, member.group
    assert side.ask(f"{group}: beats", member.beating(), 4).error_code == 0
    committed = side.ask(f"{group}: commits on", member.committing(topic, (2, 3), "on"), 8)
    assert not any(each.error_code for each in committed.topics[0].partitions)
    share = side.ask(f"{group}: syncs again", member.syncing(), 5)
    assert (share.error_code, bytes(share.assignment)) == (0, b"what it has")
    if member.instance is not None:
        replaced = copy(member)
        member.id = ""
        joined = member.join(f"{group}: comes back")
        assert (joined.error_code, member.generation) == (0, replaced.generation)
        fenced = side.ask(f"{group}: replaced beats", replaced.beating(), 4)
        assert fenced.error_code == ErrorCode.FENCED_INSTANCE_ID
    assert side.ask(f"{group}: leaves", member.leaving(), 4).members[0].error_code == 0
    described = side.ask(f"{group}: left", DescribeGroupsRequest(groups=[group]), 5).groups[0]
    assert (described.group_state, described.members) == ("Empty", [])
    assert _offset(side, f"{group}: kept", group, topic) == 2


def _end_of_the_finished(producer: Producing) -> None:
    """It is committed, offsets too, and its next transaction is one as any other."""
    side, name = producer.client.side, producer.client.name
    assert _committed(side.bootstrap, producer.topic) == 1
    assert _offset(side, f"{name}: offset", name, producer.topic) == 3
    after = producer.followed(name)
    after.open(f"{name}: next")
    after.client.close(f"{name}: next", False)
    assert _committed(side.bootstrap, producer.topic) == 1


def _offset(side: Side, label: str, group: str, topic: str) -> int:
    """Where a group is in the first partition, once no transaction is about to say.

    Apache's groups hear a little later than the producer that a transaction is over.
    """
    answer = side.ask_until(
        label,
        fetch_offsets(group, topic=topic, stable=True),
        8,
        settled=lambda client: _first(client).error_code != ErrorCode.UNSTABLE_OFFSET_COMMIT,
    )
    assert not _first(answer).error_code, label
    return int(_first(answer).committed_offset)


def _first(answer: Any) -> Any:
    """The first partition of OffsetFetch."""
    return answer.groups[0].topics[0].partitions[0]


def _committed(bootstrap: str, topic: str) -> int:
    """The number of records that readers of committed transactions see, none of which is open."""
    settings = {
        "bootstrap.servers": bootstrap,
        "group.id": "of no use",
        "isolation.level": "read_committed",
        "enable.auto.commit": False,
        "enable.partition.eof": True,
        "log_level": 0,
    }
    consumer = Consumer(settings)
    consumer.assign([TopicPartition(topic, 0, 0)])
    found = 0

    def is_read() -> bool:
        nonlocal found
        while (message := consumer.poll(1)) is not None:
            error = message.error()
            if error is not None:
                assert error.code() == KafkaError._PARTITION_EOF, error
                return True
            found += 1
        return False

    wait_for(f"the end of {topic}", is_read)
    consumer.close()
    return found


def test_groups_and_transactions_go_there_and_back(ours: Barnabas, apaches: ApacheKafka) -> None:
    """Ours, then Apache's, then ours: the same is told of all, and everybody goes on."""
    with ours:
        side = Side(ours.bootstrap)
        left = leave(side, "ours")
        leave_what_is_newer(side, left)
        side.reported = {}
        before = looks(left, side)
        side.close()
    with apaches:
        side = Side(apaches.bootstrap)
        after = looks(left, side)
        found = list(differences(before[0], after[0]))
        assert not found, "\n".join(["", *found])
        assert before[1] == after[1]
        go_on(left, side)
        second = leave(side, "theirs")
        left.unfinished, left.members = {}, []
        both = Left(
            left.readers + second.readers, second.members, second.finished, second.unfinished
        )
        side.reported = {}
        before = looks(both, side)
        side.close()
    with ours:
        side = Side(ours.bootstrap)
        after = looks(both, side)
        found = list(differences(before[0], after[0]))
        assert not found, "\n".join(["", *found])
        assert before[1] == after[1]
        go_on(both, side)
        side.close()
