"""Groups and transactions whose coordinators are on other brokers, and move while they are used."""

from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import NewTopic

from barnabas_kafka.errors import ErrorCode
from barnabas_kafka.protocol.messages.add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnTopic,
)
from barnabas_kafka.protocol.messages.end_txn import EndTxnRequest, EndTxnResponse
from barnabas_kafka.protocol.messages.init_producer_id import (
    InitProducerIdRequest,
    InitProducerIdResponse,
)
from tests.clients.wire import Wire
from tests.cluster.load import read_all
from tests.cluster.running import Cluster
from tests.waiting import ANSWER, ATTEMPT_S, SETTLE, seconds

TRANSACTIONS = 12
ELSEWHERE = (
    ErrorCode.NOT_COORDINATOR,
    ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
)
NEVER_MS = 900_000
"""The longest transaction that brokers allow: the tests wait for facts, not for time-outs."""


def commit(producer: Producer, topic: str, number: int) -> list[str]:
    """A transaction over all three partitions; what it wrote."""
    values = [f"{number}-{partition}" for partition in range(3)]
    producer.begin_transaction()
    for partition, value in enumerate(values):
        producer.produce(topic, value.encode(), partition=partition)
    producer.commit_transaction(seconds(SETTLE))
    return values


def writer(cluster: Cluster, transactional_id: str) -> Producer:
    """A producer of transactions, ready."""
    producer = Producer(
        {
            "bootstrap.servers": cluster.bootstrap,
            "transactional.id": transactional_id,
            "transaction.timeout.ms": NEVER_MS,
            "log_level": 0,
        }
    )
    producer.init_transactions(seconds(SETTLE))
    return producer


def values_of(cluster: Cluster, topic: str, expected: int) -> list[str]:
    """What a consumer of committed transactions reads, sorted; so many values at least."""
    polls = read_all(cluster.bootstrap, topic, 3, expected=expected)
    return sorted(value for poll in polls for _, value in poll.records)


def test_transactions_over_brokers(cluster: Cluster, topic: str) -> None:
    """Coordinators and partitions are spread; what is aborted is seen by nobody."""
    cluster.create(topic, 3)
    expected = []
    for number in range(4):
        producer = writer(cluster, f"{topic}-{number}")
        expected += commit(producer, topic, number)
        producer.begin_transaction()
        for partition in range(3):
            producer.produce(topic, b"aborted", partition=partition)
        assert producer.flush(seconds(ANSWER)) == 0
        producer.abort_transaction(seconds(SETTLE))
        expected += commit(producer, topic, number + 10)
    assert values_of(cluster, topic, len(expected)) == sorted(expected)


def test_transactions_go_on_when_brokers_die(cluster: Cluster, topic: str) -> None:
    """The coordinator is killed between transactions, the leader of a partition within one."""
    cluster.create(topic, 3)
    producer = writer(cluster, topic)
    expected = []
    for number in range(TRANSACTIONS):
        expected += commit(producer, topic, number)
        if number == TRANSACTIONS // 3:
            cluster.brokers[coordinator(cluster, "__transaction_state", topic)].kill()
    cluster.start_missing()
    cluster.until_whole(topic)
    producer.begin_transaction()
    producer.produce(topic, b"before", partition=0)
    assert producer.flush(seconds(ANSWER)) == 0
    cluster.brokers[cluster.leader(topic)].kill()
    producer.produce(topic, b"after", partition=0)
    producer.commit_transaction(seconds(SETTLE))
    expected += ["before", "after"]
    assert values_of(cluster, topic, len(expected)) == sorted(expected)
    cluster.start_missing()
    cluster.until_whole(topic)


def test_a_group_goes_on_when_its_coordinator_dies(cluster: Cluster, topic: str) -> None:
    """What it has committed is known to the next coordinator, and nothing is read again."""
    cluster.create(topic)
    sender = Producer({"bootstrap.servers": cluster.bootstrap, "log_level": 0})
    for number in range(200):
        sender.produce(topic, str(number).encode())
    assert sender.flush(seconds(ANSWER)) == 0
    member = Consumer(
        {
            "bootstrap.servers": cluster.bootstrap,
            "group.id": topic,
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
            # Not shorter than what is waited for: who joins again reads again.
            "session.timeout.ms": NEVER_MS,
            "max.poll.interval.ms": NEVER_MS,
            "log_level": 0,
        }
    )
    try:
        member.subscribe([topic])
        read = poll(cluster, member, 100)
        member.commit(asynchronous=False)
        cluster.brokers[coordinator(cluster, "__consumer_offsets", topic)].kill()
        read += poll(cluster, member, 100)
        cluster.wait_for(
            "the committed offset 200",
            lambda: committed(member, topic),
            until=lambda offset: offset == 200,
        )
    finally:
        member.close()
    assert read == [str(number) for number in range(200)]
    cluster.start_missing()
    cluster.until_whole(topic)


