"""The leader's view of its followers: the ISR it wants, and where the high watermark belongs."""

from dataclasses import replace

import pytest

from barnabas_broker.cluster.image import PartitionState
from barnabas_broker.replica.isr import REFUSED_MS, InSync, InSyncRules, IsrChange

STATE = PartitionState(
    replicas=(1, 2, 3), isr=(1, 2, 3), leader=1, leader_epoch=5, controller_epoch=1
)
LAG_MS = 30_000


def leader(
    isr: tuple[int, ...] = (1, 2, 3), *, rules: InSyncRules | None = None, log_end: int = 0
) -> InSync:
    """Broker 1, leading since 0 ms."""
    view = InSync(1, rules or InSyncRules())
    assert view.become(replace(STATE, isr=isr), log_end=log_end, now_ms=0)
    return view


def fetch(view: InSync, broker: int, offset: int, *, end: int, now_ms: int = 0) -> bool:
    """A follower fetches while the leader's log ends at `end`."""
    return view.fetched(broker, offset=offset, log_start=0, leader_end=end, now_ms=now_ms)


def committed(view: InSync, high_watermark: int, end: int, *, now_ms: int = 0) -> int:
    """Where the high watermark belongs, if all of the leader's log counts."""
    return view.committed_end(high_watermark, own_end=end, log_end=end, now_ms=now_ms)


def test_the_slowest_of_the_isr_holds_the_mark() -> None:
    """It is the smallest log end of those in sync, and unknown ones hold it altogether."""
    view = leader()
    fetch(view, 2, 8, end=10)
    assert committed(view, 0, 10) == 0
    fetch(view, 3, 6, end=10)
    assert committed(view, 0, 10) == 6
    assert committed(view, 9, 10) == 9, "it does not go back"


def test_with_fsync_the_leader_counts_to_its_durable_end() -> None:
    """Where records count once they are synced, the leader's copy ends at its durable end."""
    view = leader((1, 2))
    fetch(view, 2, 10, end=10)
    assert view.committed_end(0, own_end=4, log_end=10, now_ms=99_000) == 4


def test_a_follower_about_to_join_is_waited_for() -> None:
    """Outside the ISR but caught up in time: the mark waits, so that it can come in."""
    view = leader((1, 2))
    fetch(view, 2, 10, end=10)
    fetch(view, 3, 7, end=7)
    assert committed(view, 0, 10, now_ms=LAG_MS) == 7
    assert view.waits_for_joining, "the time alone can end that"
    assert committed(view, 0, 10, now_ms=LAG_MS + 1) == 10
    assert not view.waits_for_joining
    alive = view.committed_end(0, own_end=10, log_end=10, now_ms=0, alive={1, 2})
    assert alive == 10, "its broker is gone, so it cannot come in"


def test_a_follower_that_the_controller_refused_is_waited_for() -> None:
    """It may be in the ISR all the same, by a change of which the leader has not heard yet."""
    view = leader((1, 2))
    fetch(view, 2, 10, end=10)
    fetch(view, 3, 7, end=7)
    change = view.wanted_expansion(3, high_watermark=7)
    assert change is not None
    assert committed(view, 0, 10) == 7
    view.change_refused(change)
    assert committed(view, 0, 10) == 7
    assert view.waits_for_joining


def test_a_follower_that_was_refused_is_proposed_again() -> None:
    """The controller may not have heard of its registration yet: it fetches on, and comes in."""
    view = leader((1, 2))
    fetch(view, 2, 10, end=10)
    fetch(view, 3, 7, end=7, now_ms=100)
    change = view.wanted_expansion(3, high_watermark=7)
    assert change is not None
    view.change_refused(change)
    fetch(view, 3, 8, end=10, now_ms=99 + REFUSED_MS)
    assert view.wanted_expansion(3, high_watermark=8) is None, "not with each fetch"
    fetch(view, 3, 8, end=10, now_ms=100 + REFUSED_MS)
    assert committed(view, 0, 10, now_ms=100 + REFUSED_MS) == 8
    assert view.wanted_expansion(3, high_watermark=8) is not None


