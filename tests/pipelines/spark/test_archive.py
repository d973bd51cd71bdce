"""What is in the files is what is in the topics, byte for byte."""

from __future__ import annotations

import itertools
import uuid
from collections.abc import Callable
from pathlib import Path, PurePosixPath
from typing import Any

import pytest
from confluent_kafka import TopicPartition
from confluent_kafka.admin import AdminClient
from pyspark.errors import StreamingQueryException

from barnabas_broker.testing import Broker
from barnabas_broker.testing.plugin import BrokerFactory
from barnabas_pipelines import checkpoint, schemas, sources
from barnabas_pipelines.batches import BatchDirectory
from barnabas_pipelines.errors import NotReadyError
from barnabas_pipelines.failures import explain
from barnabas_pipelines.jobs import archive
from barnabas_pipelines.sinks import ParquetSink
from barnabas_pipelines.spec import PipelineSpec
from barnabas_pipelines.transforms.archive import archive_rows
from tests.pipelines.spark.archives import Headers, Sender, columns_of, numbered, rows_of
from tests.waiting import ANSWER, seconds

ArchiveOnce = Callable[..., Path]


@pytest.fixture
def archive_once(spark: Any, kafka_broker: Broker, tmp_path: Path) -> ArchiveOnce:
    """Archive what is in the topics; returns the output. The same call again goes on."""

    def run(*topics: str, **fields: Any) -> Path:
        spec = PipelineSpec(
            name="archive",
            topics=topics,
            path=PurePosixPath("/data/out"),
            interval_ms=1_000,
            **fields,
        )
        place, output = tmp_path / "checkpoint", tmp_path / "out"
        directory = BatchDirectory(output, run=uuid.uuid4().hex)
        directory.claim(checkpoint.identity(place), committed=checkpoint.committed(place))
        query = archive.start(
            spark,
            spec,
            ParquetSink(directory, checkpoint=place, files_per_batch=2),
            client={"bootstrap.servers": kafka_broker.bootstrap_servers},
            checkpoint=place,
            once=True,
        )
        try:
            query.awaitTermination()
        except StreamingQueryException as error:
            raise explain(str(error), spec) from error
        return output

    return run


@pytest.mark.kafka_topic(partitions=3)
def test_every_kind_of_record_arrives_as_it_was_sent(
    sender: Sender, kafka_topic: str, archive_once: ArchiveOnce
) -> None:
    """Null is null, empty is empty, bytes are bytes; headers keep order, repetition and nulls."""
    bytes_of_every_value = bytes(range(256))
    pieces = (None, b"", b"text", bytes_of_every_value, "Škvorecký".encode())
    headers: tuple[Headers | None, ...] = (
        None,
        (("one", b"1"),),
        (
            ("same", b"1"),
            ("same", b"2"),
            ("null", None),
            ("", b""),
            ("ključ", bytes_of_every_value),
        ),
    )
    contents = list(itertools.product(pieces, pieces, headers))
    for partition in range(3):
        sender.send(kafka_topic, partition, contents)
    output = archive_once(kafka_topic)
    assert sorted(map(repr, rows_of(output))) == sorted(map(repr, sender.sent))
    assert columns_of(output) == [name for name, _ in schemas.ARCHIVE]


@pytest.mark.kafka_topic(config={"max.message.bytes": 16 << 20})
def test_large_records_fit_a_small_heap(
    sender: Sender, kafka_topic: str, archive_once: ArchiveOnce
) -> None:
    """150 MB of records of 5 MB each pass through 512 MiB of heap."""
    sender.send(kafka_topic, 0, [(b"%d" % n, bytes([n]) * (5 << 20), None) for n in range(30)])
    found = sorted(rows_of(archive_once(kafka_topic)))
    assert found == sorted(sender.sent)


def test_a_next_run_adds_what_is_new(
    sender: Sender, kafka_topic: str, archive_once: ArchiveOnce
) -> None:
    """The checkpoint knows what is in files already; no run without news makes a batch."""
    for first in (0, 100):
        sender.send(kafka_topic, 0, numbered(100, first=first))
        for _ in range(2):
            output = archive_once(kafka_topic)
    assert sorted(rows_of(output)) == sorted(sender.sent)
    assert sorted(path.name for path in output.glob("batch=*")) == ["batch=0", "batch=1"]


