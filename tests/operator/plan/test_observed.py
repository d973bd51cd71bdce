"""The snapshot's own questions."""

from __future__ import annotations

from barnabas_operator.plan.observed import Observed


def test_leaders_and_stateful_sets() -> None:
    """A StatefulSet that does not exist is None; only members in mode leader lead."""
    modes = {"z-0": "follower", "z-1": "leader", "z-2": ""}
    observed = Observed(objects={}, pods={}, claims={}, modes=modes)
    assert observed.stateful_set("z") is None
    assert observed.leaders() == {"z-1"}
