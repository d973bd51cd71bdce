"""Plans of moves: what holds of every one, and how little moves."""

from collections import Counter
from collections.abc import Callable, Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from barnabas_kafka.ids import TopicPartition
from barnabas_kafka.reassignment.planning import (
    Plan,
    PlanError,
    Racks,
    balanced,
    drained,
    extended,
    refactored,
)
from barnabas_kafka.reassignment.throttles import (
    FOLLOWER_REPLICAS,
    LEADER_REPLICAS,
    moves,
    throttled_brokers,
    throttled_replicas,
)

# How quick this is depends on what else runs on the machine.

Placed = dict[TopicPartition, tuple[int, ...]]


@st.composite
def clusters(draw: st.DrawFn, *, racked: bool = False, even: bool = False) -> tuple[Placed, Racks]:
    """Any layout on any brokers, racks put right or not; `even` racks have as many brokers."""
    if racked:
        sizes = draw(st.lists(st.integers(1, 3), min_size=1, max_size=4))
        if even:
            sizes = [sizes[0]] * len(sizes)
        names = [f"rack-{rack}" for rack, size in enumerate(sizes) for _ in range(size)]
        racks: Racks = dict(enumerate(names))
    else:
        racks = dict.fromkeys(range(draw(st.integers(1, 7))))
    factors = st.integers(1, min(4, len(racks)))
    order = st.permutations(sorted(racks))
    replicas = st.tuples(order, factors).map(lambda drawn: tuple(drawn[0][: drawn[1]]))
    placed = draw(st.lists(replicas, min_size=1, max_size=24))
    names_of = draw(st.lists(st.sampled_from("ab"), min_size=len(placed), max_size=len(placed)))
    layout = {TopicPartition(names_of[n], n): each for n, each in enumerate(placed)}
    return layout, racks


def loads(layout: Mapping[TopicPartition, tuple[int, ...]], racks: Racks) -> list[int]:
    """How many replicas each living broker has, ascending."""
    counts = Counter(broker for replicas in layout.values() for broker in replicas)
    return sorted(counts[broker] for broker in racks)


def leading(layout: Placed, racks: Racks) -> list[int]:
    """How many partitions prefer each living broker, ascending."""
    counts = Counter(replicas[0] for replicas in layout.values())
    return sorted(counts[broker] for broker in racks)


def moved(before: Placed, after: Placed) -> int:
    """How many replicas have to be copied."""
    return sum(len(set(after[tp]) - set(before[tp])) for tp in before)


def surplus(before: Placed, racks: Racks) -> int:
    """How many replicas must move at least for loads that differ by one: those over the shares."""
    have = loads(before, racks)
    share, more = divmod(sum(have), len(have))
    shares = [share] * (len(have) - more) + [share + 1] * more
    return sum(max(0, load - wanted) for load, wanted in zip(have, shares, strict=True))


def spread_well(replicas: tuple[int, ...], racks: Racks) -> bool:
    """Whether no other choice of brokers would lie in racks more evenly."""
    counts = Counter(racks[broker] for broker in replicas)
    sizes = Counter(racks.values())
    room = [counts[rack] for rack in sizes if counts[rack] < sizes[rack]]
    return not room or max(counts.values()) <= min(room) + 1


def check(before: Placed, plan: Plan) -> Placed:
    """The layout after a plan, of which it names what changes and nothing else."""
    assert all(before[tp] != replicas for tp, replicas in plan.items())
    after = before | plan
    assert after.keys() == before.keys()
    assert all(len(set(replicas)) == len(replicas) for replicas in after.values())
    return after


@given(clusters())
def test_balance_without_racks(drawn: tuple[Placed, Racks]) -> None:
    """Loads differ by one, and no fewer moves would have made them so."""
    before, racks = drawn
    after = check(before, balanced(before, racks))
    assert all(len(after[tp]) == len(before[tp]) for tp in before)
    have = loads(after, racks)
    assert have[-1] - have[0] <= 1
    assert moved(before, after) == surplus(before, racks)
    assert balanced(after, racks) == {}