def test_several_topics_share_an_archive(
    sender: Sender, kafka_broker: Broker, kafka_topic: str, archive_once: ArchiveOnce
) -> None:
    """Each row says which topic it is of."""
    other = kafka_broker.create_topic(f"{kafka_topic}-other", partitions=2)
    sender.send(kafka_topic, 0, numbered(50))
    sender.send(other, 1, numbered(50))
    assert sorted(rows_of(archive_once(kafka_topic, other))) == sorted(sender.sent)


def test_a_batch_that_runs_again_takes_its_own_place(
    sender: Sender, kafka_topic: str, archive_once: ArchiveOnce, tmp_path: Path
) -> None:
    """A crash after a batch appeared and before Spark noted it leaves exactly this state."""
    sender.send(kafka_topic, 0, numbered(300))
    output = archive_once(kafka_topic, max_offsets_per_trigger=100)
    for name in ("2", ".2.crc"):
        (tmp_path / "checkpoint" / "commits" / name).unlink()
    before = {path.name for path in output.glob("batch=2/*")}
    archive_once(kafka_topic, max_offsets_per_trigger=100)
    assert {path.name for path in output.glob("batch=2/*")}.isdisjoint(before)
    assert sorted(rows_of(output)) == sorted(sender.sent)


def test_a_batch_is_bounded(sender: Sender, kafka_topic: str, archive_once: ArchiveOnce) -> None:
    """maxOffsetsPerTrigger is what a batch holds at most."""
    sender.send(kafka_topic, 0, numbered(250))
    output = archive_once(kafka_topic, max_offsets_per_trigger=100)
    sizes = [len(rows_of(output, batch=number)) for number in "012"]
    assert sizes == [100, 100, 50]


def of_topics(*topics: str) -> PipelineSpec:
    """A pipeline of these topics."""
    path = PurePosixPath("/data/out")
    return PipelineSpec(name="some", topics=topics, path=path, interval_ms=1_000)


def test_the_stream_has_the_archives_columns(spark: Any, kafka_broker: Broker) -> None:
    """schemas.py says what Spark delivers."""
    client = {"bootstrap.servers": kafka_broker.bootstrap_servers}
    options = sources.kafka_options(of_topics("any"), client)
    rows = archive_rows(sources.stream(spark, options))
    assert tuple((field.name, field.dataType.simpleString()) for field in rows.schema) == (
        schemas.ARCHIVE
    )


def test_records_removed_unread_are_an_error(
    sender: Sender, kafka_broker: Broker, kafka_topic: str, archive_once: ArchiveOnce
) -> None:
    """By default a pipeline ends rather than leave a gap; told so, it goes on with what is left."""
    sender.send(kafka_topic, 0, numbered(100))
    output = archive_once(kafka_topic)
    sender.send(kafka_topic, 0, numbered(100, first=100))
    admin = AdminClient({"bootstrap.servers": kafka_broker.bootstrap_servers})
    removed = admin.delete_records([TopicPartition(kafka_topic, 0, 150)])
    assert next(iter(removed.values())).result(seconds(ANSWER)).low_watermark == 150
    with pytest.raises(Exception, match=r"were removed from the cluster before.*failOnDataLoss"):
        archive_once(kafka_topic)
    archive_once(kafka_topic, fail_on_data_loss=False)
    kept = [row for row in sender.sent if row.offset < 100 or row.offset >= 150]
    assert sorted(rows_of(output)) == sorted(kept)


def test_a_missing_topic_is_named(spark: Any, kafka_broker: Broker, kafka_topic: str) -> None:
    """Before the query starts, and only those that are missing."""
    client = {"bootstrap.servers": kafka_broker.bootstrap_servers}
    sources.await_topics(spark, client, of_topics(kafka_topic))
    with pytest.raises(NotReadyError, match=r"has no topics not-here, nor-here: create it"):
        sources.await_topics(spark, client, of_topics("not-here", kafka_topic, "nor-here"))


def test_a_broker_that_is_gone_is_named(spark: Any, kafka_broker_factory: BrokerFactory) -> None:
    """One line with the address instead of the client's stack trace."""
    broker = kafka_broker_factory()
    bootstrap = broker.bootstrap_servers
    broker.stop()
    with pytest.raises(NotReadyError, match=f"the broker at {bootstrap} does not say"):
        sources.await_topics(spark, {"bootstrap.servers": bootstrap}, of_topics("any"))
