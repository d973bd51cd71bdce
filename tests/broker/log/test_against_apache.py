"""One data directory, two brokers: Apache Kafka starts on ours, ours on Apache's, in turn."""

from pathlib import Path

from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from barnabas_broker.log.config import LogConfig
from barnabas_broker.log.directories import LogDirectories
from barnabas_broker.log.partition_log import PartitionLog
from barnabas_kafka import ids
from tests.broker.log.samples import NOW, append, batch_of, offsets_in
from tests.oracle.apache import ApacheKafka, run_tool
from tests.waiting import ANSWER, seconds, wait_for

TOPIC = "shared"
TP = ids.TopicPartition(TOPIC, 0)
SETTINGS = {"segment.bytes": "20000", "index.interval.bytes": "1000"}
CONFIG = LogConfig(segment_bytes=20_000, index_interval_bytes=1000)


def create_topic(bootstrap: str) -> None:
    admin = AdminClient({"bootstrap.servers": bootstrap})
    admin.create_topics([NewTopic(TOPIC, 1, 1, config=SETTINGS)])[TOPIC].result(seconds(ANSWER))


def produce(bootstrap: str, first: int, count: int) -> None:
    """Records first…first+count-1, idempotent, in small batches."""
    producer = Producer(
        {"bootstrap.servers": bootstrap, "enable.idempotence": True, "batch.num.messages": 7}
    )
    for number in range(first, first + count):
        producer.produce(TOPIC, key=f"k{number}", value=f"value {number}" * 5)
    assert producer.flush(seconds(ANSWER)) == 0


def consume(bootstrap: str, count: int) -> list[int]:
    """The offsets a consumer gets from the beginning."""
    consumer = Consumer(
        {"bootstrap.servers": bootstrap, "group.id": "reader", "enable.auto.commit": False}
    )
    consumer.assign([TopicPartition(TOPIC, 0, 0)])
    offsets: list[int] = []

    def read() -> int:
        batch = consumer.consume(count - len(offsets), 0.5)
        offsets.extend(offset for message in batch if (offset := message.offset()) is not None)
        return len(offsets)

    wait_for(f"{count} records", read, until=lambda found: found == count)
    consumer.close()
    return offsets


def opened(kafka: ApacheKafka) -> LogDirectories:
    """Apache's directories as our broker takes them over."""
    logs = LogDirectories.take(kafka.log_dirs)
    broker_id, cluster_id = logs.stored_broker_id, logs.stored_cluster_id
    assert broker_id is not None
    assert cluster_id is not None
    logs.claim(broker_id=broker_id, cluster_id=cluster_id)
    logs.load(lambda _: CONFIG, now_ms=NOW)
    return logs


def all_offsets(log: PartitionLog) -> list[int]:
    """Every offset in the log, read as a replica reads."""
    found: list[int] = []
    while (offset := found[-1] + 1 if found else 0) < log.log_end_offset:
        part = log.read(offset, 8000, upper_bound=log.log_end_offset)
        found += offsets_in(part.read())
    return found


def assert_apache_finds_no_fault(directory: Path) -> None:
    """DumpLogSegments over every file it knows, deep."""
    names = ("*.log", "*.index", "*.timeindex", "*.snapshot", "*.txnindex")
    files = sorted(str(path) for name in names for path in directory.glob(name))
    options = ("--files", ",".join(files), "--deep-iteration")
    result = run_tool("kafka.tools.DumpLogSegments", *options)
    for fault in ("Mismatches", "Non-consecutive", "isvalid: false", "Found", "not found"):
        assert fault not in result.stdout + result.stderr
    assert result.stdout.count("Dumping") == len(files)


def test_a_directory_goes_to_and_fro(tmp_path: Path) -> None:
    """Clean and killed, in both directions, and no record, epoch or sequence is lost."""
    kafka = ApacheKafka(directory=tmp_path, heap="256M")
    with kafka:
        create_topic(kafka.bootstrap)
        produce(kafka.bootstrap, 0, 1000)

        # Apache stops cleanly, ours starts without a scan and goes on writing.
        kafka.stop()
        logs = opened(kafka)
        assert logs.clean_start
        log = logs.logs[TP]
        assert log.high_watermark == log.log_end_offset == 1000
        assert all_offsets(log) == list(range(1000))
        assert len(log.segments) > 3
        assert log.producers.producers
        topic_id = log.topic_id
        assert topic_id is not None
        epoch = log.latest_epoch
        for number in range(200):
            append(log, batch_of(2, timestamp=NOW + number), epoch=epoch)
        logs.close(broker_epoch=1)
        assert_apache_finds_no_fault(kafka.log_dirs[0] / "shared-0")

        # Apache takes over what ours closed.
        kafka.start()
        assert consume(kafka.bootstrap, 1400) == list(range(1400))
        kafka.stop()

        # Ours goes without closing anything, as if killed, and Apache recovers its directory.
        logs = opened(kafka)
        log = logs.logs[TP]
        for number in range(50):
            append(log, batch_of(2, timestamp=NOW + number), epoch=log.latest_epoch)
        logs.close(clean=False)
        kafka.start()
        assert consume(kafka.bootstrap, 1500) == list(range(1500))

        # Apache is killed while it holds more, and ours recovers its directory.
        produce(kafka.bootstrap, 1500, 300)
        kafka.kill()
        logs = opened(kafka)
        assert not logs.clean_start
        log = logs.logs[TP]
        assert log.topic_id == topic_id
        assert all_offsets(log) == list(range(1800))
        logs.close()
        assert_apache_finds_no_fault(kafka.log_dirs[0] / "shared-0")