@given(clusters(racked=True))
def test_balance_with_racks(drawn: tuple[Placed, Racks]) -> None:
    """Every partition lies in as many racks as it can; a second look finds nothing to do."""
    before, racks = drawn
    after = check(before, balanced(before, racks))
    assert all(spread_well(replicas, racks) for replicas in after.values())
    assert balanced(after, racks) == {}


@given(clusters(racked=True, even=True))
def test_balance_with_racks_of_one_size(drawn: tuple[Placed, Racks]) -> None:
    """Loads differ by one whatever the layout was: racks do not stand in the way."""
    before, racks = drawn
    have = loads(check(before, balanced(before, racks)), racks)
    assert have[-1] - have[0] <= 1


@given(st.integers(1, 6), st.integers(1, 20), st.integers(0, 10**6))
def test_leaders_of_topics_that_lie_everywhere(brokers: int, count: int, start: int) -> None:
    """Where any broker can lead any partition, the numbers of leaders differ by one."""
    racks = dict.fromkeys(range(brokers))
    everywhere = list(range(brokers))
    first = start % brokers
    order = tuple(everywhere[first:] + everywhere[:first])
    before = {TopicPartition("t", number): order for number in range(count)}
    after = check(before, balanced(before, racks))
    assert moved(before, after) == 0
    have = leading(after, racks)
    assert have[-1] - have[0] <= 1


@given(clusters())
def test_an_added_broker_gets_the_surplus_and_no_more(drawn: tuple[Placed, Racks]) -> None:
    """From a balanced layout it takes its share; nothing moves to any other broker."""
    layout, racks = drawn
    before = layout | balanced(layout, racks)
    new = len(racks)
    grown = dict.fromkeys(range(new + 1))
    after = check(before, extended(before, grown, [new]))
    assert all(set(after[tp]) - set(before[tp]) <= {new} for tp in before)
    assert moved(before, after) == surplus(before, grown)
    assert sum(new in replicas for replicas in after.values()) == min(
        len(before), sum(map(len, before.values())) // (new + 1)
    )
    have = loads(after, grown)
    assert have[-1] - have[0] <= 1


@given(clusters(racked=True), st.data())
def test_a_drained_broker_is_empty(drawn: tuple[Placed, Racks], data: st.DataObject) -> None:
    """Only what was on it moves, into its place, and into another rack where it can."""
    before, racks = drawn
    leaving = data.draw(st.sampled_from(sorted(racks)))
    try:
        plan = drained(before, racks, [leaving], share_racks=True)
    except PlanError:
        assert any(len(it) == len(racks) for it in before.values() if leaving in it)
        return
    after = check(before, plan)
    assert not any(leaving in replicas for replicas in after.values())
    assert moved(before, after) == sum(leaving in replicas for replicas in before.values())
    for tp, replicas in before.items():
        assert set(replicas) - {leaving} <= set(after[tp])
        if replicas[0] != leaving:
            kept = [broker for broker in after[tp] if broker in replicas]
            assert kept == [broker for broker in replicas if broker != leaving]
            assert after[tp][0] == replicas[0]
    left = {broker: rack for broker, rack in racks.items() if broker != leaving}
    for tp, replicas in before.items():
        if leaving in replicas:
            others = {racks[broker] for broker in replicas if broker != leaving}
            reachable = min(len(others) + 1, len(set(left.values())))
            assert len({racks[broker] for broker in after[tp]}) >= reachable


@given(clusters(), st.integers(1, 7))
def test_a_factor_is_reached_by_adding_or_taking(drawn: tuple[Placed, Racks], factor: int) -> None:
    """No replica that stays is moved, and the preferred leader is the same."""
    before, racks = drawn
    if factor > len(racks):
        with pytest.raises(PlanError, match=f"is to have {factor} replicas; brokers for them"):
            refactored(before, racks, factor)
        return
    after = check(before, refactored(before, racks, factor))
    for tp, replicas in before.items():
        assert len(after[tp]) == factor
        assert after[tp][0] == replicas[0]
        if len(replicas) <= factor:
            assert after[tp][: len(replicas)] == replicas
        else:
            assert set(after[tp]) < set(replicas)


