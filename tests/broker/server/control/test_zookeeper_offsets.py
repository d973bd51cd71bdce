"""Offsets in znodes, on a real store."""

import asyncio
import threading
from pathlib import Path

import pytest

from barnabas_broker.server.control.zookeeper_offsets import WAITING_MAX, ZooKeeperOffsets
from barnabas_broker.zk.embedded import EmbeddedStore
from barnabas_broker.zk.store import Delete, SetData
from barnabas_kafka.errors import ErrorCode, KafkaError
from barnabas_kafka.ids import TopicPartition

NOW_MS = 1_700_000_000_000
ORDERS = [TopicPartition("orders", number) for number in range(200)]


def test_offsets_are_written_and_read(tmp_path: Path) -> None:
    """More than fit in one transaction, twice; what a consumer garbled is an error, and told."""
    store = EmbeddedStore.open(tmp_path, now_ms=NOW_MS)

    async def use() -> None:
        offsets = ZooKeeperOffsets(store, znodes_max=lambda: 1000)
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
            offsets.close()

    asyncio.run(use())
    store.close()


def test_no_more_are_made_than_there_may_be(tmp_path: Path) -> None:
    """Those that are there can be written; when consumers delete theirs there is room again."""
    store = EmbeddedStore.open(tmp_path, now_ms=NOW_MS)
    offsets = ZooKeeperOffsets(store, znodes_max=lambda: 3)
    assert offsets.write("a", dict.fromkeys(ORDERS[:2], 1), NOW_MS) == 2
    heir = ZooKeeperOffsets(store, znodes_max=lambda: 3)
    for each in (offsets, heir):
        with pytest.raises(KafkaError) as failed:
            each.write("b", dict.fromkeys(ORDERS[:2], 1), NOW_MS)
        assert failed.value.code is ErrorCode.COORDINATOR_NOT_AVAILABLE
        assert store.exists("/consumers/b") is None
        with pytest.raises(KafkaError):
            each.write("a", dict.fromkeys(ORDERS[:4], 7), NOW_MS)
        assert each.read("a", ORDERS) == dict.fromkeys(ORDERS[:2], 7)
    store.commit([Delete("/consumers/a/offsets/orders/0")], now_ms=NOW_MS)
    assert offsets.write("b", dict.fromkeys(ORDERS[:2], 1), NOW_MS) == 2
    offsets.close()
    heir.close()
    store.close()


def test_what_waits_is_bounded(tmp_path: Path) -> None:
    """One request may always wait; what is too much is refused at once, and the rest is done."""
    store = EmbeddedStore.open(tmp_path, now_ms=NOW_MS)
    free = threading.Event()

    async def use() -> None:
        offsets = ZooKeeperOffsets(store, znodes_max=lambda: 10**9)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(offsets, "read", lambda *_: free.wait() and {})
            large = [TopicPartition("t", number) for number in range(WAITING_MAX + 1)]
            first = offsets.fetch("g", large)
            with pytest.raises(KafkaError) as failed:
                await offsets.fetch("g", large[:1])
            assert failed.value.code is ErrorCode.COORDINATOR_NOT_AVAILABLE
            free.set()
            assert await first == {}
            assert await offsets.fetch("g", large) == {}
        offsets.close()

    asyncio.run(use())
    store.close()