def test_a_refusal_ends_with_the_leader_epoch() -> None:
    """The next one was named by the controller, after whatever it had against the follower."""
    view = leader((1, 2))
    fetch(view, 3, 7, end=7, now_ms=100)
    change = view.wanted_expansion(3, high_watermark=7)
    assert change is not None
    view.change_refused(change)
    view.become(replace(STATE, isr=(1, 2), leader_epoch=6), log_end=7, now_ms=200)
    fetch(view, 3, 7, end=7, now_ms=200)
    assert view.wanted_expansion(3, high_watermark=7) is not None


def test_partitions_of_the_same_brokers_share_their_set() -> None:
    """A broker leads thousands with a handful of in-sync replicas; a change makes another set."""
    first, second = leader(), leader()
    assert first.maximal_isr is second.maximal_isr
    second.become(
        replace(STATE, isr=(1, 2), partition_epoch=STATE.partition_epoch + 1), log_end=0, now_ms=0
    )
    assert first.maximal_isr == {1, 2, 3}
    assert second.maximal_isr == {1, 2}


def test_a_mark_is_held_while_too_few_are_in_sync() -> None:
    """min.insync.replicas holds the mark, but asks for no more than the assignment has."""
    view = leader((1,), rules=InSyncRules(min_in_sync=2))
    assert view.is_under_min
    assert committed(view, 0, 5, now_ms=LAG_MS + 1) == 0
    view.rules = InSyncRules(min_in_sync=2, hold_below_min=False)
    assert committed(view, 0, 5, now_ms=LAG_MS + 1) == 5
    view.rules = InSyncRules(min_in_sync=9)
    fetch(view, 2, 5, end=5)
    fetch(view, 3, 5, end=5)
    assert view.is_under_min
    assert view.change_committed(isr=(1, 2, 3), leader_epoch=5, partition_epoch=1)
    assert not view.is_under_min
    assert committed(view, 0, 5) == 5


def test_a_pending_isr_expansion_holds_the_high_watermark() -> None:
    """While an expansion is under way the mark waits for both outcomes (KIP-497)."""
    view = leader((1, 2))
    fetch(view, 2, 10, end=10)
    fetch(view, 3, 4, end=10)
    change = view.wanted_expansion(3, high_watermark=4)
    assert change == IsrChange((1, 2, 3), frozenset({3}), frozenset(), 5, 0)
    assert view.maximal_isr == {1, 2, 3}
    assert view.isr == (1, 2)
    assert committed(view, 4, 10, now_ms=LAG_MS + 1) == 4
    assert view.wanted_expansion(3, high_watermark=4) is None, "one change at a time"
    view.change_refused(change)
    assert committed(view, 4, 10, now_ms=LAG_MS + 1) == 10


def test_a_pending_isr_shrink_holds_the_high_watermark() -> None:
    """A shrink moves the mark only once it is committed."""
    view = leader()
    fetch(view, 2, 10, end=10, now_ms=LAG_MS)
    fetch(view, 3, 4, end=10, now_ms=LAG_MS)
    assert view.wanted_shrink(log_end=10, now_ms=LAG_MS) is None
    change = view.wanted_shrink(log_end=10, now_ms=LAG_MS + 1)
    assert change is not None
    assert change.isr == (1, 2)
    assert change.removed == {3}
    assert committed(view, 0, 10, now_ms=LAG_MS + 1) == 4
    assert view.change_committed(isr=(1, 2), leader_epoch=5, partition_epoch=1)
    assert committed(view, 4, 10, now_ms=LAG_MS + 1) == 10


def test_followers_eligible_for_the_isr() -> None:
    """A follower must have what is committed and all from before this leadership (KIP-101)."""
    view = leader((1,), log_end=6)
    fetch(view, 2, 5, end=9)
    assert view.wanted_expansion(2, high_watermark=3) is None, "not up to this epoch's start"
    fetch(view, 2, 6, end=9)
    assert view.wanted_expansion(2, high_watermark=7) is None, "not up to the mark"
    assert view.wanted_expansion(2, high_watermark=6, alive={1, 3}) is None, "not alive"
    change = view.wanted_expansion(2, high_watermark=6, alive={1, 2})
    assert change is not None
    assert change.isr == (1, 2)
    assert view.wanted_expansion(9, high_watermark=0) is None, "not a replica"
    fetch(view, 3, 6, end=9)
    assert view.wanted_expansion(3, high_watermark=6) is None, "one change at a time"


