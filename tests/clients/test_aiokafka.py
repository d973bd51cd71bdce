"""aiokafka, which speaks only versions before the flexible ones."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Iterator
from typing import Any

import pytest
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition
from aiokafka.admin import AIOKafkaAdminClient, NewPartitions, NewTopic, RecordsToDelete

from tests.clients import START_MS
from tests.clients.brokers import Broker
from tests.waiting import ANSWER, seconds


def run(scenario: Coroutine[Any, Any, None]) -> None:
    """Run one scenario, which may not take for ever."""
    asyncio.run(asyncio.wait_for(scenario, seconds(ANSWER)))


@pytest.mark.parametrize("codec", [None, "gzip", "snappy", "lz4", "zstd"])
@pytest.mark.parametrize("idempotent", [False, True], ids=["plain", "idempotent"])
def test_round_trip(broker: Broker, topic: str, codec: str | None, idempotent: bool) -> None:
    """Keys, values, headers and timestamps, null ones too, at every codec."""
    sent = [
        (None if i % 5 == 0 else b"k%d" % i, None if i % 5 == 1 else b"v" * i) for i in range(300)
    ]
    partition = TopicPartition(topic, 0)

    async def produce() -> None:
        async with AIOKafkaProducer(
            bootstrap_servers=broker.bootstrap,
            compression_type=codec,
            acks="all",
            linger_ms=5,
            enable_idempotence=idempotent,
        ) as producer:
            futures = [
                await producer.send(
                    topic,
                    value,
                    key,
                    partition=0,
                    headers=[("h", b"%d" % i)],
                    timestamp_ms=START_MS + i,
                )
                for i, (key, value) in enumerate(sent)
            ]
            assert [(await future).offset for future in futures] == list(range(300))

    async def consume() -> None:
        consumer = AIOKafkaConsumer(bootstrap_servers=broker.bootstrap, group_id=None)
        await consumer.start()
        try:
            consumer.assign([partition])
            await consumer.seek_to_beginning(partition)
            found = [await consumer.getone() for _ in sent]
            assert [(record.key, record.value) for record in found] == sent
            assert [record.timestamp for record in found] == [START_MS + i for i in range(300)]
            assert [record.headers for record in found] == [(("h", b"%d" % i),) for i in range(300)]
            assert await consumer.beginning_offsets([partition]) == {partition: 0}
            assert await consumer.end_offsets([partition]) == {partition: 300}
            times = await consumer.offsets_for_times({partition: START_MS + 100})
            assert times[partition].offset == 100
        finally:
            await consumer.stop()

    async def both() -> None:
        await produce()
        await consume()

    run(both())


def test_admin(broker: Broker, topic_names: Iterator[str]) -> None:
    """Topics grow and go, and records are deleted up to an offset."""
    name = next(topic_names)
    partition = TopicPartition(name, 0)

    async def scenario() -> None:
        admin = AIOKafkaAdminClient(bootstrap_servers=broker.bootstrap)
        await admin.start()
        try:
            await admin.create_topics([NewTopic(name, 1, 1)])
            await admin.create_partitions({name: NewPartitions(3)})
            (described,) = await admin.describe_topics([name])
            assert len(described["partitions"]) == 3
            async with AIOKafkaProducer(bootstrap_servers=broker.bootstrap) as producer:
                for i in range(5):
                    await producer.send_and_wait(name, b"%d" % i, partition=0)
            deleted = await admin.delete_records({partition: RecordsToDelete(before_offset=3)})
            assert deleted == {partition: 3}
            await admin.delete_topics([name])
            assert name not in await admin.list_topics()
        finally:
            await admin.close()

    run(scenario())
