"""Who is elected, who stays in sync, and when nobody can lead."""

import pytest

from barnabas_broker.controller.elections import (
    LiveBrokers,
    elect_for_reassignment,
    elect_for_shutdown,
    elect_offline,
    elect_preferred,
    first_leader,
    settle,
    unseen_restarts,
    without_replica,
)
from barnabas_broker.zk.znodes import LeaderAndIsr


def test_the_preferred_replica_leads_a_new_partition() -> None:
    """All replicas of an empty log are in sync."""
    assert first_leader((2, 1), controller_epoch=5) == LeaderAndIsr(2, 0, (2, 1), 5)
    assert first_leader((), controller_epoch=5).leader == -1


@pytest.mark.parametrize(
    ("state", "live", "unclean", "expected"),
    [
        (LeaderAndIsr(1, 4, (1, 2, 3), 1), {1, 2, 3}, False, None),
        (LeaderAndIsr(1, 4, (1, 2, 3), 1), {1, 3}, False, (1, (1, 3))),
        (LeaderAndIsr(1, 4, (1, 2, 3), 1), {3, 2}, False, (2, (2, 3))),
        (LeaderAndIsr(1, 4, (1, 3), 1), {2}, False, (-1, (1, 3))),
        (LeaderAndIsr(1, 4, (1, 3), 1), {2}, True, (2, (2,))),
        (LeaderAndIsr(-1, 4, (1, 3), 1), {2}, False, None),
        (LeaderAndIsr(-1, 4, (1, 3), 1), {2, 3}, False, (3, (3,))),
    ],
)
def test_a_partition_is_elected_from_its_live_replicas(
    state: LeaderAndIsr,
    live: set[int],
    unclean: bool,
    expected: tuple[int, tuple[int, ...]] | None,
) -> None:
    """Without a leader it waits, and remembers who was in sync; what is in order stays."""
    settled = settle((1, 2, 3), state, LiveBrokers(live), unclean=unclean, controller_epoch=2)
    if expected is None:
        assert settled is None
    else:
        assert settled is not None
        assert (settled.leader, settled.isr) == expected
        assert (settled.leader_epoch, settled.controller_epoch) == (5, 2)


def test_a_restarted_replica_leaves_the_isr() -> None:
    """It leaves the in-sync replicas; alone among them it leads on, in a new epoch (KIP-380)."""

    def settled(
        leader: int, isr: tuple[int, ...], restarted: set[int], live: tuple[int, ...] = (1, 2)
    ) -> LeaderAndIsr | None:
        state = LeaderAndIsr(leader, 4, isr, 1)
        present = LiveBrokers(live, restarted=restarted)
        return settle((1, 2), state, present, unclean=False, controller_epoch=2)

    assert settled(1, (1, 2), {1}) == LeaderAndIsr(2, 5, (2,), 2)
    assert settled(1, (1, 2), {2}) == LeaderAndIsr(1, 5, (1,), 2)
    assert settled(1, (1,), {1}) == LeaderAndIsr(1, 5, (1,), 2)
    assert settled(1, (1, 2), {1}, live=(1,)) == LeaderAndIsr(1, 5, (1,), 2)
    assert settled(1, (1, 2), {1, 2}) == LeaderAndIsr(1, 5, (1, 2), 2)
    assert settled(1, (1,), {2}) is None


@pytest.mark.parametrize(
    ("leader", "isr", "unclean_shutdowns", "live", "unclean", "expected"),
    [
        (1, (1, 2), {1}, {1, 2}, False, (2, (2,))),
        (1, (1, 2), {2}, {1, 2}, False, (1, (1,))),
        (1, (1, 2), {1}, {1}, False, (-1, (2,))),
        (1, (1, 2), {1}, {1}, True, (1, (1,))),
        (-1, (1, 2), {1}, {1}, False, (-1, (2,))),
        (-1, (2,), {1}, {1}, False, None),
        (1, (1,), {1}, {1, 2}, False, (1, (1,))),
        (1, (1, 2), {1, 2}, {1, 2}, False, (1, (1, 2))),
    ],
)
def test_a_replica_with_an_unclean_shutdown_leaves_the_isr(
    leader: int,
    isr: tuple[int, ...],
    unclean_shutdowns: set[int],
    live: set[int],
    unclean: bool,
    expected: tuple[int, tuple[int, ...]] | None,
) -> None:
    """Also where who is left is away: then they are waited for. Nobody leaves where all would."""
    present = LiveBrokers(live, restarted=unclean_shutdowns, unclean_shutdowns=unclean_shutdowns)
    state = LeaderAndIsr(leader, 4, isr, 1)
    settled = settle((1, 2), state, present, unclean=unclean, controller_epoch=2)
    assert (None if settled is None else (settled.leader, settled.isr)) == expected


def test_a_replica_that_caught_up_stays_in_the_isr() -> None:
    """Only a registration is an occasion to leave."""
    state = LeaderAndIsr(1, 4, (1, 2), 1)
    present = LiveBrokers({1, 2}, unclean_shutdowns={1, 2})
    assert settle((1, 2), state, present, unclean=False, controller_epoch=2) is None


