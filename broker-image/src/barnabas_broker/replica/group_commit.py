"""Group commit: records count once on disk, and one sync serves all waiting appends.

A log directory has one thread that does nothing but sync. Logs that were appended to while it was
busy wait, each once however often it was appended to, and are all covered by its next round. A
round makes new files and directories durable before the bytes in them count. The event loop plans
a round and is notified of each log's end; it never syncs.

A sync that failed is not tried again: its log goes offline, and its waiters get the error.
"""

import asyncio
import errno
import logging
import threading
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from queue import SimpleQueue
from typing import NamedTuple, Protocol

from barnabas_broker.cluster.failures import call_isolated, refusal
from barnabas_broker.log.flushing import FlushPlan
from barnabas_broker.log.partition_log import PartitionLog
from barnabas_kafka.errors import KafkaError

log = logging.getLogger(__name__)


class Committed(Protocol):
    """A partition whose records count once they are on disk."""

    log: PartitionLog

    def commit_ended(self) -> None:
        """A sync of the log has ended: more of it is durable, or it has failed."""


class _Sync(NamedTuple):
    """One log's part of a round; the partition may have another log when it ends."""

    partition: Committed
    log: PartitionLog
    plan: FlushPlan


class GroupCommit:
    """The syncs of one directory. Lives on the event loop, but for the thread it owns."""

    def __init__(
        self, name: str, *, loop: asyncio.AbstractEventLoop, took: Callable[[int], None]
    ) -> None:
        """`took` is called, on the loop, with the microseconds that each sync took."""
        self._loop = loop
        self._took = took
        self._waiting: dict[Committed, None] = {}  # A set that keeps the order.
        self._busy = False
        self._rounds: SimpleQueue[list[_Sync] | None] = SimpleQueue()
        self._thread = threading.Thread(target=self._work, name=f"commit {name}", daemon=True)
        self._thread.start()

    def note(self, partition: Committed) -> None:
        """Something was appended that must become durable; cheap when noted already."""
        self._waiting[partition] = None
        if not self._busy:
            # After everything that arrived in this turn of the loop was appended.
            self._busy = True
            self._loop.call_soon(self._begin)

    def close(self) -> None:
        """Do what was begun, and end the thread. Blocks for as long as a round takes."""
        self._rounds.put(None)
        self._thread.join()

    def _begin(self) -> None:
        waiting, self._waiting = self._waiting, {}
        plans = []
        for partition in waiting:
            try:
                plans.append(_Sync(partition, partition.log, partition.log.commit_plan()))
            except KafkaError:  # The log has failed, and said so.
                call_isolated((partition.commit_ended,), "Commit", partition.log.tp)
            except Exception as error:  # Its waiters get the error; the others go on.
                unplanned = OSError(errno.EIO, str(refusal(error, "Commit", partition.log.tp)))
                plan = FlushPlan(up_to=0, generation=-1, files=(), error=unplanned)
                self._ended(_Sync(partition, partition.log, plan), 0)
        if plans:
            self._rounds.put(plans)
        else:
            self._busy = False

    def _ended(self, sync: _Sync, microseconds: int) -> None:
        steps = (
            partial(self._took, microseconds),
            partial(sync.log.committed, sync.plan),
            sync.partition.commit_ended,
        )
        call_isolated(steps, "Commit", sync.log.tp)

    def _next(self) -> None:
        if self._waiting:
            self._begin()
        else:
            self._busy = False

    def _work(self) -> None:
        while (plans := self._rounds.get()) is not None:
            for sync in plans:
                began_ns = time.perf_counter_ns()
                sync.plan.run()
                self._notify(self._ended, sync, (time.perf_counter_ns() - began_ns) // 1000)
            self._notify(self._next)

    def _notify(self, callback: Callable[..., None], *what: object) -> None:
        try:
            self._loop.call_soon_threadsafe(callback, *what)
        except RuntimeError:  # The loop is closed.
            log.debug("a sync ended after the broker")


class GroupCommits:
    """The group commit of every directory; made when a directory is first written to."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._of: dict[Path, GroupCommit] = {}
        #: called with the microseconds that each sync took
        self.took: Callable[[int], None] = lambda _: None

    def note(self, partition: Committed) -> None:
        """Have the partition's log synced with the others of its directory."""
        directory = partition.log.directory.parent
        commit = self._of.get(directory)
        if commit is None:
            commit = self._of[directory] = GroupCommit(
                directory.name, loop=self._loop, took=lambda microseconds: self.took(microseconds)
            )
        commit.note(partition)

    def close(self) -> None:
        """End all threads. Blocks."""
        for commit in self._of.values():
            commit.close()
        self._of = {}
