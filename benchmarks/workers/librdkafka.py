"""Produces or consumes through librdkafka, in batches so that Python is crossed rarely.

Producing hands lists of records to ``produce_batch``; consuming takes up to 10,000 at a time. The
binding still makes an object per record, on both brokers alike.

Specification: mode (``produce`` or ``consume``), bootstrap, topic, records, record_bytes, config;
for consume also passes.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from typing import Any, Final

from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition

from benchmarks.workers.protocol import Report, Spec, serve

BATCH: Final = 1000
STALLED_AFTER: Final = 30.0


def prepare_producer(spec: Spec) -> Callable[[], Report]:
    """A connected producer and a list of records that it will send over and over."""
    failures: list[str] = []
    producer = Producer(
        {
            "bootstrap.servers": spec["bootstrap"],
            "queue.buffering.max.messages": 1_000_000,
            "delivery.report.only.error": True,
            "on_delivery": lambda error, _message: failures.append(str(error)),
            **spec["config"],
        }
    )
    producer.list_topics(spec["topic"], timeout=20)
    value = os.urandom(spec["record_bytes"])

    def work() -> Report:
        begin = time.perf_counter()
        sent = 0
        while sent < spec["records"]:
            records: list[dict[str, Any]] = [{"value": value} for _ in range(BATCH)]
            accepted = producer.produce_batch(spec["topic"], records)
            sent += accepted
            producer.poll(0 if accepted == BATCH else 0.01)
        left = producer.flush(90)
        seconds = time.perf_counter() - begin
        if left or failures:
            raise RuntimeError(f"{left} records not delivered; failures: {failures[:3]}")
        return {"records": sent, "bytes": sent * len(value), "seconds": seconds}

    return work


def prepare_consumer(spec: Spec) -> Callable[[], Report]:
    """A consumer that reads partition 0 from its first offset, `passes` times."""
    consumer = Consumer(
        {
            "bootstrap.servers": spec["bootstrap"],
            "group.id": "benchmark",
            "enable.auto.commit": False,
            **spec["config"],
        }
    )
    consumer.list_topics(spec["topic"], timeout=20)

    def one_pass() -> tuple[int, int]:
        consumer.assign([TopicPartition(spec["topic"], 0, 0)])
        records = volume = 0
        progress_at = time.perf_counter()
        while records < spec["records"]:
            # It waits for all it was asked for, so it is not asked for more than there is.
            messages = consumer.consume(min(10_000, spec["records"] - records), timeout=0.5)
            for message in messages:
                if error := message.error():
                    raise KafkaException(error)
                volume += len(message)
            records += len(messages)
            now = time.perf_counter()
            if messages:
                progress_at = now
            elif now - progress_at > STALLED_AFTER:
                raise RuntimeError(f"no progress at {records} records")
        return records, volume

    def work() -> Report:
        begin = time.perf_counter()
        passes = [one_pass() for _ in range(spec["passes"])]
        seconds = time.perf_counter() - begin
        consumer.close()
        return {
            "records": sum(records for records, _ in passes),
            "bytes": sum(volume for _, volume in passes),
            "seconds": seconds,
        }

    return work


def prepare(spec: Spec) -> Callable[[], Report]:
    """The work that the specification's mode asks for."""
    return prepare_producer(spec) if spec["mode"] == "produce" else prepare_consumer(spec)


if __name__ == "__main__":
    serve(prepare)