@pytest.mark.parametrize(
    ("fetches", "late_at"),
    [
        ([], LAG_MS + 1),
        ([(0, 0, 10)], LAG_MS + 1),
        # At 1 s it has not all there is, at 2 s it has what was there at 1 s.
        ([(1_000, 5, 10), (2_000, 10, 20)], LAG_MS + 1_001),
        ([(1_000, 10, 10), (2_000, 12, 20)], LAG_MS + 1_001),
        # It never gets to where the log was when it last asked.
        ([(1_000, 5, 10), (2_000, 9, 20), (3_000, 15, 30)], LAG_MS + 1),
    ],
)
def test_when_a_follower_is_late(fetches: list[tuple[int, int, int]], late_at: int) -> None:
    """It was last caught up when it asked for the end, or for what had been the end at its last."""
    view = leader((1, 2))
    for now_ms, offset, end in fetches:
        fetch(view, 2, offset, end=end, now_ms=now_ms)
    end = max((end for _, _, end in fetches), default=1) + 1
    assert view.wanted_shrink(log_end=end, now_ms=late_at - 1) is None
    change = view.wanted_shrink(log_end=end, now_ms=late_at)
    assert change is not None
    assert change.removed == {2}


def test_a_quiet_partition_keeps_its_isr() -> None:
    """A follower at the leader's end is in sync, however long ago it last asked."""
    view = leader((1, 2))
    fetch(view, 2, 10, end=10)
    assert view.wanted_shrink(log_end=10, now_ms=10**9) is None


def test_a_shrink_can_want_the_log_on_disk_first() -> None:
    """Who stays behind must not hold committed records in page caches alone."""
    view = leader((1, 2), rules=InSyncRules(flush_on_shrink=True))
    change = view.wanted_shrink(log_end=1, now_ms=LAG_MS + 1)
    assert change is not None
    assert change.flush_first


def test_older_words_of_the_controller_change_nothing() -> None:
    """Leader epoch, then partition epoch: what is not newer is not obeyed."""
    view = leader((1, 2))
    change = view.wanted_shrink(log_end=1, now_ms=LAG_MS + 1)
    assert not view.become(replace(STATE, leader_epoch=4, isr=(1,)), log_end=0, now_ms=0)
    assert not view.become(replace(STATE, isr=(1, 3)), log_end=0, now_ms=0)
    assert view.isr == (1, 2)
    assert view.pending is change, "it may still be written"
    assert not view.become(replace(STATE, isr=(1, 3), partition_epoch=1), log_end=0, now_ms=0)
    assert (view.isr, view.pending) == ((1, 3), None)
    assert not view.change_committed(isr=(1,), leader_epoch=5, partition_epoch=0)
    assert not view.change_committed(isr=(1,), leader_epoch=4, partition_epoch=9)
    assert view.isr == (1, 3)


def test_a_change_whose_answer_was_lost_is_settled_by_a_newer_state() -> None:
    """In the same leader epoch; the mark waits for who is being added until then."""
    view = leader((1, 2))
    fetch(view, 2, 10, end=10)
    fetch(view, 3, 4, end=10)
    change = view.wanted_expansion(3, high_watermark=4)
    same = replace(STATE, isr=(1, 2), controller_epoch=2)
    assert not view.become(same, log_end=10, now_ms=0)
    assert view.pending is change, "the next controller names what is known; it may still be made"
    assert committed(view, 4, 10, now_ms=LAG_MS + 1) == 4
    newer = replace(same, partition_epoch=1)
    assert not view.become(newer, log_end=10, now_ms=0)
    assert view.maximal_isr == {1, 2}
    assert committed(view, 4, 10, now_ms=LAG_MS + 1) == 10, "another was written in its place"
    again = view.wanted_expansion(3, high_watermark=4)
    assert again is not None
    assert again.partition_epoch == 1


