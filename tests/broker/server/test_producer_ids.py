"""Producer id blocks, on a real store."""

from pathlib import Path

from barnabas_broker.server.producer_ids import BLOCK_SIZE, ProducerIds
from barnabas_broker.zk.embedded import EmbeddedStore
from barnabas_broker.zk.store import Create
from barnabas_broker.zk.znodes import ProducerIdBlock, ProducerIdBlockZnode

NOW_MS = 1_700_000_000_000


def test_blocks_are_claimed_as_needed(tmp_path: Path) -> None:
    """One store write in a thousand ids; two brokers never share one."""
    store = EmbeddedStore.open(tmp_path, now_ms=NOW_MS)
    first, second = ProducerIds(store, 1), ProducerIds(store, 2)
    assert [first.next(NOW_MS), second.next(NOW_MS), first.next(NOW_MS)] == [0, BLOCK_SIZE, 1]
    rest = [first.next(NOW_MS) for _ in range(BLOCK_SIZE - 1)]
    assert rest[-1] == 2 * BLOCK_SIZE
    store.close()


def test_a_block_of_apaches_is_respected(tmp_path: Path) -> None:
    """The znode may have been written by an Apache broker before."""
    store = EmbeddedStore.open(tmp_path, now_ms=NOW_MS)
    taken = ProducerIdBlockZnode.encode(ProducerIdBlock(9, 5000, 5999))
    store.commit([Create(ProducerIdBlockZnode.PATH, taken)], now_ms=NOW_MS)
    assert ProducerIds(store, 1).next(NOW_MS) == 6000
    store.close()
