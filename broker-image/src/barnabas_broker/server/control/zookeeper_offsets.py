"""Offsets that consumers keep in ZooKeeper: version 0 of OffsetCommit and OffsetFetch.

Clients before 0.8.2, and later ones with `offsets.storage=zookeeper`, ask any broker, and other
consumers read the znodes themselves. Nothing of this is in `__consumer_offsets`, and the groups of
the coordinator know nothing of it. An embedded store keeps these znodes too.

They have a thread of their own: a thousand partitions are hundreds of writes, which the controller
must not wait for. Commits that wait while it writes are written together next, as each write waits
for a disk, and each hand-over between threads keeps the event loop from the interpreter. Where one
of them cannot be written, each is written alone, so that none fails for another.

How much may wait is bounded, and so are the znodes, which are never deleted: existing offsets
can always be written, so that no consumer falls back.
"""

import asyncio
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Any

from barnabas_broker.cluster.failures import refusal
from barnabas_broker.invariants import violated
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

PARTITION_CHARACTERS = 250
"""So many characters of a group's name, which may have 32,767, count as one partition more."""

TOGETHER_MAX = 1_000
"""Partitions of commits that are written together; a larger commit is written alone."""

TRANSACTION_BYTES_MAX = 64 * 1024
"""Few hundred znodes: an embedded store runs one transaction at a time for all users."""

COUNT_AGAIN_MS = 2_000
"""So long after the offsets of all groups were counted and found too many, they are not again."""


@dataclass(frozen=True, slots=True, eq=False)
class _Work:
    """A waiting request: `offsets` to write, or, without any, partitions to read."""

    group_id: str
    future: "asyncio.Future[Any]"
    offsets: Mapping[TopicPartition, int] | None = None
    partitions: Sequence[TopicPartition] = ()
    now_ms: int = 0

    @property
    def size(self) -> int:
        """How many partitions it names, and what it takes of memory besides, as partitions."""
        named = len(self.partitions if self.offsets is None else self.offsets)
        return max(1, named) + len(self.group_id) // PARTITION_CHARACTERS


_Outcome = tuple[Any, Exception | None]