def test_the_next_end_waits_for_the_markers_of_the_last(cluster: Cluster, topic: str) -> None:
    """It is told to come again, not that its producer is fenced (KIP-890, Apache Kafka 4.1).

    A rebalance interrupts transactions: the client ends one, and at once aborts the next, which it
    has not begun.
    """
    writer(cluster, topic)  # There are coordinators from now on.
    name = f"{topic}-interrupted"
    # After the tests before one broker may lead all partitions of the coordinators' topic.
    leader = min(cluster.brokers.keys() - {coordinator(cluster, "__transaction_state", name)})
    new = NewTopic(topic, 1, replica_assignment=[[leader]])
    cluster.change(lambda admin: admin.create_topics([new]))
    cluster.wait_for_leadership(
        f"{topic} on broker {leader}", topic, lambda found: found == [(leader, (leader,))]
    )
    first = begin(cluster, name, topic)
    cluster.brokers[leader].kill()
    cluster.wait_for_leadership(
        f"coordinators without broker {leader}",
        "__transaction_state",
        lambda found: all(leader not in isr for _, isr in found),
        cluster.address((leader + 1) % 3),
    )
    granted = end(cluster, name, first, committed=True)
    second = granted.producer_id, granted.producer_epoch
    assert (granted.error_code, second) == (ErrorCode.NONE, (first[0], first[1] + 1))
    refused = end(cluster, name, second, committed=False)
    assert refused.error_code == ErrorCode.CONCURRENT_TRANSACTIONS
    cluster.brokers[leader].start()
    cluster.wait_for(
        "the end of a transaction that was not begun",
        lambda: end(cluster, name, second, committed=False).error_code,
        until=lambda code: code == ErrorCode.NONE,
    )


def begin(cluster: Cluster, name: str, topic: str) -> tuple[int, int]:
    """Begin a transaction that has written to partition 0; the producer's id and epoch."""
    init = InitProducerIdRequest(transactional_id=name, transaction_timeout_ms=NEVER_MS)

    def initialised() -> InitProducerIdResponse:
        with coordinator_of(cluster, name) as wire:
            return wire.ask(init, InitProducerIdResponse, 5)

    granted = cluster.wait_for("a producer id", initialised, until=lambda it: it.error_code == 0)
    producer = granted.producer_id, granted.producer_epoch
    add = AddPartitionsToTxnRequest(
        v3_and_below_transactional_id=name,
        v3_and_below_producer_id=producer[0],
        v3_and_below_producer_epoch=producer[1],
        v3_and_below_topics=[AddPartitionsToTxnTopic(name=topic, partitions=[0])],
    )
    with coordinator_of(cluster, name) as wire:
        answer = wire.ask(add, AddPartitionsToTxnResponse, 3)
    results = answer.results_by_topic_v3_and_below[0].results_by_partition
    assert [it.partition_error_code for it in results] == [ErrorCode.NONE]
    return producer


def end(
    cluster: Cluster, name: str, producer: tuple[int, int], *, committed: bool
) -> EndTxnResponse:
    """End a transaction as clients do that have an epoch for each."""
    request = EndTxnRequest(
        transactional_id=name,
        producer_id=producer[0],
        producer_epoch=producer[1],
        committed=committed,
    )

    def answer() -> EndTxnResponse:
        with coordinator_of(cluster, name) as wire:
            return wire.ask(request, EndTxnResponse, 5)

    # Leaders that were elected elsewhere go back while brokers come and go.
    return cluster.wait_for(
        "an answer of who coordinates", answer, until=lambda it: it.error_code not in ELSEWHERE
    )


def coordinator_of(cluster: Cluster, name: str) -> Wire:
    """A connection to who coordinates a transactional id."""
    broker = coordinator(cluster, "__transaction_state", name)
    return Wire(cluster.brokers[broker].bootstrap)


def poll(cluster: Cluster, member: Consumer, count: int) -> list[str]:
    """So many values."""
    found: list[str] = []

    def consume() -> list[str]:
        messages = member.consume(count - len(found), 1.0)
        found.extend((each.value() or b"").decode() for each in messages if each.error() is None)
        return found

    return cluster.wait_for(f"{count} values", consume, until=lambda it: len(it) == count)


def committed(member: Consumer, topic: str) -> int:
    """The group's committed offset, after a commit of where it is."""
    member.commit(asynchronous=False)
    return member.committed([TopicPartition(topic, 0)], ATTEMPT_S)[0].offset


def coordinator(cluster: Cluster, topic: str, key: str) -> int:
    """Who leads the partition of an internal topic that a key belongs to."""
    value = 0
    for char in key:
        value = (31 * value + ord(char)) & 0xFFFF_FFFF
    value = abs(value - (1 << 32) if value >= 1 << 31 else value)
    leadership = cluster.leadership(topic)
    return leadership[value % len(leadership)][0]
