"""What one partition remembers of its idempotent and transactional producers.

Decides whether a batch is the next one of its producer, a duplicate of one of its last five, out
of order, or fenced; and where the last stable offset lies. Source of the rules: KIP-98, KIP-360
and Apache Kafka's ProducerStateManager and ProducerAppendInfo.

The state of a producer id, and what each event does to it:

* *unknown*: a batch with any sequence is accepted. Its history may have been lost to retention.
* *known, same epoch*: the next sequence must follow the last one; after 2147483647 comes 0.
* *known, newer epoch*: sequences start again at 0 and the remembered batches are forgotten.
* *known, older epoch*: fenced.
* *in a transaction*: from the first transactional batch until a control batch ends it.

Of more than ``ids_max`` producers, those without an open transaction that wrote longest ago become
unknown. Copies of a partition, and the same log read again, may know different producers: all that
is lost is the distinction of a retried batch from a new one, for a producer that ``ids_max`` others
have written after. Producers of open transactions, which hold the last stable offset back, are
known in every copy.

Invariants: at most five batches are remembered per producer; ``producers`` is in the order in which
they wrote last; ``ongoing`` and ``unreplicated`` are keyed by first offset; a transaction is in at
one of the two. Knows neither files nor clocks:
time is an argument, snapshots are encoded in ``producer_snapshot``.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass, field
from enum import Enum
from itertools import islice
from typing import NamedTuple

from barnabas_broker.cluster.failures import each_isolated
from barnabas_broker.invariants import violated
from barnabas_broker.log.transaction_index import AbortedTransaction
from barnabas_kafka.errors import ErrorCode, KafkaError

#: KIP-98 lets a producer have five requests in flight, so five batches can come twice.
BATCHES_REMEMBERED = 5

IDS_MAX = 10_000
"""Producers remembered where nothing else is said; one takes up to a kilobyte."""

_MAX_SEQUENCE = (1 << 31) - 1
_SEQUENCES = 1 << 31


class Origin(Enum):
    """Where an append comes from, which decides how much is checked (Kafka's `AppendOrigin`)."""

    CLIENT = "client"
    """A produce request: epoch and sequence are checked."""
    COORDINATOR = "coordinator"
    """A coordinator on this broker: the epoch is checked, sequences are not."""
    REPLICATION = "replication"
    """A copy of the leader's log, or this log read again: everything is taken as it is."""


class BatchMetadata(NamedTuple):
    """A remembered batch: where its sequence and offset end and how many it spans."""

    last_sequence: int
    last_offset: int
    offset_delta: int
    timestamp: int

    @property
    def first_sequence(self) -> int:
        return (self.last_sequence - self.offset_delta) % _SEQUENCES

    @property
    def first_offset(self) -> int:
        return self.last_offset - self.offset_delta


@dataclass(slots=True)
class ProducerEntry:
    """One producer id; ``-1`` where nothing is known yet."""

    producer_id: int
    epoch: int = -1
    coordinator_epoch: int = -1
    last_timestamp: int = -1
    txn_first_offset: int = -1
    #: at most ``BATCHES_REMEMBERED``, the newest last
    batches: tuple[BatchMetadata, ...] = ()

    @property
    def last_sequence(self) -> int:
        return self.batches[-1].last_sequence if self.batches else -1

    def duplicate_of(self, epoch: int, first: int, last: int) -> BatchMetadata | None:
        """The remembered batch with exactly these sequences, if there is one."""
        if epoch != self.epoch:
            return None
        for batch in self.batches:
            if batch.last_sequence == last and batch.first_sequence == first:
                return batch
        return None

    def copy(self) -> ProducerEntry:
        return ProducerEntry(
            self.producer_id, self.epoch, self.coordinator_epoch, self.last_timestamp,
            self.txn_first_offset, self.batches,
        )  # fmt: skip


class EndMarker(NamedTuple):
    """The content of a transaction's control record."""

    commit: bool
    coordinator_epoch: int


class ProducerBatch(NamedTuple):
    """What the producer state has to know of one batch; ``marker`` only for control batches."""

    producer_id: int
    producer_epoch: int
    first_sequence: int
    last_sequence: int
    first_offset: int
    last_offset: int
    timestamp: int
    transactional: bool
    control: bool
    marker: EndMarker | None = None


class Sequences(NamedTuple):
    """What a batch outside transactions says of its producer."""

    producer_id: int
    epoch: int
    first: int
    last: int


class CompletedTransaction(NamedTuple):
    """A transaction whose marker is in the batches of a plan."""

    producer_id: int
    first_offset: int
    last_offset: int
    aborted: bool


@dataclass(slots=True)
class Plan:
    """Checked changes, to be committed once the batches are in the log."""

    entries: dict[int, ProducerEntry] = field(default_factory=dict)
    started: list[tuple[int, int]] = field(default_factory=list)
    completed: list[CompletedTransaction] = field(default_factory=list)


class ProducerState:
    """All producers of a partition, its open transactions, and its first unstable offset."""

    __slots__ = (
        "_forget_above",
        "_ongoing",
        "_unreplicated",
        "end_offset",
        "first_unstable_offset",
        "ids_max",
        "producers",
    )

    def __init__(self, ids_max: int = IDS_MAX) -> None:
        self.ids_max = ids_max
        #: the number of producers with which it is worth looking for some to forget
        self._forget_above = ids_max
        #: in the order in which they wrote last
        self.producers: dict[int, ProducerEntry] = {}
        #: first offset → producer id, in order of first offset
        self._ongoing: dict[int, int] = {}
        #: first offset → offset of the marker, which is not replicated yet
        self._unreplicated: dict[int, int] = {}
        #: the offset up to which the state is complete
        self.end_offset = 0
        #: the first offset whose transaction's outcome is not settled and replicated
        self.first_unstable_offset: int | None = None

    # --- events ------------------------------------------------------------------------------

    def find_duplicate(self, batch: ProducerBatch) -> BatchMetadata | None:
        """The original of a batch a client has sent again."""
        entry = self.producers.get(batch.producer_id)
        if entry is None:
            return None
        return entry.duplicate_of(batch.producer_epoch, batch.first_sequence, batch.last_sequence)

    def follows(self, sequences: Sequences) -> bool:
        """Whether a batch is, beyond doubt, the next of a known producer in its epoch.

        That is what `find_duplicate` and `check` find of most. Where it is not so they have to say
        what it is: the first of a producer or an epoch, and round the highest sequence, too.
        """
        entry = self.producers.get(sequences.producer_id)
        if entry is None or entry.epoch != sequences.epoch or entry.txn_first_offset >= 0:
            return False
        _, epoch, first, last = sequences
        return (
            bool(entry.batches)
            and first == entry.batches[-1].last_sequence + 1
            and last <= _MAX_SEQUENCE
            and entry.duplicate_of(epoch, first, last) is None
        )

    def went_on(self, sequences: Sequences, last_offset: int, timestamp: int) -> None:
        """A batch that `follows` was appended, ending at `last_offset`."""
        producer_id, epoch, first, last = sequences
        entry = self.producers.pop(producer_id)
        assert entry.epoch == epoch, violated("a batch that follows is of its producer's epoch")
        assert entry.txn_first_offset < 0, violated("a batch beside transactions is in none")
        assert entry.last_sequence + 1 == first, violated("sequences have no gap")
        written = BatchMetadata(last, last_offset, last - first, timestamp)
        self.producers[producer_id] = ProducerEntry(
            producer_id, epoch, entry.coordinator_epoch, timestamp, -1,
            (*entry.batches[1 - BATCHES_REMEMBERED :], written),
        )  # fmt: skip

    def check(self, batches: Iterable[ProducerBatch], origin: Origin) -> Plan:
        """Check batches in order; nothing changes before ``commit``.

        Raises KafkaError: INVALID_PRODUCER_EPOCH, OUT_OF_ORDER_SEQUENCE_NUMBER,
        INVALID_TXN_STATE, TRANSACTION_COORDINATOR_FENCED.
        """
        plan = Plan()
        for batch in batches:
            entry = plan.entries.get(batch.producer_id)
            if entry is None:
                known = self.producers.get(batch.producer_id)
                entry = known.copy() if known else ProducerEntry(batch.producer_id)
                plan.entries[batch.producer_id] = entry
            assert entry.producer_id == batch.producer_id, violated("producers are kept by id")
            if not batch.control:
                _check_data(entry, batch, origin, plan)
            elif batch.marker is not None:
                _check_marker(entry, batch, batch.marker, origin, plan)
        return plan

    def commit(self, plan: Plan, end_offset: int) -> list[AbortedTransaction]:
        """Make a plan the state; return entries for the transaction index."""
        producers = self.producers
        for producer_id, entry in plan.entries.items():
            producers.pop(producer_id, None)
            producers[producer_id] = entry
        self.end_offset = end_offset
        aborted = []
        if plan.started or plan.completed:
            self._ongoing.update(plan.started)
            for done in plan.completed:
                stable = self._stable_after(done)
                if done.aborted:
                    aborted.append(
                        AbortedTransaction(
                            done.producer_id, done.first_offset, done.last_offset, stable
                        )
                    )
                self._ongoing.pop(done.first_offset, None)
                self._unreplicated[done.first_offset] = done.last_offset
            self._find_first_unstable()
        assert len(aborted) <= len(plan.completed), violated("a marker aborts one transaction")
        if len(producers) > self._forget_above:
            self._forget_idle()
        return aborted

    def _stable_after(self, done: CompletedTransaction) -> int:
        """The last stable offset once ``done`` is settled: the next transaction still open."""
        for first_offset, producer_id in self._ongoing.items():
            if producer_id != done.producer_id:
                return first_offset
        return done.last_offset + 1

    def advance_high_watermark(self, high_watermark: int) -> None:
        """Forget settled transactions whose marker every in-sync replica has."""
        if not self._unreplicated:
            return
        replicated = [f for f, last in self._unreplicated.items() if last < high_watermark]
        for first_offset in replicated:
            del self._unreplicated[first_offset]
        if replicated:
            self._find_first_unstable()

    def advance_log_start(self, log_start_offset: int) -> None:
        """Follow the log's start: nothing below it can be unstable any more."""
        self.advance_high_watermark(log_start_offset)
        self.end_offset = max(self.end_offset, log_start_offset)

    def expire(self, now_ms: int, expiration_ms: int) -> int:
        """Forget producers without an open transaction that were silent; return how many."""
        expired = [
            producer_id
            for producer_id, entry in self.producers.items()
            if is_expired(entry, now_ms, expiration_ms)
        ]
        for producer_id in expired:
            del self.producers[producer_id]
        return len(expired)

    def _forget_idle(self) -> None:
        """Come down to ``ids_max``, and a sixteenth below so that it is seldom done."""
        spare = self.ids_max // 16
        surplus = len(self.producers) - self.ids_max + spare
        idle = (known for known, entry in self.producers.items() if entry.txn_first_offset < 0)
        for producer_id in list(islice(idle, surplus)):
            del self.producers[producer_id]
        # Where many have open transactions there is little to find, however often one looks.
        self._forget_above = max(self.ids_max, len(self.producers) + spare)
        assert self._forget_above >= self.ids_max, violated("no producer is forgotten early")

    def forget_down_to(self, count: int) -> int:
        """Keep no more producers than these, open transactions aside; return how many went."""
        before = len(self.producers)
        idle = (known for known, entry in self.producers.items() if entry.txn_first_offset < 0)
        for producer_id in list(islice(idle, max(before - count, 0))):
            del self.producers[producer_id]
        assert len(self.producers) <= before, violated("forgetting adds no producers")
        return before - len(self.producers)

    def restore(self, entries: Iterable[ProducerEntry], end_offset: int) -> None:
        """Start again from a snapshot's producers, complete up to ``end_offset``.

        They are in the order in which they wrote last.
        """
        self.producers = {entry.producer_id: entry for entry in entries}
        self._forget_above = self.ids_max
        self._ongoing = {
            entry.txn_first_offset: entry.producer_id
            for entry in sorted(self.producers.values(), key=_txn_first_offset)
            if entry.txn_first_offset >= 0
        }
        self._unreplicated = {}
        self.end_offset = end_offset
        self._find_first_unstable()
        if len(self.producers) > self.ids_max:
            self._forget_idle()

    def _find_first_unstable(self) -> None:
        firsts = [*list(self._ongoing)[:1], *self._unreplicated]
        self.first_unstable_offset = min(firsts, default=None)
        assert bool(firsts) == (self.first_unstable_offset is not None), violated(
            "an open transaction holds the last stable offset back"
        )

    def has_ongoing_transaction(self, producer_id: int, epoch: int) -> bool:
        entry = self.producers.get(producer_id)
        return entry is not None and entry.txn_first_offset >= 0 and entry.epoch == epoch


def fair_share(counts: Iterable[int], total: int) -> int:
    """How many producers a partition may keep at most for all to have `total`.

    A partition with fewer keeps them all, and leaves the rest to the others.
    """
    ascending = sorted(counts)
    left = total
    for index, count in enumerate(ascending):
        share = left // (len(ascending) - index)
        assert share >= 0, violated("shares are not negative")
        if count > share:
            return share
        left -= count
    return max(ascending, default=0)


def bound_all(states: Collection[ProducerState], total: int) -> int:
    """Forget idle producers of the partitions that have most; return how many."""
    if sum(len(state.producers) for state in states) <= total:
        return 0
    # A little below, so that it is seldom done.
    share = fair_share((len(state.producers) for state in states), total - total // 16)
    forgotten: list[int] = []
    each_isolated(
        states,
        lambda state: forgotten.append(state.forget_down_to(share)),
        "Bounding producers",
        name=lambda _: "a partition",
    )
    return sum(forgotten)


def is_expired(entry: ProducerEntry, now_ms: int, expiration_ms: int) -> bool:
    """True for a producer silent for ``producer.id.expiration.ms`` with no open transaction."""
    return entry.txn_first_offset < 0 and now_ms - entry.last_timestamp >= expiration_ms


def _txn_first_offset(entry: ProducerEntry) -> int:
    return entry.txn_first_offset


def _check_data(entry: ProducerEntry, batch: ProducerBatch, origin: Origin, plan: Plan) -> None:
    _check_epoch(entry, batch, origin)
    if origin is Origin.CLIENT:
        _check_sequence(entry, batch)
    _enter_epoch(entry, batch.producer_epoch)
    delta = batch.last_offset - batch.first_offset
    written = BatchMetadata(batch.last_sequence, batch.last_offset, delta, batch.timestamp)
    entry.batches = (*entry.batches[1 - BATCHES_REMEMBERED :], written)
    assert len(entry.batches) <= BATCHES_REMEMBERED, violated("few batches are remembered")
    assert entry.epoch == batch.producer_epoch, violated("a producer has the epoch it wrote with")
    entry.last_timestamp = batch.timestamp
    if batch.transactional:
        if entry.txn_first_offset < 0:
            entry.txn_first_offset = batch.first_offset
            plan.started.append((batch.first_offset, batch.producer_id))
    elif entry.txn_first_offset >= 0:
        raise KafkaError(
            ErrorCode.INVALID_TXN_STATE,
            f"producer {batch.producer_id} sent a batch outside its open transaction",
        )


def _check_marker(
    entry: ProducerEntry, batch: ProducerBatch, marker: EndMarker, origin: Origin, plan: Plan
) -> None:
    _check_epoch(entry, batch, origin)
    if entry.coordinator_epoch > marker.coordinator_epoch and (origin is not Origin.REPLICATION):
        raise KafkaError(
            ErrorCode.TRANSACTION_COORDINATOR_FENCED,
            f"marker of coordinator epoch {marker.coordinator_epoch} for producer "
            f"{batch.producer_id}, but epoch {entry.coordinator_epoch} has been seen",
        )
    if entry.txn_first_offset >= 0:
        plan.completed.append(
            CompletedTransaction(
                batch.producer_id,
                entry.txn_first_offset,
                batch.last_offset,
                not marker.commit,
            )
        )
        # A transaction that began in these same batches is open until commit() closes it.
    _enter_epoch(entry, batch.producer_epoch)
    entry.coordinator_epoch = marker.coordinator_epoch
    entry.last_timestamp = batch.timestamp
    entry.txn_first_offset = -1
    assert entry.epoch == batch.producer_epoch, violated("a marker leaves its epoch")


def _check_epoch(entry: ProducerEntry, batch: ProducerBatch, origin: Origin) -> None:
    if batch.producer_epoch < entry.epoch and origin is not Origin.REPLICATION:
        raise KafkaError(
            ErrorCode.INVALID_PRODUCER_EPOCH,
            f"producer {batch.producer_id} has epoch {batch.producer_epoch}, "
            f"but epoch {entry.epoch} has been seen",
        )


def _check_sequence(entry: ProducerEntry, batch: ProducerBatch) -> None:
    first = batch.first_sequence
    if entry.epoch == -1:
        return
    if batch.producer_epoch != entry.epoch:
        if first != 0:
            raise KafkaError(
                ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER,
                f"producer {batch.producer_id} begins epoch {batch.producer_epoch} "
                f"with sequence {first} instead of 0",
            )
        return
    last = entry.last_sequence
    if first != last + 1 and not (first == 0 and last == _MAX_SEQUENCE):
        raise KafkaError(
            ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER,
            f"producer {batch.producer_id} sent sequence {first} after {last}",
        )


def _enter_epoch(entry: ProducerEntry, epoch: int) -> None:
    if entry.epoch != epoch:
        entry.batches = ()
        entry.epoch = epoch
