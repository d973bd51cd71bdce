"""Offsets that consumers keep in ZooKeeper: version 0 of OffsetCommit and OffsetFetch.

Clients before 0.8.2, and later ones with `offsets.storage=zookeeper`, ask any broker, and other
consumers read the znodes themselves. Nothing of this is in `__consumer_offsets`, and the groups of
the coordinator know nothing of it. An embedded store keeps these znodes too.
"""

import asyncio
import re
from collections.abc import Callable, Iterable, Mapping
from typing import TypeVar

from barnabas_broker.controller.writes import missing_parents
from barnabas_broker.server.controller_thread import ControllerThread
from barnabas_broker.zk.store import CoordinationError, CoordinationStore, SetData, in_transactions
from barnabas_broker.zk.znodes import ConsumerOffsetZnode, MalformedZnodeError
from barnabas_kafka.errors import ErrorCode, KafkaError
from barnabas_kafka.ids import TopicPartition
from barnabas_zookeeper.errors import NodeExistsError, NoNodeError, ZooKeeperError

TRIES_MAX = 10
"""A consumer that leaves may delete its znodes meanwhile; so often in a row is no coincidence."""

_NO_ZNODE = re.compile(r"[/\x00-\x1f\x7f-\x9f\ud800-\uf8ff\ufff0-\uffff\U00010000-\U0010ffff]")
"""What no name of a znode holds, by ZooKeeper's PathUtils, which looks at halves of characters."""

Result = TypeVar("Result")


class ZooKeeperOffsets:
    """The offsets under `/consumers`, asked for on the event loop, read in the store's thread."""

    def __init__(self, store: CoordinationStore, *, controller: ControllerThread) -> None:
        self._store = store
        self._controller = controller

    def commit(
        self, group_id: str, offsets: Mapping[TopicPartition, int], *, now_ms: int
    ) -> "asyncio.Future[int]":
        """Write offsets; returns how many.

        The Future fails with KafkaError: INVALID_GROUP_ID for a group that can be no znode,
        COORDINATOR_NOT_AVAILABLE where ZooKeeper is not.
        """
        return self._run(lambda: self.write(group_id, offsets, now_ms))

    def fetch(
        self, group_id: str, partitions: Iterable[TopicPartition]
    ) -> "asyncio.Future[dict[TopicPartition, int]]":
        """Read offsets, of the partitions that have one; the Future fails as that of `commit`."""
        wanted = list(partitions)
        return self._run(lambda: self.read(group_id, wanted))

    def write(self, group_id: str, offsets: Mapping[TopicPartition, int], now_ms: int) -> int:
        """Set znodes, made where they are missing, and return how many; blocks."""
        znodes = _znodes(group_id, offsets)
        for _ in range(TRIES_MAX):
            changes = [
                *missing_parents(self._store, (znode.path for znode in znodes)),
                *(SetData(znode.path, znode.encode(offset)) for znode, offset in znodes.items()),
            ]
            try:
                for some in in_transactions(changes, self._store.transaction_bytes_max):
                    self._store.commit(some, now_ms=now_ms)
            except (NoNodeError, NodeExistsError):
                continue
            return len(znodes)
        raise CoordinationError(f"lost {TRIES_MAX} races for the offsets of a group")

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

    def _run(self, work: Callable[[], Result]) -> "asyncio.Future[Result]":
        def done() -> Result:
            try:
                return work()
            except (CoordinationError, ZooKeeperError) as error:
                raise KafkaError(ErrorCode.COORDINATOR_NOT_AVAILABLE) from error
            except MalformedZnodeError as error:
                raise KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR) from error

        return self._controller.run(lambda _: done())


def _znodes(group_id: str, offsets: Mapping[TopicPartition, int]) -> dict[ConsumerOffsetZnode, int]:
    if group_id in ("", ".", "..") or _NO_ZNODE.search(group_id):
        raise KafkaError(ErrorCode.INVALID_GROUP_ID)
    return {ConsumerOffsetZnode(group_id, each): offset for each, offset in offsets.items()}
