"""Steps as lines."""

from __future__ import annotations

from barnabas_operator.plan.steps import Apply, DeletePod, GrowClaim
from tests.operator.plan import transcript


def test_a_plan_is_readable() -> None:
    """Each step says what, which and why."""
    body = {"kind": "Service", "metadata": {"name": "s"}}
    steps = (
        Apply(body=body, reason="missing"),
        DeletePod(name="p-0", uid="u", reason="its pod template changed"),
        GrowClaim(name="data-p-0", size="2Gi", reason="it has 1Gi"),
    )
    assert transcript(steps) == (
        "apply Service s: missing",
        "delete Pod p-0: its pod template changed",
        "grow PersistentVolumeClaim data-p-0 to 2Gi: it has 1Gi",
    )