def test_a_further_epoch_of_the_same_leader() -> None:
    """What it knows of its followers' logs stays true; their time begins anew if in sync."""
    view = leader()
    fetch(view, 2, 3, end=3)
    fetch(view, 3, 3, end=3)
    again = replace(STATE, leader_epoch=6, isr=(1, 2), partition_epoch=1)
    assert view.become(again, log_end=8, now_ms=50_000)
    assert view.epoch_start == 8
    assert view.followers[2].log_end_offset == 3
    assert committed(view, 0, 8, now_ms=50_000) == 3
    assert view.wanted_shrink(log_end=8, now_ms=50_000 + LAG_MS) is None
    assert view.wanted_shrink(log_end=8, now_ms=50_001 + LAG_MS) is not None


@pytest.mark.parametrize("offset", [100, 200])
def test_a_further_epoch_counts_no_fetch_of_the_one_before(offset: int) -> None:
    """A replica outside the ISR has to catch up again: until then the mark does not wait for it.

    It asks for the end that it was told of in the epoch before, or for that at which this began.
    """
    view = InSync(1, InSyncRules(lag_max_ms=LAG_MS))
    view.become(replace(STATE, isr=(1, 2)), log_end=0, now_ms=0)
    fetch(view, 3, 0, end=100, now_ms=1000)
    fetch(view, 2, 300, end=300, now_ms=1000)
    view.become(replace(STATE, isr=(1, 2), leader_epoch=6), log_end=200, now_ms=2000)
    fetch(view, 3, offset, end=300, now_ms=3000)
    assert committed(view, 0, 300, now_ms=3000) == 300


def test_a_resigned_leader_knows_no_followers() -> None:
    """What followers had under an old leadership says nothing under a new one."""
    view = leader((1, 2))
    fetch(view, 2, 5, end=5)
    view.resign(replace(STATE, leader=2, leader_epoch=4))
    assert view.leads, "that word is an old one"
    view.resign(replace(STATE, leader=2, leader_epoch=6))
    assert not view.leads
    assert not view.knows(2)
    assert committed(view, 3, 5) == 3
    assert view.wanted_shrink(log_end=5, now_ms=10**9) is None
    view.become(replace(STATE, leader_epoch=7, isr=(1, 2)), log_end=5, now_ms=0)
    assert committed(view, 3, 5) == 3, "broker 2 has yet to show what it has"


def test_a_fetch_from_an_earlier_life_is_not_noted() -> None:
    """After a restart a broker may have less than its delayed fetch says (KIP-903)."""
    view = leader((1, 2))

    def fetched(offset: int, broker_epoch: int) -> bool:
        return view.fetched(
            2, offset=offset, log_start=0, leader_end=9, now_ms=0, broker_epoch=broker_epoch
        )

    assert fetched(3, 70)
    assert not fetched(9, 69)
    assert view.followers[2].log_end_offset == 3
    assert fetched(5, -1), "versions before 15 do not say"
    assert not fetched(5, 71), "its end has not moved"
    with pytest.raises(KeyError):
        view.fetched(9, offset=0, log_start=0, leader_end=0, now_ms=0)


def test_the_low_watermark_is_of_those_alive() -> None:
    """Deleted records are deleted where every replica on a live broker has deleted them."""
    view = leader()
    view.fetched(2, offset=9, log_start=4, leader_end=9, now_ms=0)
    view.fetched(3, offset=9, log_start=2, leader_end=9, now_ms=0)
    assert view.low_watermark(5, alive={1, 2, 3}) == 2
    assert view.low_watermark(5, alive={1, 2}) == 4
    assert view.low_watermark(3, alive={1}) == 3


def test_a_change_names_the_registrations_that_it_goes_by() -> None:
    """Those of the fetches before it, whatever registers later; not of followers that tell none."""
    view = leader((1, 2))
    fetch(view, 2, 10, end=10)
    view.fetched(3, offset=10, log_start=0, leader_end=10, now_ms=0, broker_epoch=41)
    change = view.wanted_expansion(3, high_watermark=10)
    assert change is not None
    view.fetched(3, offset=4, log_start=0, leader_end=10, now_ms=0, broker_epoch=42)
    assert change.broker_epochs == {3: 41}
