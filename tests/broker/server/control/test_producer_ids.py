"""Producer id blocks, on a real store."""

import asyncio
from collections.abc import Sequence
from pathlib import Path
from random import Random

from barnabas_broker.controller.controller import Controller
from barnabas_broker.controller.transitions.producer_ids import BLOCK_SIZE
from barnabas_broker.server.control.controller_thread import ControllerThread
from barnabas_broker.server.control.producer_ids import ProducerIds
from barnabas_broker.zk.embedded import EmbeddedStore
from barnabas_broker.zk.store import Create
from barnabas_broker.zk.znodes import ProducerIdBlock, ProducerIdBlockZnode
from barnabas_kafka.settings.broker import BrokerSettings

NOW_MS = 1_700_000_000_000


def ids_of(store: EmbeddedStore, brokers: Sequence[int]) -> list[int]:
    """The ids that brokers on one store are given, one for each that is named, in turn."""

    async def give() -> list[int]:
        settings = BrokerSettings.from_mapping({})
        controller = ControllerThread(
            Controller(store, broker_id=1, settings=settings, random=Random(1)),
            loop=asyncio.get_running_loop(),
            clock_ms=lambda: NOW_MS,
        )
        ids = {each: ProducerIds(each, controller=controller) for each in set(brokers)}
        try:
            return [await ids[each].next(NOW_MS) for each in brokers]
        finally:
            await controller.stop()

    return asyncio.run(give())


def test_blocks_are_claimed_as_needed(tmp_path: Path) -> None:
    """One store write in a thousand ids; two brokers never share one."""
    store = EmbeddedStore.open(tmp_path, now_ms=NOW_MS)
    given = ids_of(store, [1, 2, *([1] * BLOCK_SIZE)])
    assert given[:3] == [0, BLOCK_SIZE, 1]
    assert given[-1] == 2 * BLOCK_SIZE
    store.close()


def test_a_burst_of_producers_claims_one_block(tmp_path: Path) -> None:
    """Those who ask while a block is being claimed wait for that block."""
    store = EmbeddedStore.open(tmp_path, now_ms=NOW_MS)

    async def burst() -> list[int]:
        settings = BrokerSettings.from_mapping({})
        controller = ControllerThread(
            Controller(store, broker_id=1, settings=settings, random=Random(1)),
            loop=asyncio.get_running_loop(),
            clock_ms=lambda: NOW_MS,
        )
        ids = ProducerIds(1, controller=controller)
        try:
            return await asyncio.gather(*(ids.next(NOW_MS) for _ in range(50)))
        finally:
            await controller.stop()

    assert sorted(asyncio.run(burst())) == list(range(50))
    store.close()


def test_a_block_of_apaches_is_respected(tmp_path: Path) -> None:
    """The znode may have been written by an Apache broker before."""
    store = EmbeddedStore.open(tmp_path, now_ms=NOW_MS)
    taken = ProducerIdBlockZnode.encode(ProducerIdBlock(9, 5000, 5999))
    store.commit([Create(ProducerIdBlockZnode.PATH, taken)], now_ms=NOW_MS)
    assert ids_of(store, [1]) == [6000]
    store.close()
