"""Transactions of real producers, and what consumers see of them.

The broker of these scenarios is their own, so that it can be killed; it looks for transactions that
take too long every 200 ms.
"""

from __future__ import annotations

import asyncio

import pytest
from aiokafka import AIOKafkaProducer
from aiokafka import TopicPartition as Place
from confluent_kafka import (
    Consumer,
    KafkaError,
    KafkaException,
    Producer,
    TopicPartition,
)

from tests.clients import librdkafka
from tests.clients.brokers import Broker
from tests.clients.transactional import PARTITIONS, new_topic, seen, text
from tests.oracle.apache import run_tool
from tests.waiting import ANSWER, seconds, wait_for

TRANSACTIONS = "org.apache.kafka.tools.TransactionsCommand"
DUMP_LOG = "kafka.tools.DumpLogSegments"


@pytest.fixture
def broker(transactional_broker: Broker) -> Broker:
    """One that may be killed."""
    return transactional_broker


@pytest.fixture
def topic(broker: Broker, request: pytest.FixtureRequest) -> str:
    """The topic of one scenario."""
    return new_topic(broker, request.node.name.replace("[", "-").replace("]", ""))


def producer(broker: Broker, transactional_id: str, **settings: object) -> Producer:
    """A librdkafka producer that has begun its first transaction; underscores stand for dots."""
    made = Producer(
        {
            "bootstrap.servers": broker.bootstrap,
            "transactional.id": transactional_id,
            "linger.ms": 0,
            # Otherwise librdkafka 2.16 forgets the only broker (its issue 5511).
            "metadata.recovery.strategy": "none",
            # Otherwise it waits for up to ten seconds before it connects again.
            "reconnect.backoff.max.ms": 500,
            **{name.replace("_", "."): value for name, value in settings.items()},
        }
    )
    made.init_transactions(seconds(ANSWER))
    made.begin_transaction()
    return made


def write(to: Producer, topic: str, *values: str) -> None:
    """One record after the other into all partitions in turn, on disk when this returns."""
    for number, value in enumerate(values):
        to.produce(topic, value, partition=number % PARTITIONS)
    assert to.flush(seconds(ANSWER)) == 0


def test_committed_is_seen_and_aborted_is_not(broker: Broker, topic: str) -> None:
    """Across partitions, in one producer's transactions; who reads uncommitted sees all."""
    transactional = producer(broker, topic)
    write(transactional, topic, "a", "b", "c", "d")
    assert seen(broker, topic) == []
    transactional.commit_transaction(seconds(ANSWER))
    transactional.begin_transaction()
    write(transactional, topic, "no", "never", "nothing")
    transactional.abort_transaction(seconds(ANSWER))
    transactional.begin_transaction()
    write(transactional, topic, "e")
    transactional.commit_transaction(seconds(ANSWER))
    assert seen(broker, topic) == ["a", "b", "c", "d", "e"]
    everything = ["a", "b", "c", "d", "e", "never", "no", "nothing"]
    assert seen(broker, topic, "read_uncommitted") == everything


def test_a_second_producer_fences_the_first(broker: Broker, topic: str) -> None:
    """Its open transaction is aborted, and whatever it still tries fails."""
    first = producer(broker, topic)
    write(first, topic, "of the first")
    second = producer(broker, topic)
    write(second, topic, "of the second")
    with pytest.raises(KafkaException) as raised:
        first.commit_transaction(seconds(ANSWER))
    assert raised.value.args[0].code() in (KafkaError._FENCED, KafkaError.PRODUCER_FENCED)
    second.commit_transaction(seconds(ANSWER))
    assert seen(broker, topic) == ["of the second"]


def test_a_timed_out_transaction_is_aborted(broker: Broker, topic: str) -> None:
    """By the coordinator, and the producer cannot go on with it."""
    slow = producer(broker, topic, transaction_timeout_ms=1000, message_timeout_ms=1000)
    write(slow, topic, "late")
    after = producer(broker, f"{topic}-other")
    write(after, topic, "in time")
    after.commit_transaction(seconds(ANSWER))
    wait_for("committed records", lambda: seen(broker, topic), until=lambda it: it == ["in time"])
    with pytest.raises(KafkaException):
        slow.commit_transaction(seconds(ANSWER))
    assert seen(broker, topic) == ["in time"]


