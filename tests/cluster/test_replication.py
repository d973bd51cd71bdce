"""Three broker processes on a real ZooKeeper: what becomes of logs when some of them are away."""

from collections.abc import Iterator

import pytest
from confluent_kafka import Producer

from tests.cluster.load import Writer, read_all
from tests.cluster.running import DEADLINE_S, STEADY, Cluster


@pytest.fixture(scope="module")
def three(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """Three brokers that are in sync for as long as they live, for the module."""
    directory = tmp_path_factory.mktemp("replication")
    with Cluster(directory, settings=STEADY, options=["--supervised"]) as started:
        yield started


def test_too_few_in_sync_replicas_are_told(cluster: Cluster, topic: str) -> None:
    """NOT_ENOUGH_REPLICAS until one of them is back; what was acknowledged can be read."""
    cluster.create(topic)
    leader = cluster.leader(topic)
    others = [broker for broker in cluster.brokers if broker != leader]
    kept = Writer(cluster.bootstrap, f"{topic}-kept", topic, 1)
    with kept:
        cluster.until(lambda: kept.acknowledged > 100)
    for broker in others:
        cluster.brokers[broker].kill()
    cluster.until(lambda: cluster.isr(topic) == (leader,))
    impatient = Producer(
        {
            "bootstrap.servers": cluster.bootstrap,
            "message.timeout.ms": 120_000,
            "retries": 0,
            "log_level": 0,
        }
    )
    told: list[str] = []
    impatient.produce(
        topic, b"refused", on_delivery=lambda error, _: told.append(error.name() if error else "")
    )
    assert impatient.flush(DEADLINE_S) == 0
    assert told == ["NOT_ENOUGH_REPLICAS"]
    cluster.start(others[0])
    cluster.until(lambda: len(cluster.isr(topic)) == 2)
    again = Writer(cluster.bootstrap, f"{topic}-again", topic, 1)
    with again:
        cluster.until(lambda: again.acknowledged > 10)
    sent = {send.value for send in [*kept.finish(), *again.finish()]}
    polls = read_all(cluster.bootstrap, topic, 1, expected=len(sent))
    values = {value for poll in polls for _, value in poll.records}
    assert sent <= values
    assert "refused" not in values
    cluster.start(others[1])
    cluster.until_whole(topic)


def test_records_of_a_dead_leader_are_cut_off(cluster: Cluster, topic: str) -> None:
    """What it alone had was never acknowledged by all; when it is back its log is the others'."""
    cluster.create(topic)
    with Writer(cluster.bootstrap, topic, topic, 1) as writer:
        cluster.until(lambda: writer.acknowledged > 100)
    leader = cluster.leader(topic)
    one, other = (broker for broker in cluster.brokers if broker != leader)
    alone = Producer({"bootstrap.servers": cluster.bootstrap, "acks": 1, "log_level": 0})
    # It knows the leader by now: whom it asked first may be one of those that do not answer.
    alone.produce(topic, b"last word")
    assert alone.flush(DEADLINE_S) == 0
    with cluster.frozen(one), cluster.frozen(other):
        # What answers the fetches that were waiting may reach the others; nothing after it does.
        alone.produce(topic, b"last word")
        assert alone.flush(DEADLINE_S) == 0
        for number in range(100):
            alone.produce(topic, b"alone-%d" % number)
        assert alone.flush(DEADLINE_S) == 0
        cluster.brokers[leader].kill()
    cluster.until_led_by_another(topic, leader)
    with Writer(cluster.bootstrap, f"{topic}-after", topic, 1) as after:
        cluster.until(lambda: after.acknowledged > 100)
    cluster.start(leader)
    cluster.until_whole(topic)
    cluster.until(lambda: len({cluster.content(broker, topic) for broker in cluster.brokers}) == 1)
    assert b"alone" not in cluster.content(leader, topic)
    sent = [send.value for send in [*writer.finish(), *after.finish()]]
    polls = read_all(cluster.bootstrap, topic, 1, expected=len(sent))
    values = [value for poll in polls for _, value in poll.records]
    assert [value for value in values if value != "last word"] == sent


def test_who_was_away_for_long_is_brought_up_to_date(cluster: Cluster, topic: str) -> None:
    """Also when what it had last has been deleted meanwhile: it starts where the leader does."""
    cluster.create(topic, segment_bytes="20000", retention_bytes="40000", file_delete_delay_ms="1")
    leader = cluster.leader(topic)
    absent = next(broker for broker in cluster.brokers if broker != leader)
    with Writer(cluster.bootstrap, topic, topic, 1) as writer:
        cluster.until(lambda: writer.acknowledged > 50)
        cluster.brokers[absent].kill()
        first = min(segments(cluster, leader, topic))
        cluster.until(lambda: absent not in cluster.isr(topic))
        flood(cluster, topic)
        # Followers delete by their own clocks, and another broker may lead by now.
        present = [broker for broker in cluster.brokers if broker != absent]
        cluster.until(
            lambda: all(first not in segments(cluster, broker, topic) for broker in present)
        )
        cluster.start(absent)
        cluster.until_whole(topic)
    cluster.until(
        lambda: cluster.content(absent, topic)[-500:] == cluster.content(leader, topic)[-500:]
    )
    # It had more than that segment where the machine is slow, and deletes it in its own time.
    cluster.until(lambda: first not in segments(cluster, absent, topic))


def flood(cluster: Cluster, topic: str) -> None:
    """Enough records to have retention delete segments, in batches that fit into one."""
    producer = Producer(
        {"bootstrap.servers": cluster.bootstrap, "batch.num.messages": 10, "log_level": 0}
    )
    failures: list[object] = []
    for number in range(300):
        producer.produce(
            topic, b"%04d" % number * 250, on_delivery=lambda error, _: failures.append(error)
        )
        producer.poll(0)
    assert producer.flush(DEADLINE_S) == 0
    assert failures == [None] * 300


def segments(cluster: Cluster, broker: int, topic: str) -> list[str]:
    """The files of records of partition 0."""
    return sorted(
        path.name for path in (cluster.brokers[broker].log_dirs[0] / f"{topic}-0").glob("*.log")
    )
