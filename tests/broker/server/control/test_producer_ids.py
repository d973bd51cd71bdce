"""Producer id blocks, on a real store."""

import asyncio
from collections.abc import Sequence
from pathlib import Path
from random import Random

import pytest

from barnabas_broker.controller.controller import Controller
from barnabas_broker.controller.transitions.producer_ids import BLOCK_SIZE
from barnabas_broker.server.control.controller_thread import ControllerThread
from barnabas_broker.server.control.producer_ids import ProducerIds
from barnabas_broker.zk.embedded import EmbeddedStore
from barnabas_broker.zk.store import CoordinationError, Create
from barnabas_broker.zk.znodes import ProducerIdBlock, ProducerIdBlockZnode
from barnabas_kafka.settings.broker import BrokerSettings
from barnabas_zookeeper.errors import NoAuthError
from barnabas_zookeeper.tree import Committed

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


def test_a_store_that_refuses_a_block_is_not_asked_again_and_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nobody else has claimed one, so this is no lost race: the producer tries again later."""
    store = EmbeddedStore.open(tmp_path, now_ms=NOW_MS)
    asked: list[object] = []

    def refuse(operations: object, *, now_ms: int) -> Committed:
        asked.append(operations)
        raise NoAuthError(ProducerIdBlockZnode.PATH)

    monkeypatch.setattr(store, "commit", refuse)
    with pytest.raises(CoordinationError, match=ProducerIdBlockZnode.PATH):
        ids_of(store, [1])
    assert len(asked) == 1
    store.close()