def test_offsets_are_committed_with_the_produced_records(broker: Broker, topic: str) -> None:
    """Consume, transform, produce: an aborted round leaves no trace and is done again."""
    target = new_topic(broker, f"{topic}-out")
    source = producer(broker, f"{topic}-source")
    write(source, topic, *(str(number) for number in range(9)))
    source.commit_transaction(seconds(ANSWER))
    transactional = producer(broker, topic)
    for attempt in ("aborted", "committed"):
        consumer = Consumer(
            {
                "bootstrap.servers": broker.bootstrap,
                "group.id": topic,
                "enable.auto.commit": False,
                "auto.offset.reset": "earliest",
                "isolation.level": "read_committed",
            }
        )
        consumer.subscribe([topic])
        taken = librdkafka.consume(consumer, 9)
        assert sorted(int(text(message)) for message in taken) == list(range(9))
        for message in taken:
            transactional.produce(target, "x" + text(message))
        assignment = consumer.assignment()
        transactional.send_offsets_to_transaction(
            consumer.position(assignment), consumer.consumer_group_metadata(), seconds(ANSWER)
        )
        if attempt == "aborted":
            transactional.abort_transaction(seconds(ANSWER))
            transactional.begin_transaction()
        else:
            transactional.commit_transaction(seconds(ANSWER))
        committed = consumer.committed(assignment, timeout=seconds(ANSWER))
        offsets = {each.partition: each.offset for each in committed}
        # A marker follows the three records of each partition.
        at = -1001 if attempt == "aborted" else 3
        assert all(offset == at or offset == at + 1 for offset in offsets.values()), offsets
        consumer.close()
    assert seen(broker, target) == [f"x{number}" for number in range(9)]


def test_aiokafka_commits_and_aborts(broker: Broker, topic: str) -> None:
    """With offsets of a group in the transaction."""

    async def scenario() -> None:
        transactional = AIOKafkaProducer(bootstrap_servers=broker.bootstrap, transactional_id=topic)
        await transactional.start()
        try:
            async with transactional.transaction():
                await transactional.send_and_wait(topic, b"kept", partition=0)
                await transactional.send_offsets_to_transaction(
                    {Place(topic, 0): 1}, f"{topic}-group"
                )
            await transactional.begin_transaction()
            await transactional.send_and_wait(topic, b"dropped", partition=0)
            await transactional.abort_transaction()
        finally:
            await transactional.stop()

    asyncio.run(asyncio.wait_for(scenario(), seconds(ANSWER)))
    assert seen(broker, topic) == ["kept"]
    group = librdkafka.consumer(broker.bootstrap, **{"group.id": f"{topic}-group"})
    (offset,) = group.committed([TopicPartition(topic, 0)], timeout=seconds(ANSWER))
    group.close()
    assert offset.offset == 1


def test_a_kill_leaves_no_transaction_torn(broker: Broker, topic: str) -> None:
    """Rounds of commits and aborts, the broker killed within each: all or nothing."""
    committed: list[str] = []
    transactional = producer(broker, topic)
    for number in range(5):
        values = [f"{number}-{part}" for part in range(6)]
        write(transactional, topic, *values)
        broker.kill()
        broker.start()
        if number % 2:
            transactional.abort_transaction(seconds(ANSWER))
        else:
            transactional.commit_transaction(seconds(ANSWER))
            committed += values
        if number == 3:
            broker.kill()
            broker.start()
        transactional.begin_transaction()
    assert seen(broker, topic) == sorted(committed)


def test_apaches_tools_read_what_is_coordinated(broker: Broker, topic: str) -> None:
    """What lies in __transaction_state, what is open, and how one ends that hangs."""
    transactional = producer(broker, topic, transaction_timeout_ms=600_000)
    write(transactional, topic, "hanging")
    at = ("--bootstrap-server", broker.bootstrap)
    described = run_tool(TRANSACTIONS, *at, "describe", "--transactional-id", topic).stdout
    assert f"{topic}-0" in described
    assert "Ongoing" in described
    assert topic in run_tool(TRANSACTIONS, *at, "list").stdout
    where = ("--topic", topic, "--partition", "0")
    assert "ProducerId" in run_tool(TRANSACTIONS, *at, "describe-producers", *where).stdout
    run_tool(TRANSACTIONS, *at, "abort", *where, "--start-offset", "0")
    other = producer(broker, f"{topic}-other")
    write(other, topic, "seen")
    other.commit_transaction(seconds(ANSWER))
    assert seen(broker, topic) == ["seen"]
    dumped = "".join(
        run_tool(DUMP_LOG, "--transaction-log-decoder", "--files", str(path)).stdout
        for path in sorted(broker.log_dirs[0].glob("__transaction_state-*/*.log"))
        if path.stat().st_size
    )
    assert f"transactionalId={topic}" in dumped
    assert "state=CompleteCommit" in dumped
