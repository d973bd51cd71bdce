"""The checks of pods and rolls: one act in a pass, the ensemble's before the brokers'.

An act replaces one pod, or brokers of one rack that share no partition (maxUnavailablePerRack).
"""

from __future__ import annotations

from barnabas_operator.plan.findings import Reason
from barnabas_operator.plan.observed import COMPONENTS
from barnabas_operator.plan.roll_policy import objection, soaking
from barnabas_operator.plan.rolling import (
    ASKED_FOR,
    broken_to_replace,
    newly_broken,
    next_to_replace,
    outdated,
    unready_to_replace,
)
from barnabas_operator.plan.snapshot import Draft, Snapshot, shortened


def check_pods(snapshot: Snapshot, draft: Draft) -> None:
    """Every pod there and ready."""
    for component in COMPONENTS:
        draft.findings += snapshot.absences(component)
        seen = snapshot.set_of(component)
        if seen and (old := outdated(snapshot.observed.pods.get(component, ()), seen)):
            draft.find(Reason.ROLL_PENDING, f"{component}: {len(old)} pods to replace")


def check_ensemble_roll(snapshot: Snapshot, draft: Draft) -> None:
    """One member with an older template replaced, the leader last."""
    name = snapshot.names.zookeeper
    if not _roll_is_due("zookeeper", name, snapshot, draft):
        return
    if others := snapshot.unavailable("broker"):
        text = shortened([each.message for each in others])
        draft.find(Reason.ROLL_WAITS_FOR_BROKERS, f"the roll of the ensemble waits: {text}")
        return
    if trouble := _quorum_trouble(snapshot):
        text = f"the roll of the ensemble waits: {trouble}"
        draft.find(Reason.ROLL_WAITS_FOR_ENSEMBLE, text)
        return
    _replace_next("zookeeper", snapshot, draft)


def check_broker_roll(snapshot: Snapshot, draft: Draft) -> None:
    """One broker with an older template replaced, or some of one rack; the controller last."""
    name = snapshot.names.broker
    if not _roll_is_due("broker", name, snapshot, draft):
        return
    if trouble := _ensemble_trouble(snapshot, draft):
        text = f"the roll of the brokers waits: {trouble}"
        draft.find(Reason.ROLL_WAITS_FOR_ENSEMBLE, text)
        return
    _replace_next("broker", snapshot, draft)


def _roll_is_due(component: str, name: str, snapshot: Snapshot, draft: Draft) -> bool:
    """Whether a pod that serves is to be replaced, as far as its own StatefulSet is concerned."""
    seen = snapshot.set_of(component)
    # Brokers that are about to be added are away as those that are missing, for a member, too.
    names = snapshot.names
    changing = any(map(draft.changes_templates, (name, names.broker, names.addresses)))
    if seen is None or draft.deletes_pod() or changing:
        return False
    pods = snapshot.observed.pods.get(component, ())
    if (broken := broken_to_replace(pods, seen)) is not None:
        draft.steps.append(broken)
        return False
    if stopped := newly_broken(pods, seen):
        states = ((pod.name, pod.sidecar or f"is in {pod.broken}") for pod in stopped)
        texts = [f"{name} {state} with the current template" for name, state in states]
        remedy = "correct the spec, or repair what it needs"
        draft.find(Reason.ROLL_STOPPED, f"the roll stopped: {shortened(texts)}; {remedy}")
        return False
    if snapshot.forced and (unready := unready_to_replace(pods, seen)) is not None:
        draft.steps.append(unready)
        return False
    return bool(outdated(pods, seen)) and not snapshot.unavailable(component)


def _ensemble_trouble(snapshot: Snapshot, draft: Draft) -> str:
    """Why the ensemble is not settled; empty if it is complete, current and has a quorum."""
    if absent := snapshot.unavailable("zookeeper"):
        return shortened([each.message for each in absent])
    seen = snapshot.set_of("zookeeper")
    old = outdated(snapshot.observed.pods.get("zookeeper", ()), seen) if seen else ()
    if old or draft.changes_templates(snapshot.names.zookeeper):
        return "the ensemble is replaced first"
    return _quorum_trouble(snapshot)


def _quorum_trouble(snapshot: Snapshot) -> str:
    """Why it is not certain that the ensemble has its quorum and all its members."""
    pods, modes = snapshot.observed.pods.get("zookeeper", ()), snapshot.observed.modes
    silent = [pod.name for pod in pods if not modes.get(pod.name)]
    if silent:
        return f"{', '.join(silent)} names no mode in answer to srvr on port 2181"
    if len(pods) > 1 and len(snapshot.observed.leaders()) != 1:
        return f"the ensemble has {len(snapshot.observed.leaders())} leaders"
    return ""


def _replace_next(component: str, snapshot: Snapshot, draft: Draft) -> None:
    """Replace the next pod, unless policy, a pause or the soak forbid it."""
    cluster, seen = snapshot.cluster, snapshot.set_of(component)
    pods = snapshot.observed.pods.get(component, ())
    roll, now = cluster.body.spec.rolls, snapshot.observed.now
    if seen is None:
        return
    held_back = objection(roll, snapshot.requests, token=snapshot.roll_token(), now=now)
    if held_back:
        # To annotate a pod is to approve its restart, with the template that it has.
        current = [pod for pod in pods if pod.revision == seen.update_revision]
        asked = [pod for pod in current if pod.restart == ASKED_FOR]
        if snapshot.requests.paused or not asked:
            draft.find(Reason.ROLL_HELD_BACK, f"the roll of {component} pods: {held_back}")
            return
        pods = asked
    replaced = [pod for pod in snapshot.observed.pods[component] if pod not in outdated(pods, seen)]
    if not snapshot.forced and (
        since := soaking((pod.ready_since for pod in replaced), roll.soak_seconds, now)
    ):
        text = f"the last one is ready since {since}, spec.roll.soakSeconds is {roll.soak_seconds}"
        draft.find(Reason.ROLL_SOAKS, f"the roll of {component} pods: {text}")
        return
    draft.steps += next_to_replace(
        pods, seen, snapshot.last(component), snapshot.together(component)
    )