class ZooKeeperOffsets:
    """The offsets under `/consumers`, asked for on the event loop, read and written in a thread.

    `znodes_max` gives how many offsets there may be for one more to be made by this broker, which
    counts those of others when it makes its first, and again when it finds too many.
    """

    def __init__(self, store: CoordinationStore, *, znodes_max: Callable[[], int]) -> None:
        self._store = store
        self._znodes_max = znodes_max
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="zookeeper-offsets")
        # These three are the event loop's.
        self._line: deque[_Work] = deque()
        self._waiting = 0  # Partitions of what is in the line, or in work.
        self._at_work = False
        # These two are the thread's.
        self._znodes: int | None = None
        self._counted_ms = 0

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
        if not is_znode_name(group_id):
            return _refused(KafkaError(ErrorCode.INVALID_GROUP_ID))
        future: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        return self._add(_Work(group_id, future, offsets=offsets, now_ms=now_ms))

    def fetch(
        self, group_id: str, partitions: Iterable[TopicPartition]
    ) -> "asyncio.Future[dict[TopicPartition, int]]":
        """Read offsets, of the partitions that have one; the Future fails as that of `commit`."""
        if not is_znode_name(group_id):
            return _refused(KafkaError(ErrorCode.INVALID_GROUP_ID))
        future: asyncio.Future[dict[TopicPartition, int]]
        future = asyncio.get_running_loop().create_future()
        return self._add(_Work(group_id, future, partitions=list(partitions)))

    # On the event loop.

    def _add(self, work: _Work) -> "asyncio.Future[Any]":
        if self._waiting and self._waiting + work.size > WAITING_MAX:
            reason = "too many offsets wait for ZooKeeper"
            return _refused(KafkaError(ErrorCode.COORDINATOR_NOT_AVAILABLE, reason))
        self._waiting += work.size
        self._line.append(work)
        self._begin()
        return work.future

    def _begin(self) -> None:
        """Hand the thread what comes next: one that reads, or commits that are written together."""
        if self._at_work or not self._line:
            return
        together = [self._line.popleft()]
        size = together[0].size
        while self._line and together[0].offsets is not None:
            size += self._line[0].size
            if self._line[0].offsets is None or size > TOGETHER_MAX:
                break
            together.append(self._line.popleft())
        loop = asyncio.get_running_loop()
        try:
            doing = self._thread.submit(self._do, together)
        except RuntimeError:  # The broker stops, and begins nothing any more.
            together += self._line
            self._line.clear()
            self._done(together, None)
            return
        self._at_work = True
        doing.add_done_callback(partial(_call, loop, partial(self._done, together)))

    def _done(self, together: list[_Work], doing: "Future[list[_Outcome]] | None") -> None:
        """Complete every waiting request; `doing` is None, or cancelled, where work never began."""
        self._at_work = False
        self._waiting -= sum(work.size for work in together)
        assert self._waiting >= 0, violated("what waits is counted once")
        outcomes = [] if doing is None or doing.cancelled() else doing.result()
        for number, work in enumerate(together):
            if work.future.done():  # Its client has gone.
                continue
            if not outcomes:
                work.future.cancel()
                continue
            result, error = outcomes[number]
            if error is not None:
                work.future.set_exception(error)
            else:
                work.future.set_result(result)
        self._begin()

    # In the thread.

    def _do(self, together: list[_Work]) -> list[_Outcome]:
        """What comes of each, in their order; raises nothing."""
        if len(together) == 1:
            return [_outcome(partial(self._do_one, together[0]))]
        merged: dict[ConsumerOffsetZnode, int] = {}
        for work in together:
            merged |= _znodes(work.group_id, work.offsets or {})
        _, error = _outcome(partial(self._write, merged, together[-1].now_ms))
        if error is None:
            return [(work.size, None) for work in together]
        if isinstance(error.__cause__, CoordinationError):
            return [(None, error) for _ in together]  # Each alone would wait for it in vain.
        return [_outcome(partial(self._do_one, work)) for work in together]

    def _do_one(self, work: _Work) -> Any:
        if work.offsets is not None:
            return self.write(work.group_id, work.offsets, work.now_ms)
        if work.future.cancelled():  # Its client has gone.
            return {}
        return self.read(work.group_id, work.partitions)

    def write(self, group_id: str, offsets: Mapping[TopicPartition, int], now_ms: int) -> int:
        """Set znodes, made where they are missing and may be, and return how many; blocks.

        Raises KafkaError COORDINATOR_NOT_AVAILABLE, with those that there are set, where others
        may not be made.
        """
        return self._write(_znodes(group_id, offsets), now_ms)

    def _write(self, znodes: Mapping[ConsumerOffsetZnode, int], now_ms: int) -> int:
        limit = min(self._store.transaction_bytes_max, TRANSACTION_BYTES_MAX)
        for _ in range(TRIES_MAX):
            new = self._absent(znodes)
            has_room = self._has_room(len(new), now_ms)
            missing = self._missing(new) if has_room else []
            if not has_room:
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
        reason = f"lost {TRIES_MAX} races for the offsets of a group"
        raise KafkaError(ErrorCode.COORDINATOR_NOT_AVAILABLE, reason)

    def _absent(self, znodes: Iterable[ConsumerOffsetZnode]) -> frozenset[ConsumerOffsetZnode]:
        """Those that do not exist; mostly none."""
        wanted = list(znodes)
        found = self._store.get_many([znode.path for znode in wanted])
        return frozenset(znode for znode, each in zip(wanted, found, strict=True) if each is None)

    def _missing(self, znodes: Iterable[ConsumerOffsetZnode]) -> list[str]:
        """The paths, and those above them, that do not exist, parents first."""
        wanted: dict[str, None] = {}
        for znode in znodes:
            parts = znode.path.split("/")
            wanted |= dict.fromkeys("/".join(parts[:depth]) for depth in range(2, len(parts) + 1))
        found = self._store.get_many(list(wanted))
        return [path for path, each in zip(wanted, found, strict=True) if each is None]

    def _has_room(self, more: int, now_ms: int) -> bool:
        """Whether so many offsets may be made that are not there yet."""
        if not more:
            return True
        largest = self._znodes_max()
        if self._znodes is None or (
            self._znodes + more > largest and now_ms >= self._counted_ms + COUNT_AGAIN_MS
        ):
            self._znodes, self._counted_ms = self._counted(largest), now_ms
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


def _outcome(work: Callable[[], Any]) -> _Outcome:
    """What comes of work, or the error to answer with."""
    cause: Exception
    try:
        return work(), None
    except (CoordinationError, ZooKeeperError) as error:
        code, cause = ErrorCode.COORDINATOR_NOT_AVAILABLE, error
    except MalformedZnodeError as error:
        code, cause = ErrorCode.UNKNOWN_SERVER_ERROR, error
    except Exception as error:  # The boundary between what waits and the thread's life.
        return None, refusal(error, "Reading or writing", "offsets in ZooKeeper")
    failure = KafkaError(code)
    failure.__cause__ = cause
    return None, failure


def _refused(error: KafkaError) -> "asyncio.Future[Any]":
    refused: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
    refused.set_exception(error)
    return refused


def _call(
    loop: asyncio.AbstractEventLoop,
    done: Callable[["Future[list[_Outcome]]"], None],
    doing: "Future[list[_Outcome]]",
) -> None:
    with suppress(RuntimeError):  # The loop is closed.
        loop.call_soon_threadsafe(done, doing)


def _znodes(group_id: str, offsets: Mapping[TopicPartition, int]) -> dict[ConsumerOffsetZnode, int]:
    return {ConsumerOffsetZnode(group_id, each): offset for each, offset in offsets.items()}