@pytest.mark.parametrize(
    ("leader", "written", "unclean_shutdowns", "restarted"),
    [
        (1, 12, (), set()),
        (1, 10, (), {1}),
        (1, 12, {2}, {2}),
        (1, 10, {2}, {1, 2}),
        (1, 12, {1}, {1}),
        (-1, 12, {1, 2}, {1, 2}),
        (3, 9, (), set()),
    ],
)
def test_a_controller_that_was_not_there_knows_restarts_by_what_is_on_record(
    leader: int, written: int, unclean_shutdowns: set[int], restarted: set[int]
) -> None:
    """Its registration is younger than the state, or says that it was not stopped in order.

    The latter also where the state is younger: its writer may not have known the registration.
    """
    registered = {1: 11, 2: 8}
    assert (
        unseen_restarts(leader, written, registered=registered, unclean_shutdowns=unclean_shutdowns)
        == restarted
    )


def test_a_broker_that_is_stopping_leads_on_but_is_not_elected() -> None:
    """It keeps what nobody else can lead, until it is gone."""
    stopping = LiveBrokers({1, 2}, stopping={2})
    led_by_2 = LeaderAndIsr(2, 4, (2,), 1)
    assert settle((1, 2), led_by_2, stopping, unclean=True, controller_epoch=2) is None
    without = LeaderAndIsr(-1, 4, (2,), 1)
    assert settle((1, 2), without, stopping, unclean=False, controller_epoch=2) is None


LED_BY_1 = LeaderAndIsr(1, 4, (1, 2, 3), 1)


@pytest.mark.parametrize(
    ("isr", "live", "unclean", "expected"),
    [
        ((1, 2, 3), {2, 3}, False, (2, (2, 3), False)),
        ((1, 3, 2), {2, 3}, True, (2, (3, 2), False)),
        ((1, 3), {2, 3}, True, (3, (3,), False)),
        ((1,), {2, 3}, False, None),
        ((1,), {3, 2}, True, (2, (2,), True)),
        ((1,), set(), True, None),
    ],
)
def test_an_unclean_leader_is_elected_only_if_enabled_and_the_isr_is_offline(
    isr: tuple[int, ...],
    live: set[int],
    unclean: bool,
    expected: tuple[int, tuple[int, ...], bool] | None,
) -> None:
    """In-sync replicas come first, in the order of preference; an unclean leader must recover."""
    elected = elect_offline(
        (1, 2, 3), LeaderAndIsr(1, 4, isr, 1), live=live, unclean=unclean, controller_epoch=2
    )
    if expected is None:
        assert elected is None
    else:
        leader, in_sync, recovering = expected
        assert elected == LeaderAndIsr(leader, 5, in_sync, 2, recovering)


def test_the_preferred_leader_is_the_first_replica_or_none() -> None:
    """In-sync replicas stay as they are; a first replica that is behind or away does not lead."""
    led_by_2 = LeaderAndIsr(2, 4, (3, 2, 1), 1)
    elected = elect_preferred((1, 2, 3), led_by_2, live={1, 2, 3}, controller_epoch=2)
    assert elected == LeaderAndIsr(1, 5, (3, 2, 1), 2)
    assert elect_preferred((1, 2, 3), led_by_2, live={2, 3}, controller_epoch=2) is None
    behind = LeaderAndIsr(2, 4, (3, 2), 1)
    assert elect_preferred((1, 2, 3), behind, live={1, 2, 3}, controller_epoch=2) is None


def test_a_reassignment_elects_among_its_targets() -> None:
    """The first of them that is alive and in sync; without one the leader stays."""
    state = LeaderAndIsr(1, 4, (1, 2, 5, 4), 1)
    elected = elect_for_reassignment((6, 5, 4), state, live={1, 4, 5, 6}, controller_epoch=2)
    assert elected == LeaderAndIsr(5, 5, (1, 2, 5, 4), 2)
    assert elect_for_reassignment((6,), state, live={1, 4, 5, 6}, controller_epoch=2) is None


def test_a_broker_that_stops_hands_over_to_one_that_stays() -> None:
    """All that are stopping leave the in-sync replicas; the last one in sync goes on leading."""
    elected = elect_for_shutdown(
        (1, 2, 3), LED_BY_1, live={1, 2, 3}, stopping={1, 2}, controller_epoch=2
    )
    assert elected == LeaderAndIsr(3, 5, (3,), 2)
    alone = LeaderAndIsr(1, 4, (1,), 1)
    stopped = elect_for_shutdown((1, 2), alone, live={1, 2}, stopping={1}, controller_epoch=2)
    assert stopped is None


def test_a_replica_that_went_offline_leaves_the_in_sync_replicas_unless_it_is_the_last() -> None:
    """A leader that went leaves none; whoever was not in sync changes nothing."""
    assert without_replica(LED_BY_1, 3, controller_epoch=2) == LeaderAndIsr(1, 5, (1, 2), 2)
    assert without_replica(LED_BY_1, 1, controller_epoch=2) == LeaderAndIsr(-1, 5, (2, 3), 2)
    last = LeaderAndIsr(1, 4, (1,), 1)
    assert without_replica(last, 1, controller_epoch=2) == LeaderAndIsr(-1, 5, (1,), 2)
    assert without_replica(last, 2, controller_epoch=2) is None
