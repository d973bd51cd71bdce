"""Holding a roll back until brokers say that it may go on.

Before a broker that serves is restarted, those that were restarted before it must have caught up,
and it must itself say that no partition is at risk. A broker that does not serve is not asked: its
restart is the remedy.
"""

from __future__ import annotations

import dataclasses

from barnabas_operator.api.clusters import ADMIN_PORT
from barnabas_operator.plan.clusters import Observed, Plan
from barnabas_operator.plan.rolling import PodView
from barnabas_operator.plan.steps import DeletePod
from barnabas_operator.reconcile.context import Context


def hold_back(plan: Plan, observed: Observed, context: Context) -> Plan:
    """The plan without the restart of a broker that must not be restarted yet, and why."""
    brokers = {pod.name: pod for pod in observed.pods.get("broker", ())}
    for step in plan.steps:
        pod = brokers.get(step.name) if isinstance(step, DeletePod) else None
        if pod is None or not pod.ready:
            continue
        others = [each for each in brokers.values() if each.revision != pod.revision]
        if reason := _objection(pod, others, context):
            steps = tuple(each for each in plan.steps if each is not step)
            return dataclasses.replace(plan, steps=steps, waiting=(*plan.waiting, reason))
    return plan


def _objection(pod: PodView, restarted: list[PodView], context: Context) -> str:
    for other in restarted:
        caught_up = context.has_caught_up(_admin_url(other))
        if not caught_up.yes:
            return f"{pod.name} waits to be restarted: {other.name}: {caught_up.reason}"
    may_restart = context.may_restart(_admin_url(pod))
    if not may_restart.yes:
        return f"{pod.name} waits to be restarted: {may_restart.reason}"
    return ""


def _admin_url(pod: PodView) -> str:
    host = f"[{pod.address}]" if ":" in pod.address else pod.address
    return f"http://{host}:{ADMIN_PORT}"
