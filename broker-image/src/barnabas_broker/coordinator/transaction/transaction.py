"""A transactional id as the coordinator remembers it: a value that steps replace by another."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from barnabas_broker.coordinator.results import Producer
from barnabas_broker.coordinator.transaction.states import (
    ENDING,
    MAY_FOLLOW,
    MAY_FOLLOW_IN_PROTOCOL_2,
    TransactionState,
)
from barnabas_broker.invariants import violated
from barnabas_kafka.ids import NO_PRODUCER_EPOCH, NO_PRODUCER_ID, NO_TIMESTAMP, TopicPartition

EPOCH_MAX = 32_767
EXHAUSTED_EPOCH = EPOCH_MAX - 1
"""The last epoch a producer gets: the one above is left for shutting it out."""

TRANSACTION_BYTES = 768
PARTITION_BYTES = 160
"""What an id, and each partition of its transaction, take in memory with CPython 3.11."""

EPOCH_PER_TRANSACTION = 2
"""The transaction protocol that gives each transaction an epoch of its own (KIP-890)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Transaction:
    """One transactional id and its latest transaction. Times are in milliseconds since the epoch.

    `last_epoch` and `previous_id` are what the producer had before its own last bump, so that it
    may ask again (KIP-360). `last_epoch` is not written, as in Kafka, and a new coordinator fences
    such a repetition. `next_id` is the producer id that follows when a decided transaction has used
    up the epochs of this one, and `protocol` the transaction protocol in which its producer spoke
    last: 0 or, with an epoch for each transaction, 2 (KIP-890).
    """

    id: str
    producer_id: int
    epoch: int
    timeout_ms: int
    state: TransactionState = TransactionState.EMPTY
    partitions: frozenset[TopicPartition] = field(default_factory=frozenset)
    started_ms: int = NO_TIMESTAMP
    updated_ms: int = NO_TIMESTAMP
    last_epoch: int = NO_PRODUCER_EPOCH
    previous_id: int = NO_PRODUCER_ID
    next_id: int = NO_PRODUCER_ID
    protocol: int = 0

    @property
    def memory_bytes(self) -> int:
        """How much memory it takes."""
        return TRANSACTION_BYTES + len(self.id) + PARTITION_BYTES * len(self.partitions)

    @property
    def successor(self) -> Producer:
        """Whose the transaction after this one is."""
        if self.next_id != NO_PRODUCER_ID:
            return Producer(self.next_id, 0)
        return Producer(self.producer_id, self.epoch)

    @property
    def is_exhausted(self) -> bool:
        """Whether the next epoch needs another producer id."""
        return self.epoch >= EXHAUSTED_EPOCH

    @property
    def is_out_of_reach(self) -> bool:
        """Whether it has the one epoch that no producer may get."""
        return self.epoch > EXHAUSTED_EPOCH

    @property
    def is_ending(self) -> bool:
        """Whether its outcome is decided and not every partition knows."""
        return self.state in ENDING

    def timed_out(self, now_ms: int) -> bool:
        """Whether it has been open for longer than its producer said it would."""
        is_open = self.state is TransactionState.ONGOING
        return is_open and self.started_ms + self.timeout_ms < now_ms

    # --- what may become of it

    def initialised(
        self, *, producer_id: int, epoch: int, last_epoch: int, timeout_ms: int, now_ms: int
    ) -> "Transaction":
        """With no transaction, for a producer that begins."""
        self._check(TransactionState.EMPTY)
        return replace(
            self,
            producer_id=producer_id,
            epoch=epoch,
            last_epoch=last_epoch,
            previous_id=self.producer_id if producer_id != self.producer_id else self.previous_id,
            next_id=NO_PRODUCER_ID,
            timeout_ms=timeout_ms,
            state=TransactionState.EMPTY,
            partitions=frozenset(),
            started_ms=NO_TIMESTAMP,
            updated_ms=now_ms,
        )

    def with_partitions(
        self, partitions: Iterable[TopicPartition], now_ms: int, *, protocol: int = 0
    ) -> "Transaction":
        """With more partitions in its transaction, which begins now if none was open."""
        self._check(TransactionState.ONGOING)
        assert not self.is_ending, violated("a decided transaction gets no partitions")
        goes_on = self.state is TransactionState.ONGOING
        return replace(
            self,
            state=TransactionState.ONGOING,
            partitions=self.partitions.union(partitions) if goes_on else frozenset(partitions),
            started_ms=self.started_ms if goes_on else now_ms,
            updated_ms=now_ms,
            previous_id=self.producer_id,
            protocol=protocol,
        )

    def fenced(self, *, protocol: int = 0) -> "Transaction":
        """Out of reach of its producer.

        In protocol 2 that one may go on from here with an abort, as long as no other one has come.
        """
        self._check(TransactionState.PREPARE_EPOCH_FENCE)
        assert self.epoch <= EPOCH_MAX, violated("epochs have 15 bits")
        return replace(
            self,
            state=TransactionState.PREPARE_EPOCH_FENCE,
            epoch=min(self.epoch + 1, EPOCH_MAX),
            last_epoch=self.epoch if protocol >= EPOCH_PER_TRANSACTION else NO_PRODUCER_EPOCH,
            protocol=protocol,
        )

    def prepared(self, *, commit: bool, now_ms: int, protocol: int = 0) -> "Transaction":
        """Decided, by a client of this `protocol`."""
        state = TransactionState.PREPARE_COMMIT if commit else TransactionState.PREPARE_ABORT
        self._check(state)
        assert state in ENDING, violated("what is decided is ending")
        return replace(self, state=state, updated_ms=now_ms, protocol=protocol)

    def prepared_with_bump(self, *, commit: bool, now_ms: int, fresh_id: int) -> "Transaction":
        """Decided in protocol 2, under the epoch that the next transaction will have.

        What was never begun may be aborted, too. `fresh_id` is used where epochs are exhausted.
        """
        if self.state is TransactionState.ONGOING:
            decided = self.prepared(commit=commit, now_ms=now_ms)
        else:
            self._check(TransactionState.PREPARE_ABORT, MAY_FOLLOW_IN_PROTOCOL_2)
            state = TransactionState.PREPARE_ABORT
            decided = replace(self, state=state, started_ms=now_ms, updated_ms=now_ms)
        assert decided.is_ending, violated("what is decided is ending")
        assert decided.partitions >= self.partitions, violated("every partition gets its marker")
        return replace(
            decided,
            epoch=min(self.epoch + 1, EPOCH_MAX),
            last_epoch=self.epoch,
            next_id=fresh_id if self.is_exhausted else NO_PRODUCER_ID,
            protocol=EPOCH_PER_TRANSACTION,
        )

    def completed(self, now_ms: int) -> "Transaction":
        """Known to every partition; in protocol 2 the next one may have another producer id."""
        committed = self.state is TransactionState.PREPARE_COMMIT
        assert self.is_ending, violated("only what was decided is completed")
        state = TransactionState.COMPLETE_COMMIT if committed else TransactionState.COMPLETE_ABORT
        self._check(state)
        return replace(
            self,
            producer_id=self.successor.id,
            epoch=self.successor.epoch,
            previous_id=self.producer_id,
            next_id=NO_PRODUCER_ID,
            state=state,
            partitions=frozenset(),
            updated_ms=now_ms,
        )

    def _check(
        self,
        state: TransactionState,
        may_follow: Mapping[TransactionState, frozenset[TransactionState]] = MAY_FOLLOW,
    ) -> None:
        assert state in may_follow[self.state], violated(f"{self.state} is followed by {state}")
