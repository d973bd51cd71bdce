"""The table of states."""

from barnabas_broker.coordinator.group.states import MAY_FOLLOW, GroupState, may_rebalance


def test_every_state_has_its_row() -> None:
    """And none leads to itself."""
    assert set(MAY_FOLLOW) == set(GroupState)
    assert all(state not in following for state, following in MAY_FOLLOW.items())


def test_rebalances_begin_where_none_goes_on() -> None:
    """In every living state but the one that is a rebalance already."""
    assert {state for state in GroupState if may_rebalance(state)} == {
        GroupState.EMPTY,
        GroupState.COMPLETING_REBALANCE,
        GroupState.STABLE,
    }
