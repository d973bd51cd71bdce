"""Options of the Kafka source, and addresses of brokers."""

from __future__ import annotations

import socket
from pathlib import PurePosixPath

import pytest

from barnabas_pipelines import sources
from barnabas_pipelines.errors import NotReadyError, SpecError
from barnabas_pipelines.spec import PipelineSpec


def test_options_of_a_pipeline() -> None:
    """Defaults that spare the broker and leave nothing out."""
    spec = PipelineSpec(
        name="p", topics=("a", "b"), path=PurePosixPath("/data/p"), interval_ms=5_000
    )
    client = {"bootstrap.servers": "kafka:9092", "security.protocol": "SSL"}
    assert sources.kafka_options(spec, client) == {
        "kafka.bootstrap.servers": "kafka:9092",
        "kafka.security.protocol": "SSL",
        "kafka.isolation.level": "read_committed",
        "kafka.max.poll.records": "20000",
        "subscribe": "a,b",
        "startingOffsets": "earliest",
        "maxOffsetsPerTrigger": "1000000",
        "failOnDataLoss": "true",
        "includeHeaders": "true",
    }


def test_addresses() -> None:
    """One or several, names or numbers."""
    assert sources.addresses("kafka:9092, [::1]:19092") == [("kafka", 9092), ("::1", 19092)]
    for wrong in ("kafka", ":9092", "kafka:", "kafka:port", "kafka:99999", ""):
        with pytest.raises(SpecError, match="is no address of a broker such as localhost:9092"):
            sources.addresses(wrong)


def test_one_broker_that_answers_is_enough() -> None:
    """The others may be down."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        sources.await_broker(f"127.0.0.1:1,127.0.0.1:{listener.getsockname()[1]}")


def test_brokers_that_do_not_answer_are_named() -> None:
    """Each with its reason."""
    with pytest.raises(NotReadyError, match=r"127\.0\.0\.1:1 \(Connection refused\)"):
        sources.await_broker("127.0.0.1:1")
