"""The fetch session that a leader keeps with a follower (KIP-227): a fetch costs what has changed.

A follower fetches all partitions with every request, a thousand times a second, and nearly all of
unchanged. So a session knows which of its partitions may have something to send or to
learn (`active`); the others rest. A partition rests once its follower is in the ISR, has asked for
the end of the log, and has received the high watermark and the log start: another read would
find nothing and change nothing but the time at which the follower was last caught up, which is
that of the session's last request (`Partition.follower_stayed`). It is woken by its `Watch`: an
append, a high watermark or an ISR that moves, another state from the controller. Every partition
is read once in `SCAN_MS` whatever happens, for what does not say so (retention).

Invariants: a partition that has no watch is active, and so is every other that does not rest;
`active` is in fetch order, in which a partition that had records goes to the end, so that under a
small response limit every partition gets its turn.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final, cast

from barnabas_broker.invariants import violated
from barnabas_broker.replica.delayed_fetch import DelayedFetch
from barnabas_broker.replica.fetch_session import Key, Session, Target
from barnabas_broker.replica.gradual_scan import GradualScan
from barnabas_broker.replica.partition import Partition
from barnabas_kafka.ids import NO_EPOCH

SCAN_MS: Final = 5_000
"""How often every partition is read, whether or not it says that something has changed."""

NO_FOLLOWER: Final = -1

WOKEN: Final = 1 << 62
"""More bytes than any fetch waits for."""


class Watch:
    """A partition's notification to a session: read it again."""

    __slots__ = ("active", "deaf", "key", "partition", "session")

    def __init__(self, session: "FollowerSession", key: Key, partition: Partition) -> None:
        self.session = session
        self.key = key
        self.partition = partition
        self.active = True
        #: whether appends do not end a wait: the follower gets no records, being throttled
        self.deaf = False

    def changed(self) -> None:
        """Something that a follower is sent, or that decides about it, may have changed."""
        if not self.active:
            self.session.activate(self)

    def refresh(self) -> None:
        """Say when the follower was last caught up."""
        if not self.active:
            self.session.refresh(self)

    def grew(self, size: int) -> None:
        """So many bytes were appended."""
        if not self.active:
            self.session.activate(self)
        if not self.deaf:
            self.session.grew(size)

    def wake(self) -> None:
        """What has changed is to be sent at once."""
        self.changed()
        self.session.grew(WOKEN)


@dataclass(slots=True)
class FollowerTarget(Target):
    """What a follower wants of one partition; `log_start_offset` is where its own log begins."""

    log_start_offset: int = -1
    watch: Watch | None = None


