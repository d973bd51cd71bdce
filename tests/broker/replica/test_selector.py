"""Which replica a consumer is sent to: the rules of Kafka's rack-aware selector."""

from dataclasses import replace

import pytest

from barnabas_broker.cluster.image import PartitionState
from barnabas_broker.replica.isr import InSync, InSyncRules
from barnabas_broker.replica.selector import SELECTORS, Candidate, preferred, rack_aware
from barnabas_kafka.settings import broker as keys

LEADER = Candidate(1, "a", 100)
STATE = PartitionState(
    replicas=(1, 2, 3), isr=(1, 2, 3), leader=1, leader_epoch=5, controller_epoch=1
)
RACKS: dict[int, str | None] = {1: "a", 2: "b", 3: "b"}


@pytest.mark.parametrize(
    ("followers", "chosen"),
    [
        ([], 1),
        ([Candidate(2, "c", 100), Candidate(3, None, 100)], 1),
        ([Candidate(2, "b", 90)], 2),
        ([Candidate(2, "b", 90), Candidate(3, "b", 91)], 3),
        ([Candidate(2, "b", 90, 10), Candidate(3, "b", 90, 11)], 2),
        ([Candidate(2, "b", 90, 10), Candidate(3, "b", 90, 10)], 3),
    ],
)
def test_the_best_of_the_rack(followers: list[Candidate], chosen: int) -> None:
    """The longest log, then who had all last, then the highest number; else the leader."""
    assert rack_aware("b", LEADER, followers).broker == chosen


def test_the_leader_is_best_in_its_own_rack() -> None:
    """However many followers stand there too."""
    assert rack_aware("a", LEADER, [Candidate(2, "a", 100)]) is LEADER


def test_the_leader_selector_selects_the_leader() -> None:
    """It is what Kafka does without one."""
    assert SELECTORS[keys.READ_FROM_LEADER] is None
    assert SELECTORS[keys.READ_FROM_SAME_RACK] is rack_aware


def view(isr: tuple[int, ...] = (1, 2, 3)) -> InSync:
    """Broker 1 leads a log of 0 to 10; 2 and 3 have 2 to 8 and 4 to 10 of it."""
    in_sync = InSync(1, InSyncRules())
    in_sync.become(replace(STATE, isr=isr), log_end=0, now_ms=0)
    in_sync.fetched(2, offset=8, log_start=2, leader_end=10, now_ms=0)
    in_sync.fetched(3, offset=10, log_start=4, leader_end=10, now_ms=0)
    return in_sync


def choice(
    in_sync: InSync, offset: int, *, rack: str = "b", racks: dict[int, str | None] | None = None
) -> int | None:
    """Where a consumer is sent."""
    return preferred(
        rack_aware,
        rack,
        in_sync,
        leader=1,
        log_end=10,
        fetch_offset=offset,
        racks=RACKS if racks is None else racks,
        now_ms=5,
    )


@pytest.mark.parametrize(
    ("offset", "chosen"), [(1, None), (2, 2), (3, 2), (4, 3), (8, 3), (10, 3), (11, None)]
)
def test_a_follower_must_hold_the_offset(offset: int, chosen: int | None) -> None:
    """Between its log's start and its end, both included."""
    assert choice(view(), offset) == chosen


def test_a_follower_must_be_in_sync() -> None:
    """One that lags would hold up who reads from it."""
    assert choice(view(isr=(1, 2)), 4) == 2
    assert choice(view(isr=(1,)), 4) is None


def test_a_follower_must_be_within_reach() -> None:
    """Its broker is alive and has the consumer's listener."""
    assert choice(view(), 4, racks={1: "a", 2: "b"}) == 2
    assert choice(view(), 4, racks={1: "a"}) is None


def test_a_consumer_without_a_rack_stays_at_the_leader() -> None:
    """Brokers without a rack are not near to consumers without one."""
    assert choice(view(), 4, rack="", racks={1: "a", 2: "", 3: None}) is None
