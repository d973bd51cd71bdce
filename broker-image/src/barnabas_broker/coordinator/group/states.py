"""The states of a group, what each answers, and which event leads from one to another."""

from enum import Enum
from typing import Final

from barnabas_broker.invariants import violated


class GroupState(Enum):
    """What a group is doing; the values are the names that DescribeGroups and ListGroups show."""

    EMPTY = "Empty"
    """No members; offsets may remain.

    Action: joins of new members begin a rebalance; other members' requests are answered
    UNKNOWN_MEMBER_ID; commits without a generation and deletion are accepted; offsets expire.
    Transition: a member joins: PREPARING_REBALANCE; the last offset goes or the group is deleted:
    DEAD.
    """

    PREPARING_REBALANCE = "PreparingRebalance"
    """Members are called together.

    Action: joins are parked; heartbeats, SyncGroup are answered REBALANCE_IN_PROGRESS; commits of
    the generation before are accepted.
    Transition: all members have joined, or the rebalance timeout is over: COMPLETING_REBALANCE,
    with those that joined; none is left: EMPTY.
    """

    COMPLETING_REBALANCE = "CompletingRebalance"
    """The leader computes the assignment.

    Action: SyncGroup of followers is parked; heartbeats are answered without error; commits are
    answered REBALANCE_IN_PROGRESS; a member that joins again with the same metadata receives the
    generation once more.
    Transition: the leader's assignment is durable: STABLE; a member joins, leaves or fails, the
    write fails, or a member does not sync in time: PREPARING_REBALANCE.
    """

    STABLE = "Stable"
    """Every member knows what it reads.

    Action: SyncGroup is answered with the assignment; a follower that joins again with the same
    metadata receives the generation; offsets of topics without a subscriber expire.
    Transition: a member joins, leaves, fails or changes its metadata, or the leader joins again:
    PREPARING_REBALANCE.
    """

    DEAD = "Dead"
    """The group is no more, and never comes back; another may take its name.

    Action: none; this object is out of the coordinator's reach, DescribeGroups shows this state
    of groups that do not exist.
    Transition: none.
    """


class GroupEvent(Enum):
    """What moves a group from one state into another."""

    REBALANCE_BEGUN = "a rebalance begins"
    MEMBERS_JOINED = "the joined members are the next generation"
    NO_MEMBER_JOINED = "no member has joined"
    GENERATION_WRITTEN = "a record of the group with its members and their assignment counts"
    EMPTY_WRITTEN = "a record of the group without members counts"
    ENDED = "the record says that there is no such group"


_S, _E = GroupState, GroupEvent
_LIVING = (_S.EMPTY, _S.PREPARING_REBALANCE, _S.COMPLETING_REBALANCE, _S.STABLE)

NEXT: Final[dict[tuple[GroupState, GroupEvent], GroupState]] = {
    (_S.EMPTY, _E.REBALANCE_BEGUN): _S.PREPARING_REBALANCE,
    (_S.COMPLETING_REBALANCE, _E.REBALANCE_BEGUN): _S.PREPARING_REBALANCE,
    (_S.STABLE, _E.REBALANCE_BEGUN): _S.PREPARING_REBALANCE,
    (_S.PREPARING_REBALANCE, _E.MEMBERS_JOINED): _S.COMPLETING_REBALANCE,
    (_S.PREPARING_REBALANCE, _E.NO_MEMBER_JOINED): _S.EMPTY,
    # What is written counts in whatever state it finds the group: when a log is read, records
    # follow each other without what led to them.
    **{(state, _E.GENERATION_WRITTEN): _S.STABLE for state in _LIVING},
    **{(state, _E.EMPTY_WRITTEN): _S.EMPTY for state in _LIVING},
    **{(state, _E.ENDED): _S.DEAD for state in _LIVING},
}
"""The state after each event. An event that is not listed for a state cannot happen in it."""


def following(state: GroupState, event: GroupEvent) -> GroupState:
    """The state that an event leads to; one that is not listed fails."""
    after = NEXT.get((state, event))
    assert after is not None, violated(f"in state {state.value} it cannot be that {event.value}")
    return after


# A tuple is looked through by identity; an enum's members are hashed by a call of their own.
_MAY_REBALANCE: Final = tuple(
    state for state in GroupState if (state, GroupEvent.REBALANCE_BEGUN) in NEXT
)


def may_rebalance(state: GroupState) -> bool:
    """Whether a rebalance can begin in this state."""
    return state in _MAY_REBALANCE
