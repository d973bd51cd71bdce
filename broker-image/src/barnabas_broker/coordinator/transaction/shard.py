"""The transactional ids of one partition of `__transaction_state`: requests in, results out.

A pure core: time and producer ids are its inputs. Every request method returns a
`CoordinatorResult`; the shell appends its records, has each of them replayed here, and hands out
its answers and carries out its orders once they count. `replay` is also how transactions are read
back from the log, and the only thing that changes any.

Once a decision counts, the shell is ordered to write markers (`WriteMarkers`) and reports with
`complete`. An order is repeated after loading, so that markers may be written twice: the second
one finds no transaction and changes nothing. Source of the rules: KIP-98, KIP-360, KIP-890 and
Apache Kafka's TransactionCoordinator.
"""

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, replace

from barnabas_broker.cluster.failures import chain_isolated
from barnabas_broker.coordinator import results
from barnabas_broker.coordinator.memory import Account, has_room
from barnabas_broker.coordinator.results import Producer, Waiter
from barnabas_broker.coordinator.transaction.limits import Limits
from barnabas_broker.coordinator.transaction.records import PLAIN, TAGGED, TransactionRecord
from barnabas_broker.coordinator.transaction.states import AT_REST, TransactionState
from barnabas_broker.coordinator.transaction.transaction import (
    EPOCH_PER_TRANSACTION,
    EXHAUSTED_EPOCH,
    Transaction,
)
from barnabas_broker.invariants import violated
from barnabas_kafka.errors import ErrorCode
from barnabas_kafka.ids import NO_PRODUCER_EPOCH, NO_PRODUCER_ID, NO_TIMESTAMP, TopicPartition

CoordinatorResult = results.CoordinatorResult[TransactionRecord]

NO_PRODUCER = Producer(NO_PRODUCER_ID, NO_PRODUCER_EPOCH)


@dataclass(frozen=True, slots=True, kw_only=True)
class Initialisation:
    """InitProducerId of a transactional producer; `expected` is what it believes it has."""

    transactional_id: str
    timeout_ms: int
    expected: Producer = NO_PRODUCER


@dataclass(frozen=True, slots=True)
class Granted:
    """The answer to it, and to an end that grants the next epoch."""

    code: ErrorCode
    producer: Producer = NO_PRODUCER


@dataclass(frozen=True, slots=True)
class End:
    """EndTxn of a producer."""

    transactional_id: str
    producer: Producer
    commit: bool


@dataclass(frozen=True, slots=True)
class WriteMarkers:
    """An order: write the markers of a producer's transaction to these partitions."""

    transactional_id: str
    producer: Producer
    commit: bool
    partitions: frozenset[TopicPartition]
    protocol: int = 0
    """In the second one no marker has the epoch of the records that it ends."""
    started_ms: int = NO_TIMESTAMP
    """When the transaction began: in the first protocol the next one has the same producer."""

    def decides_as(self, other: "WriteMarkers") -> bool:
        """Whether it is about the same transaction."""
        return (self.producer, self.commit, self.started_ms) == (
            other.producer,
            other.commit,
            other.started_ms,
        )


