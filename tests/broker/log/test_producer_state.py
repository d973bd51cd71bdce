"""Idempotence and transactions, batch by batch (KIP-98, KIP-360)."""

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from barnabas_broker.log import batches, markers
from barnabas_broker.log.producer_state import (
    EndMarker,
    Origin,
    ProducerBatch,
    ProducerEntry,
    ProducerState,
    Sequences,
    bound_all,
    fair_share,
)
from barnabas_broker.log.transaction_index import AbortedTransaction
from barnabas_kafka.errors import ErrorCode, KafkaError
from barnabas_kafka.records.batch import parse_header
from tests.broker.log.samples import NOW, batch_of, marker_of

MAX_SEQUENCE = 2**31 - 1


def batch(
    first_sequence: int,
    count: int = 1,
    *,
    offset: int = 0,
    producer: int = 7,
    epoch: int = 0,
    transactional: bool = False,
    timestamp: int = 0,
) -> ProducerBatch:
    last = (first_sequence + count - 1) & MAX_SEQUENCE
    return ProducerBatch(
        producer, epoch, first_sequence, last, offset, offset + count - 1, timestamp,
        transactional, control=False,
    )  # fmt: skip


def marker(
    offset: int, *, commit: bool, producer: int = 7, epoch: int = 0, coordinator: int = 0
) -> ProducerBatch:
    return ProducerBatch(
        producer, epoch, -1, -1, offset, offset, 0, True, True, EndMarker(commit, coordinator)
    )


def accept(state: ProducerState, *batches: ProducerBatch) -> list[AbortedTransaction]:
    plan = state.check(batches, Origin.CLIENT)
    return state.commit(plan, batches[-1].last_offset + 1)


def refusal(state: ProducerState, item: ProducerBatch, origin: Origin = Origin.CLIENT) -> ErrorCode:
    with pytest.raises(KafkaError) as caught:
        state.check([item], origin)
    return caught.value.code


def test_sequences_follow_each_other() -> None:
    """The next batch starts where the last one ended, plus one."""
    state = ProducerState()
    accept(state, batch(0, 3))
    accept(state, batch(3, 2, offset=3))
    assert state.producers[7].last_sequence == 4
    assert state.end_offset == 5


@pytest.mark.parametrize("sequence", [4, 1, 5])
def test_gaps_and_repeats_are_out_of_order(sequence: int) -> None:
    """A gap means a batch was lost; a partial repeat cannot be told from new data."""
    state = ProducerState()
    accept(state, batch(0, 3))
    assert refusal(state, batch(sequence)) == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER


def test_the_last_five_batches_are_known_again() -> None:
    """A retry of any of five batches in flight gets its original offsets; a sixth does not."""
    state = ProducerState()
    for number in range(6):
        accept(state, batch(number * 2, 2, offset=100 + number * 2))
    for number in range(1, 6):
        original = state.find_duplicate(batch(number * 2, 2))
        assert original is not None
        assert (original.first_offset, original.last_offset) == (
            100 + number * 2,
            101 + number * 2,
        )
    assert state.find_duplicate(batch(0, 2)) is None


def test_a_duplicate_has_the_same_epoch_and_both_sequences() -> None:
    """The same first sequence with another length, or another epoch, is something else."""
    state = ProducerState()
    accept(state, batch(0, 3))
    assert state.find_duplicate(batch(0, 2)) is None
    assert state.find_duplicate(batch(0, 3, epoch=1)) is None
    assert state.find_duplicate(batch(0, 3, producer=8)) is None


def test_sequences_wrap_to_zero() -> None:
    """After 2147483647 comes 0."""
    state = ProducerState()
    accept(state, batch(MAX_SEQUENCE))
    accept(state, batch(0, offset=1))


def test_a_batch_may_lie_across_the_wrap() -> None:
    """Its last sequence is small, its first one large, and it is recognised as a duplicate."""
    state = ProducerState()
    accept(state, batch(MAX_SEQUENCE - 1, 4, offset=50))
    assert state.producers[7].last_sequence == 1
    original = state.find_duplicate(batch(MAX_SEQUENCE - 1, 4))
    assert original is not None
    assert original.first_offset == 50


def test_unknown_producers_may_start_anywhere() -> None:
    """Their earlier batches may have been deleted by retention."""
    accept(ProducerState(), batch(4711))


def test_a_new_epoch_starts_at_zero() -> None:
    """After an epoch bump the sequences begin again."""
    state = ProducerState()
    accept(state, batch(5))
    code = refusal(state, batch(6, epoch=1))
    assert code == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    accept(state, batch(0, epoch=1, offset=1))
    assert len(state.producers[7].batches) == 1


