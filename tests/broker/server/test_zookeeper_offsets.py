"""Offsets in znodes, on a real store."""

import asyncio
from pathlib import Path
from random import Random

import pytest

from barnabas_broker.controller.shell import Controller
from barnabas_broker.server.controller_thread import ControllerThread
from barnabas_broker.server.zookeeper_offsets import ZooKeeperOffsets
from barnabas_broker.zk.embedded import EmbeddedStore
from barnabas_broker.zk.store import SetData
from barnabas_kafka.errors import ErrorCode, KafkaError
from barnabas_kafka.ids import TopicPartition
from barnabas_kafka.settings.broker import BrokerSettings

NOW_MS = 1_700_000_000_000
ORDERS = [TopicPartition("orders", number) for number in range(200)]


def test_offsets_are_written_and_read(tmp_path: Path) -> None:
    """More than fit in one transaction, twice; what a consumer garbled is an error, and told."""
    store = EmbeddedStore.open(tmp_path, now_ms=NOW_MS)

    async def use() -> None:
        controller = ControllerThread(
            Controller(
                store, broker_id=1, settings=BrokerSettings.from_mapping({}), random=Random(1)
            ),
            loop=asyncio.get_running_loop(),
            clock_ms=lambda: NOW_MS,
        )
        offsets = ZooKeeperOffsets(store, controller=controller)
        try:
            assert await offsets.fetch("g", ORDERS) == {}
            for first in (0, 5):
                wanted = {each: first + each.partition for each in ORDERS}
                await offsets.commit("g", wanted, now_ms=NOW_MS)
                assert await offsets.fetch("g", ORDERS) == wanted
            assert store.get("/consumers/g/offsets/orders/199")[0] == b"204"
            store.commit([SetData("/consumers/g/offsets/orders/0", b"x")], now_ms=NOW_MS)
            with pytest.raises(KafkaError) as failed:
                await offsets.fetch("g", ORDERS)
            assert failed.value.code is ErrorCode.UNKNOWN_SERVER_ERROR
            with pytest.raises(KafkaError) as failed:
                await offsets.commit("../brokers", {ORDERS[0]: 1}, now_ms=NOW_MS)
            assert failed.value.code is ErrorCode.INVALID_GROUP_ID
        finally:
            await controller.stop()

    asyncio.run(use())
    store.close()