class FollowerSession(Session):
    """See the module's docstring."""

    __slots__ = (
        "_closed",
        "_scan",
        "active",
        "broker_epoch",
        "fetch_waiters",
        "fetched_ms",
        "follower",
        "grown",
    )

    def __init__(self, **given: Any) -> None:
        """What `Session` is given."""
        super().__init__(**given)
        self.follower = NO_FOLLOWER
        self.broker_epoch = NO_EPOCH
        #: when the last request came in, by the clock that never goes back
        self.fetched_ms = 0
        #: bytes appended since the partitions were last read
        self.grown = 0
        self.active: dict[Key, FollowerTarget] = {
            key: cast(FollowerTarget, each) for key, each in self.targets.items()
        }
        self.fetch_waiters: set[DelayedFetch] = set()
        self._scan: GradualScan[Key] | None = None
        self._closed = False

    def merge(self, changed: Mapping[Key, Target], forgotten: Iterable[Key]) -> None:
        """Take the changes of an incremental request: added, updated and removed partitions."""
        for key in forgotten:
            gone = self._target(key)
            if gone is not None:
                self._unwatch(gone)
                del self.targets[key]
                self.active.pop(key, None)
        for key, each in changed.items():
            target, known = cast(FollowerTarget, each), self._target(key)
            if known is not None:
                if known.watch is not None:
                    known.watch.changed()
                target.watch = known.watch
                # What was sent in another epoch may have come too late to be taken.
                if target.current_leader_epoch == known.current_leader_epoch:
                    target.last_sent = known.last_sent
            self.targets[key] = self.active[key] = target

    def arrives(self, follower: int, broker_epoch: int, now_ms: int) -> None:
        """A request has come in and is merged; of another follower nothing is known to rest."""
        if (follower, broker_epoch) != (self.follower, self.broker_epoch):
            self.activate_all()
            self.follower, self.broker_epoch = follower, broker_epoch
        self.fetched_ms = now_ms
        if self._scan is None:
            self._scan = GradualScan(SCAN_MS, now_ms)
        for key in self._scan.due(self.targets.keys(), now_ms):
            target = self._target(key)
            if target is not None and target.watch is not None:
                target.watch.changed()

    def to_read(self) -> list[tuple[Key, FollowerTarget]]:
        """The partitions to read, in order; what is appended from now on is in `grown`."""
        self.grown = 0
        return list(self.active.items())

    def activate(self, watch: Watch) -> None:
        """Read a partition again with the next fetch."""
        assert not watch.active, violated("only a partition that rests is woken")
        watch.active = True
        self.active[watch.key] = cast(FollowerTarget, self.targets[watch.key])
        self.refresh(watch)

    def refresh(self, watch: Watch) -> None:
        """Bring up to date what is known of the follower of a partition that rests."""
        watch.partition.follower_stayed(
            self.follower, fetched_ms=self.fetched_ms, broker_epoch=self.broker_epoch
        )

    def activate_all(self) -> None:
        """Read every partition again with the next fetch."""
        for target in self.targets.values():
            watch = cast(FollowerTarget, target).watch
            if watch is not None:
                watch.changed()

    def watch(self, key: Key, target: FollowerTarget, partition: Partition, *, deaf: bool) -> None:
        """The partition was found; have it notify when it is to be read again."""
        watch = target.watch
        if watch is None or watch.partition is not partition:
            self._unwatch(target)
            if self._closed or self.targets.get(key) is not target:
                return
            watch = target.watch = Watch(self, key, partition)
            partition.appends.watches += (watch,)
        watch.deaf = deaf

    def failed(self, target: FollowerTarget) -> None:
        """It cannot be read: it is tried with every fetch until it can."""
        self._unwatch(target)

    def rest_if_quiet(self, key: Key, target: FollowerTarget) -> bool:
        """Read a partition no more until something changes, if nothing is left to be sent.

        Compared is all that another read would depend on.
        """
        watch = target.watch
        if watch is None or self.active.get(key) is not target:
            return False
        partition = watch.partition
        log, in_sync = partition.log, partition.in_sync
        known = in_sync.followers.get(self.follower)
        if (
            known is None
            or not target.fetch_offset == known.log_end_offset == log.log_end_offset
            or target.log_start_offset != known.log_start_offset
            or target.last_sent != (log.high_watermark, log.log_start_offset)
            or self.follower not in in_sync.maximal_isr
            or not partition.is_leader
            or log.failure is not None
        ):
            return False
        watch.active = False
        del self.active[key]
        return True

    def move_to_end(self, key: Key) -> None:
        """Give every other partition its turn before this one."""
        target = self.active.pop(key, None)
        if target is not None:
            self.active[key] = target

    def grew(self, size: int) -> None:
        """A partition has something for the follower."""
        self.grown += size
        if self.fetch_waiters:
            for fetch in list(self.fetch_waiters):
                fetch.grew(size)

    def close(self) -> None:
        """The session is over: what waits for it is answered, and no partition knows it."""
        self._closed = True
        for target in self.targets.values():
            self._unwatch(cast(FollowerTarget, target))
        self.grew(WOKEN)

    def _target(self, key: Key) -> FollowerTarget | None:
        return cast("FollowerTarget | None", self.targets.get(key))

    def _unwatch(self, target: FollowerTarget) -> None:
        watch, target.watch = target.watch, None
        if watch is None:
            return
        watch.changed()
        appends = watch.partition.appends
        appends.watches = tuple(each for each in appends.watches if each is not watch)
