"""Holding a roll back until brokers say that it may go on.

Before a broker that serves is restarted, those that were restarted before must be in sync, and it
must itself say that no partition is at risk; `spec.roll.guarantee` asks for more, or for less. A
broken broker is not asked: it serves nothing. Of brokers that go together each is asked; they share
no partition, so that all answers hold at once. That is asked again right before each one that joins
another goes: a topic may have been created meanwhile.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Collection, Iterable

from barnabas_operator.api.listeners import ADMIN_PORT
from barnabas_operator.api.rolls import Guarantee, RollStatus
from barnabas_operator.brokers import Brokers, BrokersError
from barnabas_operator.plan.findings import Finding, Reason
from barnabas_operator.plan.observed import Observed
from barnabas_operator.plan.rolling import PodView, ordinal_of, share_partition
from barnabas_operator.plan.snapshot import Plan
from barnabas_operator.plan.steps import DeletePod
from barnabas_operator.reconcile.context import ClusterCredentials, Context


def hold_back(
    plan: Plan,
    observed: Observed,
    context: Context,
    guarantee: Guarantee = Guarantee.KEEP_HEALTHY,
) -> Plan:
    """The plan without the restarts of brokers that must not be restarted yet, and why.

    One that was to go beside another is left for later; without the first, none of them goes.
    """
    brokers = {pod.name: pod for pod in observed.pods.get("broker", ())}
    for step in plan.steps:
        pod = brokers.get(step.name) if isinstance(step, DeletePod) else None
        if pod is None or pod.broken or pod.unstarted:
            continue
        objection = _objection(pod, brokers.values(), observed, context, guarantee)
        if not objection:
            continue
        beside = isinstance(step, DeletePod) and bool(step.beside)
        steps = tuple(
            each
            for each in plan.steps
            if each is not step and (beside or not isinstance(each, DeletePod))
        )
        plan = dataclasses.replace(plan, steps=steps)
        if beside:
            continue
        text = f"{pod.name} waits to be replaced: {objection}"
        finding = Finding(reason=Reason.ROLL_WAITS_FOR_REPLICAS, message=text)
        return dataclasses.replace(plan, findings=(*plan.findings, finding))
    return plan


def _objection(
    pod: PodView,
    pods: Iterable[PodView],
    observed: Observed,
    context: Context,
    guarantee: Guarantee,
) -> str:
    if guarantee is Guarantee.READY:
        return ""
    view = observed.brokers
    if guarantee is Guarantee.ALL_HEALTHY:
        if view is None:
            return "no broker answers"
        if view.out_of_sync:
            behind = ", ".join(map(str, sorted(view.out_of_sync)))
            return f"replicas of brokers {behind} are not in sync (spec.roll.guarantee)"
    access = context.credentials.admin
    asked = (pod.revision, bool(pod.restart))
    for other in pods:
        if (other.revision, bool(other.restart)) == asked:
            continue
        caught_up = context.in_sync(admin_url(other, context.credentials), access)
        if not caught_up.ok:
            return f"{other.name}: {caught_up.reason}"
    return context.restart_check(admin_url(pod, context.credentials), access).reason


def may_join(name: str, gone: Collection[str], connect: Callable[[], Brokers]) -> bool:
    """Whether a broker shares no partition now with the others of its rack that are gone."""
    try:
        replica_sets = connect().describe().replica_sets
    except BrokersError:
        return False
    others = {ordinal_of(each) for each in gone}
    return replica_sets is not None and not share_partition(replica_sets, ordinal_of(name), others)


def restore_leaders(
    before: RollStatus | None,
    roll: RollStatus | None,
    observed: Observed,
    connect: Callable[[], Brokers],
) -> RollStatus | None:
    """What is left of a roll. Once no pod is left, leaders go back to their preferred replicas.

    That is done when every replica is in sync: before, some could not lead. Brokers do it by
    themselves only where the imbalance is large, after minutes.
    """
    if before is None or roll is not None or observed.brokers is None:
        return roll
    rest = dataclasses.replace(before, order=(), blockers=(), estimate_seconds=0)
    if observed.brokers.out_of_sync:
        text = "leaders go back to their preferred replicas once all replicas are in sync"
        return dataclasses.replace(rest, blockers=(text,))
    try:
        connect().elect_preferred_leaders()
    except BrokersError as error:
        return dataclasses.replace(rest, blockers=(f"preferred leaders: {error}",))
    return None


def admin_url(pod: PodView, credentials: ClusterCredentials) -> str:
    """Where a broker's admin port is: with TLS at the name that is in its certificate."""
    if credentials.host is not None:
        return f"https://{credentials.host(pod.name)}:{ADMIN_PORT}"
    host = f"[{pod.address}]" if ":" in pod.address else pod.address
    return f"http://{host}:{ADMIN_PORT}"
