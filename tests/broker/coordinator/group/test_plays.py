"""The rebalances that groups go through, each as a play in a file of its own.

`transcripts/` holds what is said and decided in each. After a change that is meant:

    python -m tests.broker.coordinator.group.test_plays
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from tests.broker.coordinator.group.plays import Classic, Modern, Play

TRANSCRIPTS = Path(__file__).parent / "transcripts"

Make = Callable[..., Any]


def two_join(make: Make) -> Play:
    """A member joins, and a second one."""
    play = Play("Two readers join, one after the other", t=4)
    play.enter(make(play, "a", "t"))
    play.pass_seconds(4)
    play.who_reads()
    play.enter(make(play, "b", "t"))
    play.pass_seconds(7)
    play.who_reads()
    return play


def one_leaves(make: Make) -> Play:
    """A member that is stopped says so."""
    play = Play("A reader leaves", t=4)
    pair(play, make)
    play.stop("b")
    play.pass_seconds(4)
    play.who_reads()
    return play


def one_crashes(make: Make) -> Play:
    """One that says nothing is missed after its session."""
    play = Play("A reader is killed", t=4)
    pair(play, make)
    play.kill("b")
    play.pass_seconds(14)
    play.who_reads()
    return play


def a_topic_matches(make: Make) -> Play:
    """A topic that is new matches the expression of the members."""
    play = Play("A new topic matches what the readers subscribe to", orders=2)
    for name in ("a", "b"):
        play.enter(make(play, name, pattern="orders.*"))
    play.pass_seconds(7)
    play.who_reads()
    play.tell("Topic orders-eu of 2 partitions is created; other does not match.")
    play.story.put_topic("orders-eu", 2)
    play.story.put_topic("other", 2)
    play.settle()
    play.pass_seconds(7)
    play.who_reads()
    return play


def partitions_are_added(make: Make) -> Play:
    """A topic grows."""
    play = Play("A topic is given more partitions", t=2)
    pair(play, make)
    play.tell("Topic t now has 4 partitions.")
    play.story.put_topic("t", 4)
    play.settle()
    play.pass_seconds(7)
    play.who_reads()
    return play


def one_is_too_slow(make: Make) -> Play:
    """A member that does not poll in time leaves; what it commits later is refused."""
    play = Play("A reader misses its poll interval", t=4)
    pair(play, make)
    play.poll("b", "t", own(play, "b"), 10)
    play.tell("b works on them for longer than max.poll.interval.ms: its heartbeat thread leaves.")
    slow = play.cast["b"]
    partition = own(play, "b")
    slow.leave()
    slow.is_up = False
    play.settle()
    play.pass_seconds(4)
    play.who_reads()
    play.tell("b is done, and commits.")
    play.commit("b", "t", partition)
    play.tell("b polls again.")
    slow.is_up = True
    play.settle()
    play.pass_seconds(7)
    play.who_reads()
    return play


def read_twice(make: Make) -> Play:
    """A restart in which a record is read by one member, and again by another."""
    play = Play("A record is read twice when a reader is restarted", t=4)
    pair(play, make, "qms01", "qms02")
    partition = own(play, "qms01")
    play.poll("qms01", "t", partition, 5)
    play.commit("qms01", "t", partition)
    play.stop("qms01")
    play.pass_seconds(4)
    play.who_reads()
    play.poll("qms02", "t", partition, 1)
    play.tell("Before qms02 commits that by itself, qms01 is back.")
    again = make(play, "qms01", "t")
    play.enter(again)
    play.pass_seconds(7)
    play.who_reads()
    reader = next(each for each in play.cast.values() if ("t", partition) in each.reads)
    play.poll(reader.name, "t", partition, 1)
    play.tell("Record 5 was read twice: offsets tell what was committed, not what was read.")
    return play


def a_static_member_restarts(make: Make) -> Play:
    """A member with a name of its own comes back within its session, and nobody notices."""
    play = Play("A static reader is restarted", t=4)
    for name in ("a", "b"):
        play.enter(make(play, name, "t", instance=f"{name}-1"))
    play.pass_seconds(7)
    play.who_reads()
    play.stop("b")
    play.pass_seconds(4)
    play.who_reads()
    play.enter(make(play, "b", "t", instance="b-1"), "b is back.")
    play.pass_seconds(4)
    play.who_reads()
    return play


def a_static_member_has_a_twin(make: Make) -> Play:
    """Two with the same name of their own: one of them has to go."""
    play = Play("A static reader has a twin", t=4)
    play.enter(make(play, "a", "t", instance="one"))
    play.pass_seconds(4)
    play.who_reads()
    play.enter(make(play, "twin", "t", instance="one"))
    play.pass_seconds(7)
    play.who_reads()
    return play


def the_leader_dies(make: Make) -> Play:
    """The leader joins, and does not live to hand out the assignment."""
    play = Play("The leader dies between joining and handing out the assignment", t=4)
    pair(play, make)
    leader = play.cast["a"]
    leader.syncs = False  # type: ignore[attr-defined]
    play.enter(make(play, "c", "t"))
    play.pass_seconds(3)
    play.kill("a")
    play.pass_seconds(17)
    play.who_reads()
    return play


def cooperative(make: Make) -> Play:
    """Only what has to change hands is given up, in a second generation."""
    play = Play("Cooperative readers give up no more than they have to", t=6)

    def calm(name: str) -> Any:
        return make(play, name, "t", assignor="cooperative-sticky")

    for name in ("a", "b"):
        play.enter(calm(name))
        play.pass_seconds(7)
    play.who_reads()
    play.enter(calm("c"))
    play.pass_seconds(7)
    play.who_reads()
    play.stop("a")
    play.pass_seconds(7)
    play.who_reads()
    return play


def rolling(_: Make) -> Play:
    """From one protocol to the other and back, reader by reader."""
    play = Play("Readers roll to the consumer protocol and back", t=4)

    def old(name: str) -> Classic:
        return Classic(play, name, "t", assignor="cooperative-sticky")

    for name in ("a", "b"):
        play.enter(old(name))
        play.pass_seconds(7)
    play.who_reads()
    for name in ("a", "b"):
        play.stop(name)
        play.enter(Modern(play, name, "t"), f"{name} starts, with the consumer protocol.")
        play.pass_seconds(7)
        play.who_reads()
    for name in ("a", "b"):
        play.stop(name)
        play.enter(old(name), f"{name} starts, with the classic protocol.")
        play.pass_seconds(7)
        play.who_reads()
    return play


def pair(play: Play, make: Make, *names: str) -> None:
    """Two readers share t."""
    for name in names or ("a", "b"):
        play.enter(make(play, name, "t"))
    play.pass_seconds(7)
    play.who_reads()


def own(play: Play, name: str) -> int:
    """The last partition that a reader reads."""
    return max(number for _, number in play.cast[name].reads)


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
PLAYS: dict[str, Callable[[], Play]] = {
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
