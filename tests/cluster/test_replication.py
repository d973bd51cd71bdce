"""Three broker processes on a real ZooKeeper: what becomes of logs when some of them are away."""

from collections.abc import Iterator
from zlib import crc32

import pytest
from confluent_kafka import Producer

from barnabas_broker.log.validator import AT_ONCE_BYTES
from barnabas_kafka.errors import ErrorCode
from barnabas_kafka.protocol.messages.produce import (
    PartitionProduceData,
    ProduceResponse,
    TopicProduceData,
)
from barnabas_kafka.records.builder import build_batch
from barnabas_kafka.records.compression import Codec
from tests.clients import START_MS
from tests.clients.wire import Wire, produce, some_batch
from tests.cluster.load import NEVER_MS, Writer, read_all
from tests.cluster.running import Cluster
from tests.waiting import ANSWER, seconds


@pytest.fixture(scope="module")
def three(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """Three brokers that are in sync for as long as they live, for the module."""
    with Cluster(tmp_path_factory.mktemp("replication")) as started:
        yield started


def test_too_few_in_sync_replicas_refuse_produce(cluster: Cluster, topic: str) -> None:
    """NOT_ENOUGH_REPLICAS until one of them is back; what was acknowledged can be read."""
    cluster.create(topic)
    leader = cluster.leader(topic)
    others = [broker for broker in cluster.brokers if broker != leader]
    kept = Writer(cluster.bootstrap, f"{topic}-kept", topic, 1)
    with kept:
        kept.wait_for_more(100)
    for broker in others:
        cluster.brokers[broker].kill()
    cluster.until_in_sync(topic, leader)
    impatient = Producer(
        {
            "bootstrap.servers": cluster.bootstrap,
            "message.timeout.ms": NEVER_MS,
            "retries": 0,
            "log_level": 0,
        }
    )
    reported: list[str] = []
    impatient.produce(
        topic,
        b"refused",
        on_delivery=lambda error, _: reported.append(error.name() if error else ""),
    )
    assert impatient.flush(seconds(ANSWER)) == 0
    assert reported == ["NOT_ENOUGH_REPLICAS"]
    cluster.start(others[0])
    cluster.until_in_sync(topic, leader, others[0])
    again = Writer(cluster.bootstrap, f"{topic}-again", topic, 1)
    with again:
        again.wait_for_more(10)
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
        writer.wait_for_more(100)
    leader = cluster.leader(topic)
    one, other = (broker for broker in cluster.brokers if broker != leader)
    alone = Producer({"bootstrap.servers": cluster.bootstrap, "acks": 1, "log_level": 0})
    # It knows the leader by now: whom it asked first may be one of those that do not answer.
    alone.produce(topic, b"last word")
    assert alone.flush(seconds(ANSWER)) == 0
    with cluster.frozen(one), cluster.frozen(other):
        # What answers the fetches that were waiting may reach the others; nothing after it does.
        alone.produce(topic, b"last word")
        assert alone.flush(seconds(ANSWER)) == 0
        for number in range(100):
            alone.produce(topic, b"alone-%d" % number)
        assert alone.flush(seconds(ANSWER)) == 0
        cluster.brokers[leader].kill()
    cluster.until_led_by_another(topic, leader)
    with Writer(cluster.bootstrap, f"{topic}-after", topic, 1) as after:
        after.wait_for_more(100)
    cluster.start(leader)
    cluster.until_whole(topic)
    cluster.until_same_logs(topic)
    assert b"alone" not in cluster.content(leader, topic)
    sent = [send.value for send in [*writer.finish(), *after.finish()]]
    polls = read_all(cluster.bootstrap, topic, 1, expected=len(sent))
    values = [value for poll in polls for _, value in poll.records]
    assert [value for value in values if value != "last word"] == sent


def test_a_long_offline_replica_catches_up(cluster: Cluster, topic: str) -> None:
    """Also when what it had last has been deleted meanwhile: it starts where the leader does."""
    cluster.create(topic, segment_bytes="20000", retention_bytes="40000", file_delete_delay_ms="1")
    leader = cluster.leader(topic)
    absent = next(broker for broker in cluster.brokers if broker != leader)
    with Writer(cluster.bootstrap, topic, topic, 1) as writer:
        writer.wait_for_more(50)
        cluster.brokers[absent].kill()
        first = min(segments(cluster, leader, topic))
        cluster.wait_for_leadership(
            f"in-sync replicas without broker {absent}",
            topic,
            lambda found: absent not in found[0][1],
        )
        flood(cluster, topic)
        # Followers delete by their own clocks, and another broker may lead by now.
        present = [broker for broker in cluster.brokers if broker != absent]
        for broker in present:
            until_deleted(cluster, broker, topic, first)
        cluster.start(absent)
        cluster.until_whole(topic)
    cluster.wait_for(
        f"the same end of the log on brokers {absent} and {leader}",
        lambda: [crc32(cluster.content(it, topic)[-500:]) for it in (absent, leader)],
        until=lambda found: len({*found}) == 1,
    )
    # It had more than that segment where the machine is slow, and deletes it in its own time.
    until_deleted(cluster, absent, topic, first)


def test_partitions_replicated_before_the_end_of_a_request_are_acknowledged(three: Cluster) -> None:
    """A request is worked on in turns, and by its end nothing moves in its first partition."""
    three.create("in-turns", 1)
    three.create("in-turns-compacted", 12, cleanup_policy="compact")
    three.until_whole("in-turns-compacted")
    leader = three.leader("in-turns")
    led = [at for at, (it, _) in enumerate(three.leadership("in-turns-compacted")) if it == leader]
    # Looked at in a thread while followers fetch what is before it, and refused: it has no key.
    keyless = build_batch([(START_MS, None, bytes(32 * AT_ONCE_BYTES), ())], codec=Codec.GZIP)
    rest = [PartitionProduceData(index=each, records=keyless) for each in led]
    request = produce("in-turns", some_batch())
    request.topic_data.append(TopicProduceData(name="in-turns-compacted", partition_data=rest))
    with Wire(three.address(leader), timeout_s=2 * seconds(ANSWER)) as connection:
        answer = connection.ask(request, ProduceResponse, 9)
    codes = [[each.error_code for each in it.partition_responses] for it in answer.responses]
    assert codes == [[ErrorCode.NONE], [ErrorCode.INVALID_RECORD] * len(led)]


def until_deleted(cluster: Cluster, broker: int, topic: str, segment: str) -> None:
    """Wait until a broker has deleted a segment."""
    cluster.wait_for(
        f"the end of segment {segment} on broker {broker}",
        lambda: segments(cluster, broker, topic),
        until=lambda found: segment not in found,
    )


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
    assert producer.flush(seconds(ANSWER)) == 0
    assert failures == [None] * 300


def segments(cluster: Cluster, broker: int, topic: str) -> list[str]:
    """The files of records of partition 0."""
    return sorted(
        path.name for path in (cluster.brokers[broker].log_dirs[0] / f"{topic}-0").glob("*.log")
    )
