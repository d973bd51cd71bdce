"""The rebalances that groups go through, each as a transcript in a file of its own.

`transcripts/` holds what is said and decided in each. After a change that is meant:

    python -m tests.broker.coordinator.group.test_rebalances
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from tests.broker.coordinator.group.rebalances import Classic, Modern, RebalanceScenario

TRANSCRIPTS = Path(__file__).parent / "transcripts"

Make = Callable[..., Any]


def two_join(make: Make) -> RebalanceScenario:
    """A member joins, and a second one."""
    rebalance = RebalanceScenario("Two readers join, one after the other", t=4)
    rebalance.enter(make(rebalance, "a", "t"))
    rebalance.pass_seconds(4)
    rebalance.who_reads()
    rebalance.enter(make(rebalance, "b", "t"))
    rebalance.pass_seconds(7)
    rebalance.who_reads()
    return rebalance


def one_leaves(make: Make) -> RebalanceScenario:
    """A member that is stopped leaves the group."""
    rebalance = RebalanceScenario("A reader leaves", t=4)
    pair(rebalance, make)
    rebalance.stop("b")
    rebalance.pass_seconds(4)
    rebalance.who_reads()
    return rebalance


def one_crashes(make: Make) -> RebalanceScenario:
    """One that says nothing is missed after its session."""
    rebalance = RebalanceScenario("A reader is killed", t=4)
    pair(rebalance, make)
    rebalance.kill("b")
    rebalance.pass_seconds(14)
    rebalance.who_reads()
    return rebalance


def a_topic_matches(make: Make) -> RebalanceScenario:
    """A topic that is new matches the expression of the members."""
    rebalance = RebalanceScenario("A new topic matches what the readers subscribe to", orders=2)
    for name in ("a", "b"):
        rebalance.enter(make(rebalance, name, pattern="orders.*"))
    rebalance.pass_seconds(7)
    rebalance.who_reads()
    rebalance.tell("Topic orders-eu of 2 partitions is created; other does not match.")
    rebalance.scenario.put_topic("orders-eu", 2)
    rebalance.scenario.put_topic("other", 2)
    rebalance.settle()
    rebalance.pass_seconds(7)
    rebalance.who_reads()
    return rebalance


def partitions_are_added(make: Make) -> RebalanceScenario:
    """A topic grows."""
    rebalance = RebalanceScenario("A topic is given more partitions", t=2)
    pair(rebalance, make)
    rebalance.tell("Topic t now has 4 partitions.")
    rebalance.scenario.put_topic("t", 4)
    rebalance.settle()
    rebalance.pass_seconds(7)
    rebalance.who_reads()
    return rebalance


def one_is_too_slow(make: Make) -> RebalanceScenario:
    """A member that does not poll in time leaves; what it commits later is refused."""
    rebalance = RebalanceScenario("A reader misses its poll interval", t=4)
    pair(rebalance, make)
    rebalance.poll("b", "t", own(rebalance, "b"), 10)
    rebalance.tell(
        "b works on them for longer than max.poll.interval.ms: its heartbeat thread leaves."
    )
    slow = rebalance.cast["b"]
    partition = own(rebalance, "b")
    slow.leave()
    slow.is_up = False
    rebalance.settle()
    rebalance.pass_seconds(4)
    rebalance.who_reads()
    rebalance.tell("b is done, and commits.")
    rebalance.commit("b", "t", partition)
    rebalance.tell("b polls again.")
    slow.is_up = True
    rebalance.settle()
    rebalance.pass_seconds(7)
    rebalance.who_reads()
    return rebalance


def read_twice(make: Make) -> RebalanceScenario:
    """A restart in which a record is read by one member, and again by another."""
    rebalance = RebalanceScenario("A record is read twice when a reader is restarted", t=4)
    pair(rebalance, make, "qms01", "qms02")
    partition = own(rebalance, "qms01")
    rebalance.poll("qms01", "t", partition, 5)
    rebalance.commit("qms01", "t", partition)
    rebalance.stop("qms01")
    rebalance.pass_seconds(4)
    rebalance.who_reads()
    rebalance.poll("qms02", "t", partition, 1)
    rebalance.tell("Before qms02 commits that by itself, qms01 is back.")
    again = make(rebalance, "qms01", "t")
    rebalance.enter(again)
    rebalance.pass_seconds(7)
    rebalance.who_reads()
    reader = next(each for each in rebalance.cast.values() if ("t", partition) in each.reads)
    rebalance.poll(reader.name, "t", partition, 1)
    rebalance.tell("Record 5 was read twice: offsets tell what was committed, not what was read.")
    return rebalance


def a_static_member_restarts(make: Make) -> RebalanceScenario:
    """A member with a name of its own comes back within its session without a rebalance."""
    rebalance = RebalanceScenario("A static reader is restarted", t=4)
    for name in ("a", "b"):
        rebalance.enter(make(rebalance, name, "t", instance=f"{name}-1"))
    rebalance.pass_seconds(7)
    rebalance.who_reads()
    rebalance.stop("b")
    rebalance.pass_seconds(4)
    rebalance.who_reads()
    rebalance.enter(make(rebalance, "b", "t", instance="b-1"), "b is back.")
    rebalance.pass_seconds(4)
    rebalance.who_reads()
    return rebalance


def a_static_member_has_a_twin(make: Make) -> RebalanceScenario:
    """Two with the same name of their own: one of them has to go."""
    rebalance = RebalanceScenario("A static reader has a twin", t=4)
    rebalance.enter(make(rebalance, "a", "t", instance="one"))
    rebalance.pass_seconds(4)
    rebalance.who_reads()
    rebalance.enter(make(rebalance, "twin", "t", instance="one"))
    rebalance.pass_seconds(7)
    rebalance.who_reads()
    return rebalance


def the_leader_dies(make: Make) -> RebalanceScenario:
    """The leader joins, and does not live to hand out the assignment."""
    rebalance = RebalanceScenario(
        "The leader dies between joining and handing out the assignment", t=4
    )
    pair(rebalance, make)
    leader = rebalance.cast["a"]
    leader.syncs = False  # type: ignore[attr-defined]
    rebalance.enter(make(rebalance, "c", "t"))
    rebalance.pass_seconds(3)
    rebalance.kill("a")
    rebalance.pass_seconds(17)
    rebalance.who_reads()
    return rebalance


def cooperative(make: Make) -> RebalanceScenario:
    """Only what has to change hands is given up, in a second generation."""
    rebalance = RebalanceScenario("Cooperative readers give up no more than they have to", t=6)

    def calm(name: str) -> Any:
        return make(rebalance, name, "t", assignor="cooperative-sticky")

    for name in ("a", "b"):
        rebalance.enter(calm(name))
        rebalance.pass_seconds(7)
    rebalance.who_reads()
    rebalance.enter(calm("c"))
    rebalance.pass_seconds(7)
    rebalance.who_reads()
    rebalance.stop("a")
    rebalance.pass_seconds(7)
    rebalance.who_reads()
    return rebalance


def rolling(_: Make) -> RebalanceScenario:
    """From one protocol to the other and back, reader by reader."""
    rebalance = RebalanceScenario("Readers roll to the consumer protocol and back", t=4)

    def old(name: str) -> Classic:
        return Classic(rebalance, name, "t", assignor="cooperative-sticky")

    for name in ("a", "b"):
        rebalance.enter(old(name))
        rebalance.pass_seconds(7)
    rebalance.who_reads()
    for name in ("a", "b"):
        rebalance.stop(name)
        rebalance.enter(Modern(rebalance, name, "t"), f"{name} starts, with the consumer protocol.")
        rebalance.pass_seconds(7)
        rebalance.who_reads()
    for name in ("a", "b"):
        rebalance.stop(name)
        rebalance.enter(old(name), f"{name} starts, with the classic protocol.")
        rebalance.pass_seconds(7)
        rebalance.who_reads()
    return rebalance


def pair(rebalance: RebalanceScenario, make: Make, *names: str) -> None:
    """Two readers share t."""
    for name in names or ("a", "b"):
        rebalance.enter(make(rebalance, name, "t"))
    rebalance.pass_seconds(7)
    rebalance.who_reads()


def own(rebalance: RebalanceScenario, name: str) -> int:
    """The last partition that a reader reads."""
    return max(number for _, number in rebalance.cast[name].reads)


BOTH = (
    two_join,
    one_leaves,
    one_crashes,
    a_topic_matches,
    partitions_are_added,
    one_is_too_slow,
    read_twice,
    a_static_member_restarts,
    a_static_member_has_a_twin,
)
OF_THE_CLASSIC = (the_leader_dies, cooperative)
PLAYS: dict[str, Callable[[], RebalanceScenario]] = {
    **{f"{one.__name__}-classic": partial(one, Classic) for one in (*BOTH, *OF_THE_CLASSIC)},
    **{f"{one.__name__}-consumer": partial(one, Modern) for one in BOTH},
    "rolling": partial(rolling, Classic),
}


@pytest.mark.parametrize("name", PLAYS)
def test_it_goes_as_written(name: str) -> None:
    """Word for word; the file is what people read who want to know what happens."""
    written = (TRANSCRIPTS / f"{name}.txt").read_text("utf-8")
    assert PLAYS[name]().transcript == written


def test_every_transcript_has_its_play() -> None:
    """Nothing is left over."""
    assert {each.stem for each in TRANSCRIPTS.glob("*.txt")} == set(PLAYS)


if __name__ == "__main__":
    TRANSCRIPTS.mkdir(exist_ok=True)
    for title, written_by in PLAYS.items():
        (TRANSCRIPTS / f"{title}.txt").write_text(written_by().transcript, "utf-8")
