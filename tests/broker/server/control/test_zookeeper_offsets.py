"""Offsets in znodes, on a real store."""

import asyncio
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import cast

import pytest

from barnabas_broker.server.control.zookeeper_offsets import (
    COUNT_AGAIN_MS,
    TOGETHER_MAX,
    WAITING_MAX,
    ZooKeeperOffsets,
)
from barnabas_broker.zk.embedded import EmbeddedStore
from barnabas_broker.zk.store import (
    Committed,
    CoordinationError,
    CoordinationStore,
    Create,
    Delete,
    Operation,
    SetData,
)
from barnabas_kafka.errors import ErrorCode, KafkaError
from barnabas_kafka.ids import TopicPartition
from barnabas_zookeeper.errors import NoAuthError
from tests.waiting import ANSWER, seconds, wait_for_async

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
    """Those that are there can be written; when consumers delete theirs there is room, soon."""
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
    with pytest.raises(KafkaError):  # To count a hundred thousand for each of these is too dear.
        offsets.write("b", dict.fromkeys(ORDERS[:2], 1), NOW_MS)
    assert offsets.write("b", dict.fromkeys(ORDERS[:2], 1), NOW_MS + COUNT_AGAIN_MS) == 2
    offsets.close()
    heir.close()
    store.close()


def test_waiting_commits_are_bounded(tmp_path: Path) -> None:
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


class Store:
    """An embedded store that stands still when told to, and refuses what has a given group."""

    def __init__(self, directory: Path) -> None:
        self.store = EmbeddedStore.open(directory, now_ms=NOW_MS)
        self.free = threading.Event()
        self.refused: dict[str, Exception] = {}
        self.commits: list[list[Operation]] = []
        self.transaction_bytes_max = self.store.transaction_bytes_max
        self.get_many = self.store.get_many
        self.children = self.store.children

    def commit(self, operations: Sequence[Operation], *, now_ms: int) -> Committed:
        """As the store, once it is free."""
        self.commits.append(list(operations))
        self.free.wait()
        for operation in operations:
            group = operation.path.split("/")[2] if operation.path.count("/") > 1 else ""
            if group in self.refused:
                raise self.refused[group]
        return self.store.commit(operations, now_ms=now_ms)


async def together(offsets: ZooKeeperOffsets, store: Store, groups: Sequence[str]) -> list[object]:
    """One commit is in work, those of all groups wait for it; what comes of them."""
    first = offsets.commit("first", {ORDERS[0]: 1}, now_ms=NOW_MS)
    await wait_for_async("the first write", lambda: store.commits)
    waiting = [offsets.commit(each, {ORDERS[0]: 7}, now_ms=NOW_MS) for each in groups]
    store.free.set()
    assert await first == 1
    return await asyncio.gather(*waiting, return_exceptions=True)


@contextmanager
def standing(tmp_path: Path, *, znodes_max: int = 1000) -> Iterator[tuple[Store, ZooKeeperOffsets]]:
    """A store that stands still, and offsets in it."""
    store = Store(tmp_path)
    offsets = ZooKeeperOffsets(cast(CoordinationStore, store), znodes_max=lambda: znodes_max)
    try:
        yield store, offsets
    finally:
        store.free.set()
        offsets.close()
        store.store.close()


def test_waiting_commits_are_written_together(tmp_path: Path) -> None:
    """A hundred commits that came meanwhile are few transactions; the last of one offset stays."""

    async def use() -> None:
        with standing(tmp_path) as (store, offsets):
            groups = [f"g{number}" for number in range(100)]
            assert await together(offsets, store, groups) == [1] * 100
            assert len(store.commits) <= 4
            store.free.clear()
            twice = [offsets.commit("g1", {ORDERS[0]: at}, now_ms=NOW_MS) for at in (8, 10, 9)]
            store.free.set()
            assert await asyncio.gather(*twice) == [1, 1, 1]
            assert await offsets.fetch("g1", ORDERS) == {ORDERS[0]: 9}
            assert await offsets.fetch("g99", ORDERS) == {ORDERS[0]: 7}

    asyncio.run(use())


@pytest.mark.parametrize("error", [NoAuthError("/consumers/bad"), ValueError("a defect")])
def test_one_commit_that_is_refused_fails_no_other(tmp_path: Path, error: Exception) -> None:
    """Those written with it are written alone, then."""

    async def use() -> None:
        with standing(tmp_path) as (store, offsets):
            store.refused["bad"] = error
            answers = await together(offsets, store, ["a", "bad", "b"])
            assert [type(each) for each in answers] == [int, KafkaError, int]
            for group in ("a", "b"):
                assert await offsets.fetch(group, ORDERS) == {ORDERS[0]: 7}

    asyncio.run(use())


def test_new_groups_beyond_the_bound_fail_no_other(tmp_path: Path) -> None:
    """Offsets that there are can always be committed, whoever commits beside them."""

    async def use() -> None:
        with standing(tmp_path, znodes_max=3) as (store, offsets):
            answers = await together(offsets, store, ["a", "first", "b", "c"])
            assert [type(each) for each in answers] == [int, int, int, KafkaError]
            assert await offsets.fetch("first", ORDERS) == {ORDERS[0]: 7}

    asyncio.run(use())


