"""The states of a group, what each answers, and where each may lead."""

from enum import Enum
from typing import Final


class GroupState(Enum):
    """What a group is doing; the values are the names that DescribeGroups and ListGroups tell."""

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
    with those who came; nobody is left: EMPTY.
    """

    COMPLETING_REBALANCE = "CompletingRebalance"
    """The leader works out who reads what.

    Action: SyncGroup of followers is parked; heartbeats are answered without error; commits are
    answered REBALANCE_IN_PROGRESS; a member that joins again with the same metadata is told the
    generation once more.
    Transition: the leader's assignment is durable: STABLE; a member joins, leaves or fails, the
    write fails, or somebody does not sync in time: PREPARING_REBALANCE.
    """

    STABLE = "Stable"
    """Every member knows what it reads.

    Action: SyncGroup is answered with the assignment; a follower that joins again with the same
    metadata is told the generation; offsets of topics that nobody subscribes to expire.
    Transition: a member joins, leaves, fails or changes its metadata, or the leader joins again:
    PREPARING_REBALANCE.
    """

    DEAD = "Dead"
    """The group is no more, and never comes back; another may take its name.

    Action: none; this object is out of the coordinator's reach, DescribeGroups tells this state
    of groups that do not exist.
    Transition: none.
    """


MAY_FOLLOW: Final[dict[GroupState, frozenset[GroupState]]] = {
    GroupState.EMPTY: frozenset({GroupState.PREPARING_REBALANCE, GroupState.DEAD}),
    GroupState.PREPARING_REBALANCE: frozenset({GroupState.COMPLETING_REBALANCE, GroupState.EMPTY}),
    GroupState.COMPLETING_REBALANCE: frozenset({GroupState.STABLE, GroupState.PREPARING_REBALANCE}),
    GroupState.STABLE: frozenset({GroupState.PREPARING_REBALANCE}),
    GroupState.DEAD: frozenset(),
}
"""Where each state may lead."""


# A tuple is looked through by identity; an enum's members are hashed by a call of their own.
_MAY_REBALANCE: Final = tuple(
    state for state, after in MAY_FOLLOW.items() if GroupState.PREPARING_REBALANCE in after
)


def may_rebalance(state: GroupState) -> bool:
    """Whether a rebalance can begin in this state."""
    return state in _MAY_REBALANCE