class Shard:
    """The transactional ids that hash to one partition."""

    def __init__(self, limits: Limits, in_use: Account | None = None) -> None:
        """`in_use` is the account of all transactional ids of the broker."""
        self._in_use = in_use or Account()
        self.account = Account(self._in_use)
        self.transactions: dict[str, Transaction] = {}
        self.limits = limits
        self._tagged: set[str] = set()  # Whose latest record not every Kafka can read.

    # --- producers

    def wants_producer_id(self, request: Initialisation) -> bool:
        """Whether `initialise` needs an unused producer id."""
        known = self.transactions.get(request.transactional_id)
        return known is None or (known.is_exhausted and known.state in AT_REST)

    def initialise(
        self, request: Initialisation, waiter: Waiter, now_ms: int, *, fresh_id: int
    ) -> CoordinatorResult:
        """InitProducerId; `fresh_id` is used only where `wants_producer_id`."""
        result = CoordinatorResult(now_ms)
        if not 0 < request.timeout_ms <= self.limits.timeout_max_ms:
            result.answer(waiter, Granted(ErrorCode.INVALID_TRANSACTION_TIMEOUT))
            return result
        known = self.transactions.get(request.transactional_id)
        if known is None:
            known = Transaction(
                id=request.transactional_id,
                producer_id=fresh_id,
                epoch=NO_PRODUCER_EPOCH,
                timeout_ms=request.timeout_ms,
            )
            if not self._has_room(known.memory_bytes):
                result.answer(waiter, Granted(ErrorCode.COORDINATOR_NOT_AVAILABLE))
                return result
        code = _initialisation_fault(known, request.expected)
        if code is not None:
            result.answer(waiter, Granted(code))
        elif known.state is TransactionState.ONGOING:
            # Its producer is fenced, and the client asks again when the abort is over.
            fenced = known.fenced(protocol=self.limits.protocol)
            aborted = fenced.prepared(commit=False, now_ms=now_ms, protocol=fenced.protocol)
            self._decide(result, aborted)
            result.answer(waiter, Granted(ErrorCode.CONCURRENT_TRANSACTIONS))
            result.refuse = lambda code, instead: instead.answer(waiter, Granted(write_error(code)))
        else:
            self._grant(result, known, request, waiter, fresh_id)
        return result

    def _grant(
        self,
        result: CoordinatorResult,
        known: Transaction,
        request: Initialisation,
        waiter: Waiter,
        fresh_id: int,
    ) -> None:
        expected = request.expected
        producer_id, epoch, last_epoch = known.producer_id, known.epoch + 1, NO_PRODUCER_EPOCH
        is_current = expected.epoch == known.epoch or known.epoch == NO_PRODUCER_EPOCH
        if known.is_out_of_reach or (
            known.is_exhausted and (expected == NO_PRODUCER or is_current)
        ):
            producer_id, epoch = fresh_id, 0
            last_epoch = NO_PRODUCER_EPOCH if expected == NO_PRODUCER else expected.epoch
        elif expected != NO_PRODUCER and is_current:
            last_epoch = known.epoch
        elif expected != NO_PRODUCER:
            # It asks again for a bump whose answer it missed.
            epoch, last_epoch = known.epoch, known.last_epoch
        assert producer_id != known.producer_id or epoch >= known.epoch, violated(
            "the epochs of a producer id only grow"
        )
        granted = known.initialised(
            producer_id=producer_id,
            epoch=epoch,
            last_epoch=last_epoch,
            timeout_ms=request.timeout_ms,
            now_ms=result.now_ms,
        )
        result.records.append(self._record(granted))
        result.answer(waiter, Granted(ErrorCode.NONE, Producer(producer_id, epoch)))
        result.refuse = lambda code, instead: instead.answer(waiter, Granted(write_error(code)))

    # --- transactions

    def add_partitions(
        self,
        transactional_id: str,
        producer: Producer,
        partitions: Collection[TopicPartition],
        waiter: Waiter,
        now_ms: int,
        *,
        protocol: int = 0,
    ) -> CoordinatorResult:
        """AddPartitionsToTxn and AddOffsetsToTxn; the answer is an ErrorCode.

        In protocol 2 brokers ask this for the producers that write to them (KIP-890).
        """
        result = CoordinatorResult(now_ms)
        found = self._of(transactional_id, producer)
        if isinstance(found, ErrorCode):
            result.answer(waiter, found)
        elif found.is_ending:
            result.answer(waiter, ErrorCode.CONCURRENT_TRANSACTIONS)
        else:
            goes_on = found.state is TransactionState.ONGOING
            if not (goes_on and found.partitions.issuperset(partitions)):
                changed = found.with_partitions(partitions, now_ms, protocol=protocol)
                assert changed.partitions.issuperset(partitions), violated("what is added is there")
                assert not goes_on or changed.partitions >= found.partitions, violated(
                    "an open transaction loses no partitions"
                )
                if not self._has_room(changed.memory_bytes - found.memory_bytes):
                    result.answer(waiter, ErrorCode.COORDINATOR_NOT_AVAILABLE)
                    return result
                result.records.append(self._record(changed))
                _refuse_with_code(result, waiter)
            result.answer(waiter, ErrorCode.NONE)
        return result

    def verify(
        self, transactional_id: str, producer: Producer, partitions: Collection[TopicPartition]
    ) -> Mapping[TopicPartition, ErrorCode]:
        """Whether partitions are part of the producer's open transaction (KIP-890)."""
        found = self._of(transactional_id, producer)
        if isinstance(found, ErrorCode):
            return dict.fromkeys(partitions, found)
        if found.is_ending:
            return dict.fromkeys(partitions, ErrorCode.CONCURRENT_TRANSACTIONS)
        return {
            each: ErrorCode.NONE if each in found.partitions else ErrorCode.INVALID_TXN_STATE
            for each in partitions
        }

    def end(
        self,
        transactional_id: str,
        producer: Producer,
        waiter: Waiter,
        now_ms: int,
        *,
        commit: bool,
    ) -> CoordinatorResult:
        """EndTxn; the answer is an ErrorCode, given when the decision counts."""
        result = CoordinatorResult(now_ms)
        found = self._of(transactional_id, producer)
        if isinstance(found, ErrorCode):
            result.answer(waiter, found)
        elif found.state is TransactionState.ONGOING:
            self._decide(result, found.prepared(commit=commit, now_ms=now_ms))
            result.answer(waiter, ErrorCode.NONE)
            _refuse_with_code(result, waiter)
        else:
            result.answer(
                waiter, _END_AGAIN.get((found.state, commit), ErrorCode.INVALID_TXN_STATE)
            )
        return result

    def wants_id_to_end(self, request: End) -> bool:
        """Whether `end_with_bump` needs an unused producer id."""
        known = self.transactions.get(request.transactional_id)
        return known is not None and known.is_exhausted and not known.is_ending

    def end_with_bump(
        self, request: End, waiter: Waiter, now_ms: int, *, fresh_id: int
    ) -> CoordinatorResult:
        """EndTxn in protocol 2: decide, and give the producer the epoch of its next transaction.

        The answer is a Granted. An end that is repeated comes with the epoch of the transaction
        that it has ended, and is distinguished by that from the end of the next one (KIP-890).
        """
        result = CoordinatorResult(now_ms)
        commit = request.commit
        found = self._at_end(request.transactional_id, request.producer)
        if isinstance(found, ErrorCode):
            result.answer(waiter, Granted(found))
            return result
        is_repeated = found.epoch != request.producer.epoch
        is_open = found.state is TransactionState.ONGOING
        # A producer fenced at its last epoch goes on with another id.
        is_new = not is_repeated or found.is_out_of_reach
        if is_open or (not commit and is_new and found.state in AT_REST):
            decided = found.prepared_with_bump(commit=commit, now_ms=now_ms, fresh_id=fresh_id)
            self._decide(result, decided)
            result.answer(waiter, Granted(ErrorCode.NONE, decided.successor))
            result.refuse = lambda code, instead: instead.answer(waiter, Granted(write_error(code)))
        elif is_repeated:
            code = _END_AGAIN.get((found.state, commit), ErrorCode.INVALID_TXN_STATE)
            result.answer(waiter, Granted(code, NO_PRODUCER if code else found.successor))
        else:
            result.answer(waiter, Granted(ErrorCode.INVALID_TXN_STATE))
        return result

    def _at_end(self, transactional_id: str, producer: Producer) -> Transaction | ErrorCode:
        """The transaction that a producer would end in protocol 2, or why it may not."""
        found = self.transactions.get(transactional_id)
        if found is None:
            return ErrorCode.INVALID_PRODUCER_ID_MAPPING
        if found.is_ending and producer == found.successor:
            # It has its next epoch, and ends what it has not begun: before the markers of the last
            # are written the answer is unknown (Kafka's coordinator first checks what is pending).
            return ErrorCode.CONCURRENT_TRANSACTIONS
        if found.producer_id != producer.id:
            is_rotated = found.previous_id == producer.id and found.epoch == 0
            if is_rotated and producer.epoch == EXHAUSTED_EPOCH and found.state in AT_REST:
                return found
            return ErrorCode.INVALID_PRODUCER_ID_MAPPING
        allowed = [] if found.is_ending else [found.epoch]
        was_ended = found.state not in (TransactionState.ONGOING, TransactionState.EMPTY)
        if was_ended and found.protocol >= EPOCH_PER_TRANSACTION:
            allowed.append(found.epoch - 1)
        return found if producer.epoch in allowed else ErrorCode.PRODUCER_FENCED

    def complete(self, done: WriteMarkers, now_ms: int) -> CoordinatorResult:
        """The order was carried out: every partition knows."""
        result = CoordinatorResult(now_ms)
        found = self.transactions.get(done.transactional_id)
        if found is not None and found.is_ending and _markers(found).decides_as(done):
            assert found.id == done.transactional_id, violated("ids are kept by name")
            result.records.append(self._record(found.completed(now_ms)))
        return result

    def _decide(self, result: CoordinatorResult, decided: Transaction) -> None:
        assert decided.is_ending, violated("markers are written for what was decided")
        result.records.append(self._record(decided))
        result.orders.append(_markers(decided))

    def _record(self, transaction: Transaction) -> TransactionRecord:
        version = TAGGED if self.limits.protocol else PLAIN
        return TransactionRecord(transaction.id, transaction, version)

    def _of(self, transactional_id: str, producer: Producer) -> Transaction | ErrorCode:
        """The transaction that a producer speaks of, or why it may not."""
        found = self.transactions.get(transactional_id)
        if found is None or found.producer_id != producer.id:
            return ErrorCode.INVALID_PRODUCER_ID_MAPPING
        if found.epoch != producer.epoch:
            return ErrorCode.PRODUCER_FENCED
        assert found.id == transactional_id, violated("ids are kept by name")
        return found

    # --- time

    @property
    def next_ms(self) -> int | None:
        """Nothing here is due at a moment of its own: sweeps look after time."""
        return None

    def tick(self, now_ms: int) -> CoordinatorResult | None:
        """There is nothing to do."""
        return None

    def abort_timed_out(self, now_ms: int) -> Iterator[CoordinatorResult]:
        """Abort transactions that are open for too long, and shut their producers out."""

        def abort(each: Transaction) -> Iterator[CoordinatorResult]:
            if each.timed_out(now_ms):
                result = CoordinatorResult(now_ms)
                fenced = each.fenced(protocol=self.limits.protocol)
                self._decide(
                    result, fenced.prepared(commit=False, now_ms=now_ms, protocol=fenced.protocol)
                )
                yield result

        every = list(self.transactions.values())
        yield from chain_isolated(every, abort, "Abort after a timeout", name=_id_of)

    def expire(self, now_ms: int) -> Iterator[CoordinatorResult]:
        """Forget transactional ids that were not used for long."""

        def expire(each: Transaction) -> Iterator[CoordinatorResult]:
            age_ms = now_ms - each.updated_ms
            if each.state in AT_REST and age_ms >= self.limits.expiration_ms:
                yield CoordinatorResult(now_ms, records=[TransactionRecord(each.id, None)])

        every = list(self.transactions.values())
        yield from chain_isolated(every, expire, "Expiration", name=_id_of)

    # --- state

    def replay(self, record: TransactionRecord, now_ms: int) -> None:
        """Make true what a record says, whether it was just appended or is read back."""
        assert record.transaction is None or record.transaction.id == record.transactional_id, (
            violated("a record is of its transactional id")
        )
        before = self.transactions.pop(record.transactional_id, None)
        if before is not None:
            self.account.add(-before.memory_bytes)
        if record.transaction is not None and record.transaction.state is not TransactionState.DEAD:
            self.transactions[record.transactional_id] = record.transaction
            self.account.add(record.transaction.memory_bytes)
        assert self.account.held >= 0, violated("memory is given back once")
        if record.transaction is not None and record.value_version != PLAIN:
            self._tagged.add(record.transactional_id)
        else:
            self._tagged.discard(record.transactional_id)

    def loaded(self, now_ms: int) -> Iterator[CoordinatorResult]:
        """Go on with the endings that were under way; call once all records are read back."""
        for each in list(self.transactions.values()):
            if each.is_ending:
                yield CoordinatorResult(now_ms, orders=[_markers(each)])
        yield from self.plainly(now_ms)

    def plainly(self, now_ms: int) -> Iterator[CoordinatorResult]:
        """Write again, for every Kafka to read, what was written while protocol 2 was in force.

        To be called whenever that may have ended. The records before go with the next compaction.
        """
        if self.limits.protocol:
            return
        for each in list(self.transactions.values()):
            if each.id in self._tagged:
                yield CoordinatorResult(now_ms, records=[self._record(replace(each, protocol=0))])

    def resign(self, now_ms: int) -> CoordinatorResult:
        """Forget everything; only the log counts."""
        self.transactions = {}
        self._tagged = set()
        self.account.leave()
        self.account = Account()
        return CoordinatorResult(now_ms)

    def _has_room(self, more: int) -> bool:
        """Whether the transactional ids of the broker may take so many bytes more.

        Where they may not, the producer has done nothing wrong, and asks again: ids expire.
        """
        return has_room(self._in_use.held, more, self.limits.memory_bytes_max)


