"""The plan of a roll, as the status shows it: why, in which order, what blocks it, how long.

It is written before the first pod is replaced, so that it can be approved and watched as a
whole. The estimate is what the present pods took from their creation until they were ready.
"""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Final

from barnabas_operator.api.rolls import RollGroup, RollStatus
from barnabas_operator.names import CONFIG_HASH
from barnabas_operator.plan.findings import Finding, Reason
from barnabas_operator.plan.observed import COMPONENTS
from barnabas_operator.plan.rolling import PodView, image_of, outdated
from barnabas_operator.plan.snapshot import Snapshot

# What a pod takes that has never been ready, and to stop; a container that started again later says
# nothing about the start of its pod.
START_S: Final = 30.0
STOP_S: Final = 5.0
LONGEST_START_S: Final = 600.0
BLOCKERS: Final = 8
BLOCKING: Final = frozenset(
    {
        Reason.STATEFUL_SET_PENDING,
        Reason.POD_MISSING,
        Reason.POD_TERMINATING,
        Reason.POD_NOT_READY,
        Reason.POD_BROKEN,
        Reason.ROLL_WAITS_FOR_ENSEMBLE,
        Reason.ROLL_WAITS_FOR_BROKERS,
        Reason.ROLL_WAITS_FOR_REPLICAS,
        Reason.ROLL_WAITS_FOR_BUDGET,
        Reason.ROLL_STOPPED,
        Reason.ROLL_HELD_BACK,
        Reason.ROLL_SOAKS,
    }
)


def roll_plan(snapshot: Snapshot, findings: Sequence[Finding]) -> RollStatus | None:
    """The plan of the roll that is due; None if none is."""
    left: list[PodView] = []
    groups: list[RollGroup] = []
    reasons: list[str] = []
    seconds = 0.0
    for component in COMPONENTS:
        seen, pods = snapshot.set_of(component), snapshot.observed.pods.get(component, ())
        old = outdated(pods, seen) if seen is not None else []
        if not old:
            continue
        acts = snapshot.together(component).groups(old, snapshot.last(component))
        left += [pod for pods_of_act in acts for pod in pods_of_act]
        groups += [
            RollGroup(rack=each[0].rack, pods=tuple(pod.name for pod in each))
            for each in acts
            if len(each) > 1
        ]
        template = snapshot.template_of(component)
        reasons += [f"{component}: {each}" for each in _reasons(old, template)]
        soak_s = snapshot.cluster.body.spec.rolls.soak_seconds * (len(acts) - 1)
        seconds += len(acts) * (_start_s(pods) + STOP_S) + soak_s
    if not left:
        return None
    if snapshot.protocol.held and snapshot.protocol.target:
        change = f"inter.broker.protocol.version {snapshot.protocol.held} becomes"
        reasons.append(f"a second roll follows: {change} {snapshot.protocol.target}")
    return RollStatus(
        token=snapshot.roll_token(),
        reason="; ".join(reasons),
        order=tuple(pod.name for pod in left),
        groups=tuple(groups),
        blockers=tuple(each.message for each in findings if each.reason in BLOCKING)[:BLOCKERS],
        estimate_seconds=round(seconds),
    )


def _reasons(old: Sequence[PodView], template: Mapping[str, Any]) -> list[str]:
    """What is different between pods and the template that they are replaced from, once each."""
    found: dict[str, None] = {}
    image = image_of(template.get("spec") or {})
    meta = template.get("metadata") or {}
    config = (meta.get("annotations") or {}).get(CONFIG_HASH, "")
    for pod in old:
        texts = [pod.restart] if pod.restart else []
        if pod.image and image and pod.image != image:
            texts.append(f"image {pod.image} becomes {image}")
        if pod.config_hash and pod.config_hash != config:
            texts.append("the configuration changed")
        found |= dict.fromkeys(texts or ["the pod template changed"])
    return list(found)


def _start_s(pods: Sequence[PodView]) -> float:
    read = datetime.fromisoformat
    known = [
        (read(pod.ready_since) - read(pod.created)).total_seconds()
        for pod in pods
        if pod.ready_since and pod.created
    ]
    usual = [each for each in known if 0 <= each <= LONGEST_START_S]
    return statistics.median(usual) if usual else START_S
