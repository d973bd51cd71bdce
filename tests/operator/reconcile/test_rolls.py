"""A roll goes on when brokers say that it may."""

from __future__ import annotations

from dataclasses import replace

import pytest

from barnabas_operator.plan.clusters import Observed, Plan
from barnabas_operator.plan.rolling import PodView
from barnabas_operator.plan.steps import DeletePod
from barnabas_operator.reconcile.rolls import hold_back
from barnabas_operator.standing import Standing
from tests.operator.memory_kube import MemoryKube
from tests.operator.ports import context_on

STEP = DeletePod(name="c-broker-1", uid="u1", reason="its template changed")
YES = Standing(yes=True)


def pod(ordinal: int, revision: str, *, ready: bool = True) -> PodView:
    """A broker's pod."""
    return PodView(
        name=f"c-broker-{ordinal}",
        uid=f"u{ordinal}",
        revision=revision,
        ready=ready,
        leaving=False,
        node_address="",
        address=f"10.0.0.{ordinal}",
    )


def planned(
    *pods: PodView, restart: Standing = YES, caught_up: Standing = YES
) -> tuple[Plan, list[str]]:
    """The plan that is left, and who was asked what."""
    asked: list[str] = []

    def may_restart(url: str) -> Standing:
        asked.append(f"{url}/restart")
        return restart

    def has_caught_up(url: str) -> Standing:
        asked.append(f"{url}/caught-up")
        return caught_up

    context = replace(
        context_on(MemoryKube()), may_restart=may_restart, has_caught_up=has_caught_up
    )
    observed = Observed(objects={}, pods={"broker": pods, "zookeeper": ()}, claims={})
    plan = Plan(steps=(STEP,), waiting=("broker: 2 pods to be made anew",))
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
            {"caught_up": Standing(yes=False, reason="50.0 % of its replicas are in sync")},
            "c-broker-1 waits to be restarted: c-broker-2: 50.0 % of its replicas are in sync",
        ),
        (
            {"restart": Standing(yes=False, reason="orders-0 has 1 other in-sync replicas")},
            "c-broker-1 waits to be restarted: orders-0 has 1 other in-sync replicas",
        ),
    ],
)
def test_a_restart_waits(answers: dict[str, Standing], reason: str) -> None:
    """The step is put off and the reason told; nothing else is."""
    plan, _ = planned(pod(0, "old"), pod(1, "old"), pod(2, "new"), **answers)
    assert plan.steps == ()
    assert plan.waiting == ("broker: 2 pods to be made anew", reason)


def test_a_broker_that_does_not_serve_is_not_asked() -> None:
    """Its restart is the remedy, so nothing may stand in its way."""
    plan, asked = planned(pod(0, "old"), pod(1, "old", ready=False))
    assert (plan.steps, asked) == ((STEP,), [])