_S = TransactionState
_END_AGAIN = {
    (_S.COMPLETE_COMMIT, True): ErrorCode.NONE,
    (_S.COMPLETE_ABORT, False): ErrorCode.NONE,
    (_S.PREPARE_COMMIT, True): ErrorCode.CONCURRENT_TRANSACTIONS,
    (_S.PREPARE_ABORT, False): ErrorCode.CONCURRENT_TRANSACTIONS,
}
"""What an end is answered that does not end anything, by state and whether it is a commit."""


def _initialisation_fault(known: Transaction, expected: Producer) -> ErrorCode | None:
    """Why InitProducerId is refused, None if it is not.

    Kafka compares the epoch only where it does not abort an open transaction first; here a
    producer that was fenced cannot have its successor's transaction aborted.
    """
    if expected != NO_PRODUCER and known.epoch != NO_PRODUCER_EPOCH:
        rotated = (
            expected.id != known.producer_id
            and expected.id == known.previous_id
            and expected.epoch >= EXHAUSTED_EPOCH
        )
        valid_epochs = (known.last_epoch,) if rotated else (known.epoch, known.last_epoch)
        if not (rotated or expected.id == known.producer_id) or expected.epoch not in valid_epochs:
            return ErrorCode.PRODUCER_FENCED
    return ErrorCode.CONCURRENT_TRANSACTIONS if known.is_ending else None