def test_without_zookeeper_all_that_wait_fail_at_once(tmp_path: Path) -> None:
    """Each alone would wait for a session of its own."""

    async def use() -> None:
        with standing(tmp_path) as (store, offsets):
            store.refused["a"] = CoordinationError("no session")
            answers = await together(offsets, store, ["a", "b", "c"])
            assert [each.code for each in answers if isinstance(each, KafkaError)] == [
                ErrorCode.COORDINATOR_NOT_AVAILABLE
            ] * 3
            assert len(store.commits) == 2

    asyncio.run(use())


def test_a_large_commit_is_written_alone(tmp_path: Path) -> None:
    """Who commits little is not held up by more than a large one before it."""

    async def use() -> None:
        with standing(tmp_path, znodes_max=10**6) as (store, offsets):
            first = offsets.commit("first", {ORDERS[0]: 1}, now_ms=NOW_MS)
            await wait_for_async("the first write", lambda: store.commits)
            large = {TopicPartition("t", number): 1 for number in range(TOGETHER_MAX + 1)}
            waiting = [offsets.commit("g", each, now_ms=NOW_MS) for each in ({ORDERS[0]: 1}, large)]
            store.free.set()
            assert await asyncio.gather(first, *waiting) == [1, 1, TOGETHER_MAX + 1]
            kinds = [type(each) for each in store.commits[1]]
            assert kinds == [Create] * 4 + [SetData]

    asyncio.run(use())


def test_a_closed_connection_counts_until_its_commit_is_done(tmp_path: Path) -> None:
    """Clients that commit, close and come again would fill the memory while ZooKeeper is away."""

    async def use() -> None:
        with standing(tmp_path, znodes_max=10**6) as (store, offsets):
            large = {TopicPartition("t", number): 1 for number in range(WAITING_MAX)}
            offsets.commit("g", large, now_ms=NOW_MS).cancel()
            with pytest.raises(KafkaError):
                await offsets.commit("h", {ORDERS[0]: 1}, now_ms=NOW_MS)
            store.free.set()
            await wait_for_async("an empty line", lambda: offsets._waiting, until=lambda it: not it)
            assert await offsets.commit("h", {ORDERS[0]: 1}, now_ms=NOW_MS) == 1

    asyncio.run(use())


def test_requests_without_partitions_or_with_long_names_count(tmp_path: Path) -> None:
    """Else clients that ask for nothing, close and come again would fill the memory."""

    async def use() -> None:
        with standing(tmp_path, znodes_max=10**6) as (store, offsets):
            first = offsets.commit("g", {ORDERS[0]: 1}, now_ms=NOW_MS)
            await wait_for_async("the first write", lambda: store.commits)
            empty = [offsets.commit("h", {}, now_ms=NOW_MS) for _ in range(WAITING_MAX // 2)]
            empty += [offsets.commit("h" * 32_000, {}, now_ms=NOW_MS) for _ in range(1_000)]
            refused = [each for each in empty if each.done()]
            assert 900 < len(refused) < 1_000
            assert isinstance(refused[0].exception(), KafkaError)
            for each in (offsets.fetch("h", ()) for _ in range(WAITING_MAX)):
                if each.done():
                    break
            else:
                pytest.fail("all may wait")
            store.free.set()
            assert await first == 1
            await asyncio.gather(*empty, return_exceptions=True)

    asyncio.run(use())


def test_a_broker_that_stops_answers_all_that_wait(tmp_path: Path) -> None:
    """However many they are."""

    async def use() -> None:
        with standing(tmp_path) as (store, offsets):
            first = offsets.commit("g", {ORDERS[0]: 1}, now_ms=NOW_MS)
            await wait_for_async("the first write", lambda: store.commits)
            waiting = [offsets.fetch("g", ORDERS[:1]) for _ in range(10_000)]
            closing = asyncio.create_task(asyncio.to_thread(offsets.close))
            await wait_for_async("the end of the thread", lambda: offsets._thread._shutdown)
            store.free.set()
            await closing
            assert await first == 1
            outcomes = await asyncio.wait_for(
                asyncio.gather(*waiting, return_exceptions=True), seconds(ANSWER)
            )
            assert {type(each) for each in outcomes} == {asyncio.CancelledError}
            assert not offsets._waiting

    asyncio.run(use())


def test_a_broker_that_stops_answers_what_waits(tmp_path: Path) -> None:
    """Nobody waits for a thread that begins nothing any more."""

    async def use() -> None:
        with standing(tmp_path) as (store, offsets):
            store.free.set()
            await asyncio.to_thread(offsets.close)
            with pytest.raises(asyncio.CancelledError):
                await offsets.commit("h", {ORDERS[0]: 1}, now_ms=NOW_MS)
            assert not offsets._waiting

    asyncio.run(use())
