"""Groups and transactions whose coordinators are on other brokers, and move while they are used."""

from confluent_kafka import Consumer, Producer, TopicPartition

from tests.cluster.load import read_all
from tests.cluster.running import Cluster
from tests.waiting import ANSWER, ATTEMPT_S, SETTLE, seconds

TRANSACTIONS = 12
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
