"""A roll goes on when brokers say that it may."""

from __future__ import annotations

from dataclasses import replace

import pytest

from barnabas_operator.plan.findings import Finding, Reason
from barnabas_operator.plan.observed import Observed
from barnabas_operator.plan.rolling import PodView
from barnabas_operator.plan.snapshot import Plan
from barnabas_operator.plan.steps import DeletePod
from barnabas_operator.reconcile.clusters import judge
from barnabas_operator.reconcile.rolls import hold_back
from barnabas_operator.restart_check import AdminAccess, CheckResult
from tests.operator.memory_kube import MemoryKube
from tests.operator.ports import context_on

STEP = DeletePod(name="c-broker-1", uid="u1", reason="its pod template changed")
YES = CheckResult(ok=True)


PENDING = Finding(reason=Reason.ROLL_PENDING, message="broker: 2 pods to replace")


def pod(ordinal: int, revision: str, *, broken: str = "") -> PodView:
    """A broker's pod."""
    return PodView(
        name=f"c-broker-{ordinal}",
        uid=f"u{ordinal}",
        revision=revision,
        ready=not broken,
        broken=broken,
        address=f"10.0.0.{ordinal}",
    )


def planned(
    *pods: PodView, restart: CheckResult = YES, caught_up: CheckResult = YES
) -> tuple[Plan, list[str]]:
    """The plan that is left, and who was asked what."""
    asked: list[str] = []

    def restart_check(url: str, _access: AdminAccess) -> CheckResult:
        asked.append(f"{url}/restart")
        return restart

    def in_sync(url: str, _access: AdminAccess) -> CheckResult:
        asked.append(f"{url}/caught-up")
        return caught_up

    context = replace(context_on(MemoryKube()), restart_check=restart_check, in_sync=in_sync)
    observed = Observed(objects={}, pods={"broker": pods, "zookeeper": ()}, claims={})
    plan = Plan(steps=(STEP,), findings=(PENDING,))
    return hold_back(plan, observed, context), asked


def test_the_next_is_restarted_when_all_is_well() -> None:
    """Those that were restarted are asked first, then the one whose turn it is."""
    plan, asked = planned(pod(0, "old"), pod(1, "old"), pod(2, "new"))
    assert plan.steps == (STEP,)
    assert asked == ["http://10.0.0.2:9404/caught-up", "http://10.0.0.1:9404/restart"]


@pytest.mark.parametrize(
    ("answers", "reason"),
    [
        (
            {"caught_up": CheckResult(ok=False, reason="50.0 % of its replicas are in sync")},
            "c-broker-1 waits to be replaced: c-broker-2: 50.0 % of its replicas are in sync",
        ),
        (
            {"restart": CheckResult(ok=False, reason="orders-0 has 1 other in-sync replicas")},
            "c-broker-1 waits to be replaced: orders-0 has 1 other in-sync replicas",
        ),
    ],
)
def test_a_restart_waits(answers: dict[str, CheckResult], reason: str) -> None:
    """The step is put off and the reason told; nothing else is."""
    plan, _ = planned(pod(0, "old"), pod(1, "old"), pod(2, "new"), **answers)
    assert plan.steps == ()
    held = Finding(reason=Reason.ROLL_WAITS_FOR_REPLICAS, message=reason)
    assert plan.findings == (PENDING, held)


def test_a_broken_broker_is_not_asked() -> None:
    """It serves nothing, and its restart is the remedy."""
    plan, asked = planned(pod(0, "old"), pod(1, "old", broken="ImagePullBackOff"))
    assert (plan.steps, asked) == ((STEP,), [])


@pytest.mark.parametrize(
    ("others", "applied", "reason"),
    [
        ([Reason.ROLL_PENDING], False, "RollHeldBack"),
        ([Reason.ROLL_PENDING, Reason.ROLL_WAITS_FOR_ENSEMBLE], False, "RollHeldBack"),
        ([Reason.ROLL_PENDING, Reason.CLAIM_LARGER], False, "RollHeldBack"),
        ([Reason.ROLL_PENDING], True, "RollPending"),
        ([Reason.NODE_PORTS_PENDING, Reason.ROLL_PENDING], False, "NodePortsPending"),
        ([Reason.ROLL_PENDING, Reason.LEADERLESS_PARTITIONS], False, "RollPending"),
        ([Reason.ROLL_PENDING, Reason.REFUSED], False, "Refused"),
    ],
)
def test_a_held_roll_is_reported_when_nothing_else_is_pending(
    others: list[Reason], applied: bool, reason: str
) -> None:
    """With that reason the next pass comes late; what mends itself is looked at soon."""
    found = [Finding(reason=each, message="") for each in (*others, Reason.ROLL_HELD_BACK)]
    pending = judge(found, applied=applied).pending
    assert pending is not None
    assert pending[0] == reason
