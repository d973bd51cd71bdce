"""Consumers that read from the replica of their rack (KIP-392), of three brokers in three racks.

Who served them is told by the bytes that each broker has sent to consumers.
"""

from collections.abc import Callable, Iterator

import pytest
from confluent_kafka import Producer

from tests.cluster import metrics
from tests.cluster.load import Reader, Writer
from tests.cluster.metrics import metric
from tests.cluster.running import Cluster
from tests.oracle.apache import run_tool
from tests.waiting import ANSWER, seconds

RACKS = ("a", "b", "c")
RECORDS = 50
SIZE = 1000
CONSOLE_CONSUMER = "org.apache.kafka.tools.consumer.ConsoleConsumer"
SETTINGS = {
    "replica.selector.class": "org.apache.kafka.common.replica.RackAwareReplicaSelector",
    **metrics.SETTINGS,
}


@pytest.fixture(scope="module")
def three(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """Three brokers in three racks, which send consumers to theirs."""
    directory = tmp_path_factory.mktemp("racks")
    with Cluster(directory, settings=SETTINGS, racks=RACKS) as started:
        yield started


def sent(cluster: Cluster, broker: int, topic: str) -> float:
    """Bytes of a topic that a broker has sent to consumers since it started."""
    return metric(cluster, broker, "kafka_server_brokertopicmetrics_bytesout_total", topic=topic)


def filled(cluster: Cluster, topic: str) -> tuple[int, int]:
    """A topic with records that all three brokers have; its leader, and another of them."""
    cluster.create(topic)
    producer = Producer({"bootstrap.servers": cluster.bootstrap, "acks": "all", "log_level": 0})
    for number in range(RECORDS):
        producer.produce(topic, b"%d" % number * SIZE)
    assert producer.flush(seconds(ANSWER)) == 0
    leader = cluster.leader(topic)
    return leader, next(broker for broker in cluster.brokers if broker != leader)


def by_librdkafka(cluster: Cluster, topic: str, rack: str) -> int:
    """How many records it reads from a rack.

    It is not asked to stop at the end: a follower hears of what is committed a little later.
    """
    with Reader(cluster.bootstrap, topic, topic, 1, **near(rack)) as reader:
        reader.wait_for(RECORDS)
    return len(reader.values)


def by_java(cluster: Cluster, topic: str, rack: str) -> int:
    """How many records kafka-clients reads from a rack."""
    wait_ms = round(seconds(ANSWER) * 1000)
    done = run_tool(
        CONSOLE_CONSUMER,
        *("--bootstrap-server", cluster.bootstrap, "--topic", topic, "--partition", "0"),
        *("--offset", "earliest", "--max-messages", str(RECORDS), "--timeout-ms", str(wait_ms)),
        *("--consumer-property", f"client.rack={rack}"),
    )
    assert done.returncode == 0, done.stderr
    return len(done.stdout.splitlines())


def near(rack: str) -> dict[str, str]:
    """What librdkafka is told."""
    return {"client.rack": rack}


@pytest.mark.parametrize("read", [by_librdkafka, by_java])
def test_a_consumer_reads_from_its_rack(
    cluster: Cluster, topic: str, read: Callable[[Cluster, str, str], int]
) -> None:
    """All of it, and nothing from the leader, until it stands beside that."""
    leader, near_by = filled(cluster, topic)
    assert read(cluster, topic, RACKS[near_by]) == RECORDS
    assert sent(cluster, near_by, topic) >= RECORDS * SIZE
    assert sent(cluster, leader, topic) == 0
    assert read(cluster, topic, RACKS[leader]) == RECORDS
    assert sent(cluster, leader, topic) >= RECORDS * SIZE


def test_a_rack_that_is_away_and_comes_back(cluster: Cluster, topic: str) -> None:
    """Meanwhile the leader serves its consumers."""
    leader, near_by = filled(cluster, topic)
    cluster.brokers[near_by].kill()
    cluster.wait_for(
        f"metadata without broker {near_by}",
        lambda: cluster.metadata().brokers,
        until=lambda brokers: near_by not in brokers,
    )
    assert by_librdkafka(cluster, topic, RACKS[near_by]) == RECORDS
    assert sent(cluster, leader, topic) >= RECORDS * SIZE
    cluster.start(near_by)
    cluster.until_whole(topic)

    def served() -> float:
        assert by_librdkafka(cluster, topic, RACKS[near_by]) == RECORDS
        return sent(cluster, near_by, topic)

    cluster.wait_for("bytes that the broker of the rack has sent to consumers", served)


def test_the_leader_dies_under_readers_of_a_follower(cluster: Cluster, topic: str) -> None:
    """They go on with whoever leads then: every record once, in order."""
    leader, near_by = filled(cluster, topic)
    reader = Reader(cluster.bootstrap, topic, topic, 1, **near(RACKS[near_by]))
    with reader, Writer(cluster.bootstrap, topic, topic, 1) as writer:
        reader.wait_for(RECORDS + 1)
        assert sent(cluster, near_by, topic) > 0
        assert sent(cluster, leader, topic) == 0
        cluster.brokers[leader].kill()
        cluster.until_led_by_another(topic, leader)
        writer.wait_for_more(RECORDS)
        written = [send.value for send in writer.finish()]
        reader.wait_for(RECORDS + len(written))
    assert reader.values[RECORDS:] == written
