"""Holding a roll back until brokers say that it may go on.

Before a broker that serves is restarted, every other broker must be in sync, and it must itself say
that no partition is at risk. A broken broker is not asked: it serves nothing.
"""

from __future__ import annotations

import dataclasses

from barnabas_operator.api.clusters import ADMIN_PORT
from barnabas_operator.plan.findings import Finding, Reason
from barnabas_operator.plan.observed import Observed
from barnabas_operator.plan.rolling import PodView
from barnabas_operator.plan.snapshot import Plan
from barnabas_operator.plan.steps import DeletePod
from barnabas_operator.reconcile.context import Context


def hold_back(plan: Plan, observed: Observed, context: Context) -> Plan:
    """The plan without the restart of a broker that must not be restarted yet, and why."""
    brokers = {pod.name: pod for pod in observed.pods.get("broker", ())}
    for step in plan.steps:
        pod = brokers.get(step.name) if isinstance(step, DeletePod) else None
        if pod is None or pod.broken or pod.unstarted:
            continue
        others = [each for each in brokers.values() if each.revision != pod.revision]
        if objection := _objection(pod, others, context):
            steps = tuple(each for each in plan.steps if each is not step)
            text = f"{pod.name} waits to be replaced: {objection}"
            finding = Finding(reason=Reason.ROLL_WAITS_FOR_REPLICAS, message=text)
            return dataclasses.replace(plan, steps=steps, findings=(*plan.findings, finding))
    return plan


def _objection(pod: PodView, replaced: list[PodView], context: Context) -> str:
    for other in replaced:
        caught_up = context.in_sync(admin_url(other))
        if not caught_up.ok:
            return f"{other.name}: {caught_up.reason}"
    return context.restart_check(admin_url(pod)).reason


def admin_url(pod: PodView) -> str:
    """Where a broker's admin port is."""
    host = f"[{pod.address}]" if ":" in pod.address else pod.address
    return f"http://{host}:{ADMIN_PORT}"
