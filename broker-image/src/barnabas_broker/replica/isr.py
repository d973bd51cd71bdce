"""The leader's view of its followers: the ISR, and the high watermark.

Decides, for one partition led here, the high watermark and which change of the in-sync replicas
(ISR) to ask for. Pure: no I/O, and the time comes in as `now_ms`, from a clock that never goes
back. Follows Apache Kafka 3.9's Partition and Replica.

How a shell uses it. Make one `InSync` per partition; call

* `become` when the controller names this broker leader, with every later state of the same
  leadership too, and `resign` when it names another;
* `fetched` for every Fetch of a follower that the log could answer without divergence, before the
  answer is sent: the offset it asks for is the end of its log;
* `committed_end` after each of these and after each append, with the end of what this broker's own
  copy counts for (its log end; where records count only on disk, the durable end). It is the new
  high watermark, never lower than the one given;
* `wanted_expansion` after each `fetched`, and `wanted_shrink` every half
  `replica.lag.time.max.ms`. A change that is returned is under way: send it (AlterPartition, or a
  conditional write of the state's znode) and end it with `change_committed` or `change_refused`;
  until then, or until the controller names a newer state, no other is asked for, and where it is
  not known what became of it, it is sent again: a lost answer must not keep it for good. Where
  `IsrChange.flush_first` is set the log is synced to disk before it is sent.

Invariants: the leader is in its ISR; the high watermark waits for the maximal ISR, which is the
committed one and the replica that is being added (KIP-497); at most one change is under way.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Final, Protocol

from barnabas_broker.invariants import violated
from barnabas_kafka.ids import NO_EPOCH, NO_OFFSET

NEVER: Final = -(10**15)
"""A time before every other."""

REFUSED_MS: Final = 500
"""For how long a follower that the controller did not let into the ISR is not proposed again. It is
as long as a broker takes to stop, and short where the controller only had not received a new
registration yet."""


class Leadership(Protocol):
    """What the controller says about a partition; `cluster.image.PartitionState` is one."""

    @property
    def replicas(self) -> tuple[int, ...]: ...
    @property
    def isr(self) -> tuple[int, ...]: ...
    @property
    def leader_epoch(self) -> int: ...
    @property
    def partition_epoch(self) -> int: ...


@dataclass(frozen=True, slots=True)
class InSyncRules:
    """Settings: `lag_max_ms` is replica.lag.time.max.ms, `min_in_sync` min.insync.replicas.

    `hold_below_min` keeps the high watermark where it is while fewer than `min_in_sync` replicas
    are in sync, as Apache does from 3.7 on. `flush_on_shrink` wants the log on disk before the ISR
    shrinks: what the remaining members alone hold is then not only in their page caches.
    """

    lag_max_ms: int = 30_000
    min_in_sync: int = 1
    hold_below_min: bool = True
    flush_on_shrink: bool = False


@dataclass(frozen=True, slots=True)
class IsrChange:
    """The ISR that the leader wants, against the state it knows.

    `isr` is in the order of the assignment. The write or request must fail unless `leader_epoch`
    and `partition_epoch` (the version of the state's znode) are still current. `broker_epochs` are
    those of the followers in `isr` at their last fetch, where they say so: one that has restarted
    since may have lost what it had (KIP-903).
    """

    isr: tuple[int, ...]
    added: frozenset[int]
    removed: frozenset[int]
    leader_epoch: int
    partition_epoch: int
    flush_first: bool = False
    broker_epochs: Mapping[int, int] = field(default_factory=dict, compare=False)


@dataclass(slots=True)
class Follower:
    """One other replica, as its fetches show it (Kafka's ReplicaState)."""

    log_start_offset: int = NO_OFFSET
    log_end_offset: int = NO_OFFSET
    caught_up_ms: int = NEVER
    fetched_ms: int = NEVER
    leader_end_at_fetch: int = NO_OFFSET
    broker_epoch: int = NO_EPOCH
    #: its last fetch before the controller did not let it into the ISR
    refused_ms: int = NEVER

    @property
    def is_refused(self) -> bool:
        """Whether it was not let into the ISR, and has not gone on fetching for long since."""
        return self.refused_ms != NEVER and self.fetched_ms - self.refused_ms < REFUSED_MS

    def is_caught_up(self, leader_end: int, *, now_ms: int, lag_max_ms: int) -> bool:
        """Whether it had all of the leader's log at some time in the last `lag_max_ms`."""
        return self.log_end_offset == leader_end or now_ms - self.caught_up_ms <= lag_max_ms


class InSync:
    """See the module's docstring."""

    __slots__ = (
        "_broker_id",
        "_followers",
        "_maximal",
        "_others",
        "epoch_start",
        "isr",
        "leader_epoch",
        "partition_epoch",
        "pending",
        "replicas",
        "rules",
        "waits_for_joining",
    )

    def __init__(self, broker_id: int, rules: InSyncRules) -> None:
        self._broker_id = broker_id
        self._followers: dict[int, Follower] = {}
        # The maximal ISR, and those of it that are others.
        self._maximal: frozenset[int] = frozenset()
        self._others: tuple[Follower, ...] = ()
        self.rules = rules
        self.replicas: tuple[int, ...] = ()
        self.isr: tuple[int, ...] = ()
        self.leader_epoch = NO_EPOCH
        self.partition_epoch = NO_EPOCH
        #: the log's end when this leadership began; -1 while there is none
        self.epoch_start = NO_OFFSET
        #: the change that was asked for and is not decided yet
        self.pending: IsrChange | None = None
        #: whether the last `committed_end` waits for a replica outside the ISR
        self.waits_for_joining = False

    @property
    def leads(self) -> bool:
        """Whether this broker leads the partition."""
        return self.epoch_start != NO_OFFSET

    @property
    def followers(self) -> Mapping[int, Follower]:
        """Every other replica of the assignment, by broker."""
        return self._followers

    @property
    def maximal_isr(self) -> frozenset[int]:
        """The committed ISR and those being added: the high watermark waits for all."""
        return self._maximal

    @property
    def is_under_min(self) -> bool:
        """Whether fewer replicas are in sync than records need to be committed.

        No more can be asked for than the assignment has (Kafka's effectiveMinIsr).
        """
        return len(self.isr) < min(self.rules.min_in_sync, len(self.replicas))

    # --- the controller's word ---------------------------------------------------------------

    def become(self, state: Leadership, *, log_end: int, now_ms: int) -> bool:
        """Lead with this state; True when it begins a new leader epoch.

        A state that is not newer than the one known, by leader epoch and then partition epoch,
        changes nothing: the change that is under way may still be made on top of it, also where
        another controller names it once more. A newer one settles the change: it was made, or can
        be made no more, for it follows on the state before. In a new
        epoch the members of the ISR get `lag_max_ms` from now to show themselves; where the
        broker led before, what it knows of its followers' logs stays true.
        """
        known = (self.leader_epoch, self.partition_epoch)
        if (state.leader_epoch, state.partition_epoch) < known:
            return False
        led = self.leads
        if led and (state.leader_epoch, state.partition_epoch) == known:
            return False
        begins = state.leader_epoch > self.leader_epoch or not led
        if state.leader_epoch > self.leader_epoch + 1:
            self._followers = {}
        self._take(state)
        if begins:
            self.epoch_start = log_end
            assert log_end >= 0, violated("a leadership begins at the end of a log")
            for broker, follower in self._followers.items():
                _restart(
                    follower,
                    log_end=log_end,
                    now_ms=now_ms,
                    in_sync=broker in state.isr,
                )
        assert self.leads, violated("a new leader leads")
        assert self.pending is None, violated("a newer state settles the change under way")
        return begins

    def resign(self, state: Leadership) -> None:
        """Stop leading: forget what was known of followers."""
        if state.leader_epoch < self.leader_epoch:
            return
        self.leader_epoch, self.partition_epoch = state.leader_epoch, state.partition_epoch
        self.replicas, self.isr = state.replicas, ()
        self.epoch_start, self.pending = NO_OFFSET, None
        self._followers = {}
        self._settle()
        assert not self.leads, violated("a replica that resigned does not lead")
        assert not self._maximal, violated("only a leader has in-sync replicas")

    def _take(self, state: Leadership) -> None:
        self.replicas, self.isr = state.replicas, state.isr
        self.leader_epoch, self.partition_epoch = state.leader_epoch, state.partition_epoch
        self.pending = None
        known = self._followers
        self._followers = {
            broker: known.get(broker) or Follower()
            for broker in state.replicas
            if broker != self._broker_id
        }
        self._settle()
        assert self._broker_id not in self._followers, violated("a leader does not follow itself")

    def _settle(self) -> None:
        """Cache what each append and each fetch needs."""
        self._maximal = _brokers(self.isr)
        if self.pending is not None and self.pending.added:
            self._maximal |= self.pending.added
        self._others = tuple(
            self._followers[broker] for broker in self._followers if broker in self._maximal
        )
        assert self.pending is None or self.pending.added <= self._maximal, violated(
            "the high watermark waits for replicas being added to the ISR"
        )
        assert len(self._others) <= len(self._followers), violated("those in sync are replicas")

    # --- followers ---------------------------------------------------------------------------

    def knows(self, broker: int) -> bool:
        """Whether that broker is a follower of this partition; other fetches must be refused."""
        return broker in self._followers

    def fetched(
        self,
        broker: int,
        *,
        offset: int,
        log_start: int,
        leader_end: int,
        now_ms: int,
        broker_epoch: int = NO_EPOCH,
    ) -> bool:
        """A follower asks for `offset`, so holds all below; True when its log end moved.

        `leader_end` is this log's end before the read that answers. Nothing is noted, and False
        returned, where `broker_epoch` says that the fetch is of an earlier life of that broker.
        Raises KeyError for a broker that `knows` denies.
        """
        follower = self._followers[broker]
        if NO_EPOCH < broker_epoch < follower.broker_epoch:
            return False
        if offset >= leader_end:
            follower.caught_up_ms = max(follower.caught_up_ms, now_ms)
        elif offset >= follower.leader_end_at_fetch:
            # It has now all that was there when it last asked.
            follower.caught_up_ms = max(follower.caught_up_ms, follower.fetched_ms)
        moved = offset != follower.log_end_offset
        follower.log_start_offset, follower.log_end_offset = log_start, offset
        follower.leader_end_at_fetch = max(leader_end, follower.leader_end_at_fetch)
        follower.fetched_ms = now_ms
        if broker_epoch != NO_EPOCH:
            follower.broker_epoch = broker_epoch
        return moved

    def stayed(self, broker: int, *, fetched_ms: int, broker_epoch: int = NO_EPOCH) -> None:
        """A follower at the log's end has asked for the same offset again, at last at `fetched_ms`.

        To be called before, or right after, the log's end moves from there.
        """
        follower = self._followers.get(broker)
        if follower is None or NO_EPOCH < broker_epoch < follower.broker_epoch:
            return
        follower.caught_up_ms = max(follower.caught_up_ms, fetched_ms)
        follower.fetched_ms = max(follower.fetched_ms, fetched_ms)

    def low_watermark(self, own_log_start: int, *, alive: Collection[int]) -> int:
        """The smallest log start offset of the replicas on live brokers (DeleteRecords)."""
        starts = [own_log_start]
        for broker, follower in self._followers.items():
            if broker in alive:
                starts.append(follower.log_start_offset)
        return min(starts)

    # --- the high watermark ------------------------------------------------------------------

    def committed_end(
        self,
        high_watermark: int,
        *,
        own_end: int,
        log_end: int,
        now_ms: int,
        alive: Collection[int] | None = None,
    ) -> int:
        """Where the high watermark belongs; `high_watermark`, the present one, if no further.

        It is the smallest log end among the maximal ISR and among those that are about to join it:
        caught up in time, but not let in yet. Not to wait for these would keep the mark ahead of
        them for as long as producers write. One that the controller refused is waited for, too: it
        may be in the ISR all the same, by a change that this leader has not received yet. `own_end`
        is what this broker's copy counts for; of those outside the ISR only brokers in `alive`
        count (None: all). Where `waits_for_joining` is set afterwards, call it again now and then:
        one that fetches no more is waited for until `lag_max_ms` have passed, and only the time
        says so.
        """
        rules = self.rules
        self.waits_for_joining = False
        if not self.leads or (rules.hold_below_min and self.is_under_min):
            return high_watermark
        end = own_end
        for follower in self._others:
            if follower.log_end_offset < end:
                end = follower.log_end_offset
        if len(self._others) < len(self._followers) and end > high_watermark:
            in_sync_end = end
            end = self._joining_end(end, log_end=log_end, now_ms=now_ms, alive=alive)
            self.waits_for_joining = end < in_sync_end
        return max(end, high_watermark)

    def _joining_end(
        self, end: int, *, log_end: int, now_ms: int, alive: Collection[int] | None
    ) -> int:
        lag_max_ms = self.rules.lag_max_ms
        for broker, follower in self._followers.items():
            if (
                follower.log_end_offset < end
                and broker not in self._maximal
                and follower.is_caught_up(log_end, now_ms=now_ms, lag_max_ms=lag_max_ms)
                and (alive is None or broker in alive)
            ):
                end = follower.log_end_offset
        return end

    # --- the ISR -----------------------------------------------------------------------------

    def wanted_expansion(
        self, broker: int, *, high_watermark: int, alive: Collection[int] | None = None
    ) -> IsrChange | None:
        """The change that lets a follower in, if it may come in; it is then under way.

        It must have all that is committed, and all that the log held when this leadership began:
        some of that may be committed although this leader's mark is still below it (KIP-101).
        """
        follower = self._followers.get(broker)
        if (
            not self.leads
            or self.pending is not None
            or follower is None
            or broker in self._maximal
            or follower.is_refused
            or follower.log_end_offset < max(high_watermark, self.epoch_start)
            or (alive is not None and broker not in alive)
        ):
            return None
        return self._ask(added=frozenset({broker}))

    def wanted_shrink(self, *, log_end: int, now_ms: int) -> IsrChange | None:
        """The change that removes replicas out of sync (`replica.lag.time.max.ms`), now pending."""
        if not self.leads or self.pending is not None:
            return None
        late = frozenset(
            broker
            for broker in self.isr
            if broker != self._broker_id and self._is_late(broker, log_end, now_ms)
        )
        return self._ask(removed=late) if late else None

    def _is_late(self, broker: int, log_end: int, now_ms: int) -> bool:
        follower = self._followers.get(broker)
        return follower is None or not follower.is_caught_up(
            log_end, now_ms=now_ms, lag_max_ms=self.rules.lag_max_ms
        )

    def _ask(
        self, *, added: frozenset[int] = frozenset(), removed: frozenset[int] = frozenset()
    ) -> IsrChange:
        wanted = (set(self.isr) | added) - removed
        assert self.leads, violated("only a leader asks for another ISR")
        assert self.pending is None, violated("at most one change of the ISR is under way")
        assert self._broker_id not in removed, violated("a leader does not leave its ISR")
        assert removed <= self._maximal, violated("a replica that leaves the ISR was in it")
        assert not added & self._maximal, violated("a broker that joins the ISR was not in it")
        assert added <= self._followers.keys(), violated("a broker that joins the ISR is a replica")
        self.pending = IsrChange(
            isr=tuple(broker for broker in self.replicas if broker in wanted),
            added=added,
            removed=removed,
            leader_epoch=self.leader_epoch,
            partition_epoch=self.partition_epoch,
            flush_first=bool(removed) and self.rules.flush_on_shrink,
            broker_epochs={
                broker: follower.broker_epoch
                for broker, follower in self._followers.items()
                if broker in wanted and follower.broker_epoch != NO_EPOCH
            },
        )
        self._settle()
        return self.pending

    def change_committed(
        self, *, isr: tuple[int, ...], leader_epoch: int, partition_epoch: int
    ) -> bool:
        """Apply a written change of the ISR; False if a newer state is known already.

        The written ISR may be larger than requested, or another leader's. Call `committed_end`
        afterwards: without those that left, the high watermark may move.
        """
        if (
            not self.leads
            or leader_epoch != self.leader_epoch
            or partition_epoch < self.partition_epoch
        ):
            return False
        self.isr, self.partition_epoch, self.pending = isr, partition_epoch, None
        self._settle()
        assert self._maximal == _brokers(isr), violated("the committed ISR is waited for")
        return True

    def change_refused(self, change: IsrChange) -> None:
        """The change was not made and will not be; the ISR is what it was (KIP-903 and others).

        For OPERATION_NOT_ATTEMPTED and INELIGIBLE_REPLICA. Where it is not known what became of
        it (INVALID_UPDATE_VERSION, FENCED_LEADER_EPOCH, a lost connection) nothing is called: it
        stays under way, so that the mark waits for both outcomes, and is asked for again, until an
        answer or a newer state of the controller settles it.
        """
        if self.pending is change:
            self.pending = None
            for broker in change.added:
                follower = self._followers[broker]
                follower.refused_ms = follower.fetched_ms
            self._settle()
            assert self._maximal == _brokers(self.isr), violated("a refused change changes nothing")


@lru_cache(maxsize=1024)
def _brokers(isr: tuple[int, ...]) -> frozenset[int]:
    """A set of brokers, one for all partitions with the same in-sync replicas."""
    return frozenset(isr)


def _restart(follower: Follower, *, log_end: int, now_ms: int, in_sync: bool) -> None:
    """Begin an epoch with a follower: one that fetched only before it has to catch up in it."""
    since = now_ms if in_sync else NEVER
    follower.leader_end_at_fetch, follower.fetched_ms = log_end, since
    follower.caught_up_ms = since
    follower.refused_ms = NEVER
