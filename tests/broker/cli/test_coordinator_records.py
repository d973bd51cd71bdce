"""Records of the coordinators' topics as `dump-log` prints them."""

import json
from pathlib import Path

from confluent_kafka import Consumer, TopicPartition

from barnabas_broker.coordinator.group.consumer.records import ConsumerRecord, Kind
from barnabas_broker.testing import Broker
from barnabas_kafka.protocol.embedded_consumers import ConsumerGroupRegularExpressionValue
from barnabas_kafka.records.builder import build_batch
from tests.broker.cli.conftest import Run
from tests.broker.log.samples import NOW, append, open_log


def dumped(run: Run, directory: Path, key: bytes | None, value: bytes, *, fails: int = 0) -> str:
    """What is printed of one record of `__consumer_offsets`."""
    directory.mkdir(exist_ok=True)
    log = open_log(directory)
    append(log, build_batch([(NOW, key, value, ())]))
    log.close()
    file = str(directory / "orders-3" / f"{0:020d}.log")
    return run("dump-log", file, "--offsets-decoder", fails=fails).stdout.splitlines()[-1]


def test_a_commit_of_a_client_is_printed(run: Run, kafka_broker_factory: object) -> None:
    """Key and value as JSON, also inside JSON output."""
    assert callable(kafka_broker_factory)
    broker: Broker = kafka_broker_factory({"offsets.topic.num.partitions": "1"})
    broker.create_topic("t", partitions=1)
    consumer = Consumer({"bootstrap.servers": broker.bootstrap_servers, "group.id": "g"})
    consumer.commit(offsets=[TopicPartition("t", 0, 7)], asynchronous=False)
    consumer.close()
    broker.stop()
    log = str(broker.log_dir / "__consumer_offsets-0" / f"{0:020d}.log")
    key = '{"type":"1","data":{"group":"g","topic":"t","partition":0}}'
    text = run("dump-log", log, "--offsets-decoder").stdout
    assert f' key: {key} payload: {{"version":"3","data":{{"offset":7,"leaderEpoch":-1,' in text
    rows = run("dump-log", log, "--offsets-decoder", "--output", "json").json_lines()
    [row] = [row for row in rows if row.get("key") == key]
    assert json.loads(row["payload"])["data"]["offset"] == 7


def test_an_expression_is_decoded_as_kafka_4_does(run: Run, tmp_path: Path) -> None:
    """Kafka 3.9 does not know its type."""
    value = ConsumerGroupRegularExpressionValue(topics=["abc"], version=4, timestamp=NOW)
    key, encoded = ConsumerRecord("g", Kind.EXPRESSION, "a.*", value).encoded()
    assert encoded is not None
    assert dumped(run, tmp_path, key, encoded).endswith(
        'key: {"type":"16","data":{"groupId":"g","regularExpression":"a.*"}} '
        f'payload: {{"version":"0","data":{{"topics":["abc"],"version":4,"timestamp":{NOW}}}}}'
    )


def test_a_record_that_cannot_be_decoded_is_named(run: Run, tmp_path: Path) -> None:
    """One that is damaged is skipped; one without a key shows that the topic is another."""
    damaged = dumped(run, tmp_path / "damaged", b"\0\1\0\x09g", b"")
    assert " key: Error at offset 0, skipping. " in damaged
    other = dumped(run, tmp_path / "other", None, b"v", fails=1)
    assert other == ("PROBLEM at offset 0: the record has no key: the decoder is of another topic")