def _markers(decided: Transaction) -> WriteMarkers:
    return WriteMarkers(
        decided.id,
        Producer(decided.producer_id, decided.epoch),
        decided.state is TransactionState.PREPARE_COMMIT,
        decided.partitions,
        decided.protocol,
        decided.started_ms,
    )


def _refuse_with_code(result: CoordinatorResult, waiter: Waiter) -> None:
    result.refuse = lambda code, instead: instead.answer(waiter, write_error(code))


def write_error(code: ErrorCode) -> ErrorCode:
    """What a failed write means to a producer (Kafka's `appendTransactionToLog`)."""
    if code in _UNAVAILABLE:
        return ErrorCode.COORDINATOR_NOT_AVAILABLE
    if code in _ELSEWHERE:
        return ErrorCode.NOT_COORDINATOR
    if code in _TOO_LARGE:
        return ErrorCode.UNKNOWN_SERVER_ERROR
    return code


_UNAVAILABLE = (
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    ErrorCode.NOT_ENOUGH_REPLICAS,
    ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND,
    ErrorCode.REQUEST_TIMED_OUT,
)
_ELSEWHERE = (ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.KAFKA_STORAGE_ERROR)
_TOO_LARGE = (ErrorCode.MESSAGE_TOO_LARGE, ErrorCode.RECORD_LIST_TOO_LARGE)


def _id_of(transaction: Transaction) -> str:
    return transaction.id