def test_old_epochs_are_fenced() -> None:
    """A zombie's batch is refused for good."""
    state = ProducerState()
    accept(state, batch(0, epoch=3))
    assert refusal(state, batch(1, epoch=2)) == ErrorCode.INVALID_PRODUCER_EPOCH


def test_replicas_take_what_the_leader_took() -> None:
    """A follower does not check again: its state may be older than the leader's decision."""
    state = ProducerState()
    accept(state, batch(0, epoch=3))
    plan = state.check([batch(9, epoch=2, offset=1)], Origin.REPLICATION)
    state.commit(plan, 2)
    assert state.producers[7].last_sequence == 9


def test_nothing_changes_before_the_commit() -> None:
    """A batch that was checked but could not be written left no trace."""
    state = ProducerState()
    accept(state, batch(0))
    state.check([batch(1, offset=1)], Origin.CLIENT)
    assert state.producers[7].last_sequence == 0
    accept(state, batch(1, offset=1))


def test_silent_producers_expire() -> None:
    """After producer.id.expiration.ms without a batch, but never inside a transaction."""
    state = ProducerState()
    accept(state, batch(0, timestamp=1000))
    accept(state, batch(0, producer=8, transactional=True, timestamp=1000, offset=1))
    assert state.expire(1999, 1000) == 0
    assert state.expire(2000, 1000) == 1
    assert list(state.producers) == [8]


def test_an_open_transaction_holds_the_stable_offset() -> None:
    """From its first batch on, until its marker is replicated."""
    state = ProducerState()
    accept(state, batch(0, offset=10, transactional=True))
    accept(state, batch(1, offset=11, transactional=True))
    assert state.first_unstable_offset == 10
    assert state.has_ongoing_transaction(7, 0)
    assert not state.has_ongoing_transaction(7, 1)
    assert accept(state, marker(12, commit=True)) == []
    assert not state.has_ongoing_transaction(7, 0)
    assert state.first_unstable_offset == 10
    state.advance_high_watermark(12)
    assert state.first_unstable_offset == 10
    state.advance_high_watermark(13)
    assert state.first_unstable_offset is None


def test_an_abort_is_remembered_for_readers() -> None:
    """The transaction index learns where it began, its marker, and the stable offset after it."""
    state = ProducerState()
    accept(state, batch(0, offset=10, transactional=True))
    assert accept(state, marker(15, commit=False)) == [AbortedTransaction(7, 10, 15, 16)]


def test_the_stable_offset_after_an_abort_is_the_next_open_transaction() -> None:
    """Another producer's transaction is still undecided below the marker."""
    state = ProducerState()
    accept(state, batch(0, offset=10, transactional=True))
    accept(state, batch(0, offset=12, producer=8, transactional=True))
    assert accept(state, marker(15, commit=False)) == [AbortedTransaction(7, 10, 15, 12)]


def test_a_marker_without_data_settles_nothing() -> None:
    """An empty transaction has no effect on readers."""
    state = ProducerState()
    assert accept(state, marker(0, commit=False)) == []
    assert state.first_unstable_offset is None


def test_plain_batches_inside_a_transaction_are_refused() -> None:
    """A transactional producer cannot slip data past its own transaction."""
    state = ProducerState()
    accept(state, batch(0, transactional=True))
    assert refusal(state, batch(1, offset=1)) == ErrorCode.INVALID_TXN_STATE


def test_old_coordinators_are_fenced() -> None:
    """A marker of a coordinator that has lost its partition is refused."""
    state = ProducerState()
    accept(state, marker(0, commit=True, coordinator=5))
    late = marker(1, commit=True, coordinator=4)
    assert refusal(state, late) == ErrorCode.TRANSACTION_COORDINATOR_FENCED
    state.check([late], Origin.REPLICATION)


def test_coordinators_may_write_any_sequence() -> None:
    """Their batches are not retried by a client; only the epoch counts."""
    state = ProducerState()
    accept(state, batch(0))
    state.check([batch(500, offset=1)], Origin.COORDINATOR)
    assert refusal(state, batch(0, epoch=-1), Origin.COORDINATOR) == (
        ErrorCode.INVALID_PRODUCER_EPOCH
    )


def test_a_restored_state_goes_on() -> None:
    """Open transactions of a snapshot hold the stable offset again."""
    state = ProducerState()
    state.restore(
        [ProducerEntry(8, 0, txn_first_offset=40), ProducerEntry(7, 0, txn_first_offset=30)], 50
    )
    assert state.end_offset == 50
    assert state.first_unstable_offset == 30
    accept(state, marker(50, commit=True))
    state.advance_high_watermark(51)
    assert state.first_unstable_offset == 40