@given(clusters(racked=True))
def test_two_replicas_more_stay_apart(drawn: tuple[Placed, Racks]) -> None:
    """A factor that all racks together can carry puts one replica into each."""
    before, racks = drawn
    single = {tp: replicas[:1] for tp, replicas in before.items()}
    factor = len(set(racks.values()))
    after = check(single, refactored(single, racks, factor))
    assert all(len({racks[each] for each in replicas}) == factor for replicas in after.values())


def layout(*replicas: tuple[int, ...]) -> Placed:
    """Partitions of one topic."""
    return {TopicPartition("t", number): each for number, each in enumerate(replicas)}


def test_a_chain_of_moves_where_racks_forbid_the_direct_one() -> None:
    """Broker 0 is full, broker 3 empty, and all that 0 has already lies in 3's rack."""
    racks = {0: "a", 1: "b", 2: "a", 3: "b"}
    before = layout((0, 1), (0, 1), (0, 1), (2, 1))
    after = before | balanced(before, racks)
    assert loads(after, racks) == [2, 2, 2, 2]
    assert all(len({racks[each] for each in replicas}) == 2 for replicas in after.values())


def test_a_broker_that_does_not_run() -> None:
    """It can be drained, and it stands in the way of a balance; the racks it had are unknown."""
    before = layout((0, 9), (9, 1))
    racks = {0: "a", 1: "b", 2: "c"}
    with pytest.raises(PlanError, match="broker 9 has replicas and does not run"):
        balanced(before, racks)
    after = before | drained(before, racks, [9])
    assert not any(9 in replicas for replicas in after.values())
    assert refactored(layout((9, 0)), racks, 1) == layout((0,))


@pytest.mark.parametrize(
    ("plan", "reported"),
    [
        (lambda: drained(layout((0, 1)), {0: None, 1: None}, [1]), "brokers for them: 1"),
        (
            lambda: drained(layout((0, 1)), {0: "a", 1: "b", 2: "a"}, [1]),
            "not enough racks: 1",
        ),
        (lambda: drained(layout((0, 1)), {0: None, 1: None}, [7]), "there is no broker 7"),
        (lambda: extended(layout((0,)), {0: None}, [1]), "there is no broker 1"),
        (lambda: balanced(layout((0,)), {0: None, 1: "a"}), "broker 0 has no rack"),
        (lambda: refactored(layout((0,)), {0: None}, 0), "one replica at least"),
    ],
)
def test_impossible_plans_are_refused(plan: Callable[[], Plan], reported: str) -> None:
    """The reason names brokers, partitions and racks."""
    with pytest.raises(PlanError, match=reported):
        plan()


def test_topics_are_shared_out_too() -> None:
    """Of two that could move, the one goes of whose topic the broker has more."""
    before = {
        TopicPartition("a", 0): (0,), TopicPartition("b", 0): (0,), TopicPartition("b", 1): (0,),
        TopicPartition("a", 1): (1,),
    }  # fmt: skip
    racks = dict.fromkeys((0, 1))
    assert balanced(before, racks) == {TopicPartition("b", 0): (1,)}


A0, A1, B0 = TopicPartition("a", 0), TopicPartition("a", 1), TopicPartition("b", 0)


def test_old_replicas_send_and_new_ones_fetch() -> None:
    """Any old replica may lead meanwhile; one that stays does not fetch."""
    moving = moves({A0: (1, 0), A1: (2,), B0: (0, 1)}, {A0: (1, 3), A1: (0, 2), B0: (0,)})
    assert throttled_replicas(moving) == {
        "a": {LEADER_REPLICAS: "0:0,0:1,1:2", FOLLOWER_REPLICAS: "0:3,1:0"},
        "b": {LEADER_REPLICAS: "0:0,0:1"},
    }
    assert throttled_brokers(moving.values()) == [0, 1, 2, 3]
