"""Offsets that consumers keep in ZooKeeper: version 0 of OffsetCommit and OffsetFetch.

Clients before 0.8.2, and later ones with `offsets.storage=zookeeper`, ask any broker, and other
consumers read the znodes themselves. Nothing of this is in `__consumer_offsets`, and the groups of
the coordinator know nothing of it. An embedded store keeps these znodes too.

They have a thread of their own: a thousand partitions are hundreds of writes, which the controller
must not wait for. How much may wait for it is bounded, and so are the znodes, which nobody deletes:
offsets that are there can always be written, so that no consumer falls back.
"""

import asyncio
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from barnabas_broker.zk.names import is_znode_name
from barnabas_broker.zk.store import (
    CoordinationError,
    CoordinationStore,
    Create,
    Operation,
    SetData,
    in_transactions,
)
from barnabas_broker.zk.znodes import ConsumerOffsetZnode, MalformedZnodeError
from barnabas_kafka.errors import ErrorCode, KafkaError
from barnabas_kafka.ids import TopicPartition
from barnabas_zookeeper.errors import NodeExistsError, NoNodeError, ZooKeeperError

TRIES_MAX = 10
"""A consumer that leaves may delete its znodes meanwhile; so often in a row is no coincidence."""

WAITING_MAX = 20_000
"""Partitions in all requests that wait for the thread; one request may always wait."""

TRANSACTION_BYTES_MAX = 64 * 1024
"""Few hundred znodes: an embedded store takes one transaction at a time, whoever has it."""

Result = TypeVar("Result")


class ZooKeeperOffsets:
    """The offsets under `/consumers`, asked for on the event loop, read and written in a thread.

    `znodes_max` gives how many offsets there may be for one more to be made by this broker, which
    counts those of others when it makes its first, and again when it finds too many.
    """

    def __init__(self, store: CoordinationStore, *, znodes_max: Callable[[], int]) -> None:
        self._store = store
        self._znodes_max = znodes_max
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="zookeeper-offsets")
        self._waiting = 0  # Partitions; on the event loop.
        self._znodes: int | None = None  # In the thread.

    def close(self) -> None:
        """Begin nothing any more and wait for what runs; blocks."""
        self._thread.shutdown(wait=True, cancel_futures=True)

    def commit(
        self, group_id: str, offsets: Mapping[TopicPartition, int], *, now_ms: int
    ) -> "asyncio.Future[int]":
        """Write offsets; returns how many.

        The Future fails with KafkaError: INVALID_GROUP_ID for a group that can be no znode,
        COORDINATOR_NOT_AVAILABLE where ZooKeeper is not, where too much waits for it already, or
        where there are too many offsets for new ones; consumers commit again later.
        """
        return self._run(len(offsets), lambda: self.write(group_id, offsets, now_ms))

    def fetch(
        self, group_id: str, partitions: Iterable[TopicPartition]
    ) -> "asyncio.Future[dict[TopicPartition, int]]":
        """Read offsets, of the partitions that have one; the Future fails as that of `commit`."""
        wanted = list(partitions)
        return self._run(len(wanted), lambda: self.read(group_id, wanted))

    def write(self, group_id: str, offsets: Mapping[TopicPartition, int], now_ms: int) -> int:
        """Set znodes, made where they are missing and may be, and return how many; blocks.

        Raises KafkaError COORDINATOR_NOT_AVAILABLE, with those that there are set, where others
        may not be made.
        """
        znodes = _znodes(group_id, offsets)
        limit = min(self._store.transaction_bytes_max, TRANSACTION_BYTES_MAX)
        for _ in range(TRIES_MAX):
            missing = self._missing(znodes)
            absent = frozenset(missing)
            new = frozenset(znode for znode in znodes if znode.path in absent)
            has_room = self._has_room(len(new))
            if not has_room:
                missing = []
                znodes = {znode: at for znode, at in znodes.items() if znode not in new}
            changes: list[Operation] = [
                *(Create(path) for path in missing),
                *(SetData(znode.path, znode.encode(offset)) for znode, offset in znodes.items()),
            ]
            try:
                for some in in_transactions(changes, limit):
                    self._store.commit(some, now_ms=now_ms)
            except (NoNodeError, NodeExistsError):
                continue
            if not has_room:
                raise KafkaError(ErrorCode.COORDINATOR_NOT_AVAILABLE, "too many offsets")
            if self._znodes is not None:
                self._znodes += len(new)
            return len(znodes)
        raise CoordinationError(f"lost {TRIES_MAX} races for the offsets of a group")

    def _missing(self, znodes: Iterable[ConsumerOffsetZnode]) -> list[str]:
        """The paths, and those above them, that do not exist, parents first."""
        wanted: dict[str, None] = {}
        for znode in znodes:
            parts = znode.path.split("/")
            wanted |= dict.fromkeys("/".join(parts[:depth]) for depth in range(2, len(parts) + 1))
        found = self._store.get_many(list(wanted))
        return [path for path, each in zip(wanted, found, strict=True) if each is None]

    def _has_room(self, more: int) -> bool:
        """Whether so many offsets may be made that are not there yet."""
        if not more:
            return True
        largest = self._znodes_max()
        if self._znodes is None or self._znodes + more > largest:
            self._znodes = self._counted(largest)
        return self._znodes + more <= largest

    def _counted(self, enough: int) -> int:
        """How many offsets there are; not counted further than this."""
        count = 0
        for group in self._children("/consumers"):
            path = f"/consumers/{group}/offsets"
            topics = [f"{path}/{topic}" for topic in self._children(path)]
            found = self._store.get_many(topics)
            count += sum(each[1].num_children for each in found if each is not None)
            if count >= enough:
                break
        return count

    def _children(self, path: str) -> list[str]:
        try:
            return self._store.children(path)
        except NoNodeError:
            return []

    def read(
        self, group_id: str, partitions: Iterable[TopicPartition]
    ) -> dict[TopicPartition, int]:
        """Offsets as they are in znodes; blocks."""
        znodes = list(_znodes(group_id, dict.fromkeys(partitions, 0)))
        found = self._store.get_many([znode.path for znode in znodes])
        return {
            znode.partition: znode.decode(each[0])
            for znode, each in zip(znodes, found, strict=True)
            if each is not None
        }

    def _run(self, size: int, work: Callable[[], Result]) -> "asyncio.Future[Result]":
        loop = asyncio.get_running_loop()
        if self._waiting and self._waiting + size > WAITING_MAX:
            refused: asyncio.Future[Result] = loop.create_future()
            reason = "too many offsets wait for ZooKeeper"
            refused.set_exception(KafkaError(ErrorCode.COORDINATOR_NOT_AVAILABLE, reason))
            return refused

        def done() -> Result:
            try:
                return work()
            except (CoordinationError, ZooKeeperError) as error:
                raise KafkaError(ErrorCode.COORDINATOR_NOT_AVAILABLE) from error
            except MalformedZnodeError as error:
                raise KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR) from error

        def settle(_: "asyncio.Future[Result]") -> None:
            self._waiting -= size

        self._waiting += size
        running = loop.run_in_executor(self._thread, done)
        running.add_done_callback(settle)
        return running


def _znodes(group_id: str, offsets: Mapping[TopicPartition, int]) -> dict[ConsumerOffsetZnode, int]:
    if not is_znode_name(group_id):
        raise KafkaError(ErrorCode.INVALID_GROUP_ID)
    return {ConsumerOffsetZnode(group_id, each): offset for each, offset in offsets.items()}