def test_the_log_start_pushes_the_state_along() -> None:
    """Settled transactions below it are forgotten, and the state is never behind it."""
    state = ProducerState()
    accept(state, batch(0, offset=10, transactional=True))
    accept(state, marker(11, commit=True))
    state.advance_log_start(20)
    assert state.first_unstable_offset is None
    assert state.end_offset == 20


def test_beyond_the_bound_the_longest_idle_are_forgotten() -> None:
    """Whoever wrote lately stays, however long ago it came; who is forgotten begins anywhere."""
    state = ProducerState(ids_max=3)
    for offset, producer in enumerate((1, 2, 3)):
        accept(state, batch(0, offset=offset, producer=producer))
    accept(state, batch(1, offset=3, producer=1))
    accept(state, batch(0, offset=4, producer=4))
    assert list(state.producers) == [3, 1, 4]
    accept(state, batch(9, offset=5, producer=2))
    assert list(state.producers) == [1, 4, 2]
    assert refusal(state, batch(3, producer=1)) == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER


def test_a_batch_of_a_later_time_does_not_keep_its_producer() -> None:
    """Clients say what time it is: only the order in which they wrote cannot be made up."""
    state = ProducerState(ids_max=1)
    accept(state, batch(0, producer=1, timestamp=2**62))
    accept(state, batch(0, offset=1, producer=2, timestamp=0))
    assert list(state.producers) == [2]


def test_open_transactions_are_never_forgotten() -> None:
    """Not even beyond the bound: the last stable offset depends on them until they end."""
    state = ProducerState(ids_max=2)
    for offset in range(4):
        accept(state, batch(0, offset=offset, producer=offset, transactional=True))
    accept(state, batch(0, offset=4, producer=4))
    assert list(state.producers) == [0, 1, 2, 3]
    assert state.first_unstable_offset == 0
    accept(state, marker(5, commit=True, producer=0))
    accept(state, batch(0, offset=6, producer=6))
    assert list(state.producers) == [1, 2, 3]


def test_a_flood_of_producers_is_forgotten_a_sixteenth_at_a_time() -> None:
    """So that looking for the longest idle does not cost with each of them."""
    state = ProducerState(ids_max=160)
    sizes = []
    for number in range(500):
        accept(state, batch(0, offset=number, producer=number))
        sizes.append(len(state.producers))
    assert max(sizes) == 160
    assert min(sizes[160:]) == 150
    assert list(state.producers)[-1] == 499


def test_a_snapshot_of_more_producers_is_cut_to_the_newest() -> None:
    """The bound was lowered since; who wrote last comes last in it."""
    full = ProducerState(ids_max=5)
    for number in (1, 2, 3, 4, 5):
        accept(full, batch(0, offset=number, producer=number))
    state = ProducerState(ids_max=2)
    state.restore(full.producers.values(), 6)
    assert list(state.producers) == [4, 5]


def with_open_transactions(count: int, *, ids_max: int) -> ProducerState:
    """So many producers have written one transactional batch each, the first at offset 0."""
    state = ProducerState(ids_max=ids_max)
    for offset in range(count):
        accept(state, batch(0, offset=offset, producer=offset, transactional=True))
    return state


def test_a_transaction_may_begin_at_the_first_offset() -> None:
    """It is as open as any other: for its producer, for the bounds, after a start, for markers."""
    state = with_open_transactions(1, ids_max=2)
    assert not state.follows(Sequences(0, 0, 1, 1))
    assert refusal(state, batch(1, offset=1, producer=0)) is ErrorCode.INVALID_TXN_STATE
    accept(state, batch(1, offset=1, producer=0, transactional=True))
    assert state.has_ongoing_transaction(0, 0)
    assert state.expire(10**12, 1) == 0
    assert state.forget_down_to(0) == 0
    again = ProducerState()
    again.restore(state.producers.values(), 2)
    assert again.first_unstable_offset == 0
    assert accept(again, marker(2, commit=False, producer=0)) == [AbortedTransaction(0, 0, 2, 3)]


def test_producers_with_open_transactions_leave_room_for_others() -> None:
    """Were they more than the bound, no other producer would be known for two batches."""
    state = with_open_transactions(32, ids_max=16)
    accept(state, batch(0, offset=32, producer=100))
    accept(state, batch(0, offset=33, producer=101))
    assert refusal(state, batch(2, offset=34, producer=101)) is (
        ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    )


def test_the_bound_holds_again_after_a_start() -> None:
    """Open transactions had raised it; the log that was read again has none."""
    state = with_open_transactions(32, ids_max=16)
    state.restore([], 32)
    for number in range(32):
        accept(state, batch(0, offset=32 + number, producer=number))
    assert len(state.producers) <= 16


def test_partitions_with_most_producers_forget_first() -> None:
    """All together come a little below the bound; who has an open transaction stays."""
    few, many = ProducerState(), with_open_transactions(2, ids_max=100)
    accept(few, batch(0, producer=1))
    for number in range(2, 40):
        accept(many, batch(0, offset=number, producer=number))
    assert bound_all([few, many], 41) == 0
    assert bound_all([few, many], 16) == 26
    assert list(few.producers) == [1]
    assert list(many.producers) == [0, 1, *range(28, 40)]


HISTORIES = st.lists(
    st.builds(
        batch,
        st.sampled_from((0, 1, 2, 3, 4, MAX_SEQUENCE - 1, MAX_SEQUENCE)),
        st.integers(1, 3),
        producer=st.integers(1, 2),
        epoch=st.sampled_from((0, 0, 0, 1)),
        transactional=st.sampled_from((False, False, False, True)),
    ),
    max_size=20,
)


@given(history=HISTORIES, origin=st.sampled_from((Origin.CLIENT, Origin.REPLICATION)))
@example(history=[batch(3, 2), batch(0, 3), batch(3, 2)], origin=Origin.REPLICATION)
@example(history=[batch(0, transactional=True), batch(1)], origin=Origin.CLIENT)
def test_a_batch_that_follows_is_accepted_by_the_full_check(
    history: list[ProducerBatch], origin: Origin
) -> None:
    """A batch that `follows` would be taken as new, and leaves what it would leave then.

    Also where a follower, which takes all, has become the leader.
    """
    state, other = ProducerState(), ProducerState()
    for offset, item in enumerate(history):
        sequences = Sequences(
            item.producer_id,
            item.producer_epoch,
            item.first_sequence,
            item.first_sequence + item.last_offset - item.first_offset,
        )
        moved = item._replace(
            first_offset=offset,
            last_offset=offset + item.last_offset,
            timestamp=offset,
        )
        if state.follows(sequences) and not item.transactional:
            assert other.find_duplicate(moved) is None
            accept(other, moved)
            state.went_on(sequences, moved.last_offset, offset)
            state.end_offset = moved.last_offset + 1
        else:
            for each in (state, other):
                if origin is Origin.REPLICATION or each.find_duplicate(moved) is None:
                    try:
                        each.commit(each.check([moved], origin), moved.last_offset + 1)
                    except KafkaError:
                        continue
        assert list(state.producers.items()) == list(other.producers.items())
        assert state.end_offset == other.end_offset


def test_partitions_share_what_producers_there_may_be() -> None:
    """Who has few keeps them, and the others have as many each as are left."""
    assert fair_share([], 10) == 0
    assert fair_share([1, 2, 3], 6) == 3
    assert fair_share([1, 20, 30], 11) == 5
    assert fair_share([5, 5], 0) == 0


def test_markers_are_read_from_control_batches() -> None:
    """Commit or abort, and the coordinator's epoch."""
    assert markers.end_marker(marker_of(9, 0, commit=True, coordinator_epoch=5)) == (
        EndMarker(commit=True, coordinator_epoch=5)
    )
    assert markers.end_marker(marker_of(9, 0, commit=False)) == EndMarker(
        commit=False, coordinator_epoch=0
    )


def test_new_and_stored_batches_say_the_same() -> None:
    """A follower's and a restarted broker's state equals the leader's."""
    data = batch_of(3, offset=40, producer=(9, 1, 2**31 - 2), transactional=True)
    new = markers.new_producer_batch(parse_header(data), 40, data)
    stored = markers.stored_producer_batch(batches.parse(data, 0, 0), data)
    assert new == stored
    assert (new.first_sequence, new.last_sequence) == (2**31 - 2, 0)
    assert (new.first_offset, new.last_offset, new.timestamp) == (40, 42, NOW + 2)


def test_control_batches_carry_their_marker() -> None:
    """Without the bytes the marker stays unknown."""
    data = marker_of(9, 1, commit=True)
    stored = batches.parse(data, 0, 0)
    assert markers.stored_producer_batch(stored, data).marker == EndMarker(True, 0)
    assert markers.stored_producer_batch(stored, None).marker is None
