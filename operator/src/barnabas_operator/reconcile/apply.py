"""Applies a plan's steps, in order, on the API server."""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from typing import Final

from barnabas_operator.api.reading import Metadata
from barnabas_operator.kube import (
    CERTIFICATES,
    CLAIMS,
    CLUSTERS,
    KINDS,
    PODS,
    TLS_ROUTES,
    Kind,
    KubeError,
)
from barnabas_operator.names import RACK
from barnabas_operator.plan.steps import Apply, DeleteObject, DeletePod, GrowClaim, LabelClaim, Step
from barnabas_operator.reconcile.context import Context, Regarding
from barnabas_operator.reconcile.ownership import apply_owned

logger = logging.getLogger(__name__)

# What has the definitions of kinds that an API server need not know.
DEFINED_BY: Final = {
    CERTIFICATES.kind: "cert-manager",
    TLS_ROUTES.kind: "the Gateway API with its experimental channel",
}
# Of an API server's message in a condition; a refused StatefulSet names a kilobyte of fields.
LONGEST: Final = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class Refused:
    """A step that the API server refuses, and its message."""

    step: Step
    message: str


def apply_steps(
    steps: Sequence[Step],
    meta: Metadata,
    context: Context,
    *,
    kind: Kind = CLUSTERS,
    may_join: Callable[[str, Collection[str]], bool] = lambda *_: True,
) -> tuple[Refused, ...]:
    """Apply the steps for a resource; returns those that the API server refuses.

    `may_join` is asked right before a pod goes beside those of its rack that are gone.

    What it refuses it would refuse again, so the other steps are applied all the same. If it cannot
    be reached, or is too busy, the pass ends (KubeError).
    """
    refused: list[Refused] = []
    gone: set[str] = set()
    regarding = Regarding.of(kind, meta)
    for step in steps:
        if refused and isinstance(step, DeleteObject):
            # Nothing is taken away in a pass in which something else went wrong.
            continue
        if isinstance(step, DeletePod) and not _is_granted(step, gone):
            continue
        if isinstance(step, DeletePod) and step.beside and not may_join(step.name, gone):
            continue
        logger.info("%s/%s: %s", meta.namespace, meta.name, step)
        action = type(step).__name__
        try:
            if _apply(step, meta.namespace, context) and isinstance(step, DeletePod):
                gone.add(step.name)
        except KubeError as error:
            if not (error.refused or _ends_an_eviction(step, error) or _is_unserved(step, error)):
                raise
            message = _unserved(step) if _is_unserved(step, error) else error.message
            logger.debug("%s/%s: refused: %s", meta.namespace, meta.name, error.message)
            refused.append(Refused(step=step, message=message))
            context.count_step(action, "refused")
            note = f"{step}; the API server refuses it: {short(message)}"
            context.events.record(
                regarding, action=action, reason="Refused", note=note, warning=True
            )
        else:
            context.count_step(action, "applied")
            context.events.record(regarding, action=action, reason=action, note=str(step))
    return tuple(refused)


def _is_granted(step: DeletePod, gone: Collection[str]) -> bool:
    """Whether the disruption is granted under which a pod goes that goes beside another."""
    return not step.beside or step.beside in gone


def _ends_an_eviction(step: Step, error: KubeError) -> bool:
    """Whether an eviction failed in a way that gates nothing else: any answer is one.

    The API server answers 500 for as long as several budgets select a pod.
    """
    return isinstance(step, DeletePod) and error.status != 0


def _is_unserved(step: Step, error: KubeError) -> bool:
    """Whether the API server does not know the kind of an object: its definition is missing."""
    return isinstance(step, Apply) and error.status == 404


def _unserved(step: Step) -> str:
    """What to install for an object of a kind that the API server does not know."""
    body = step.body if isinstance(step, Apply) else {}
    api_version, kind = body.get("apiVersion", ""), body.get("kind", "")
    remedy = DEFINED_BY.get(kind, "what defines it")
    return f"the API server has no {kind} of {api_version}; install {remedy}"


def summary(refused: Sequence[Refused]) -> str:
    """One short message for all refusals; empty if there are none. The log has them in full."""
    if not refused:
        return ""
    first = refused[0]
    more = f" (and {len(refused) - 1} more)" if len(refused) > 1 else ""
    return f"{subject(first.step)} is refused: {short(first.message)}{more}"


def subject(step: Step) -> str:
    """The object that a step is about."""
    return str(step).partition(": ")[0]


def short(message: str) -> str:
    """The end of an API server's message, which says why; without the request, in one line."""
    reason = " ".join(message.rpartition(": ")[2].split())
    return reason if len(reason) <= LONGEST else reason[: LONGEST - 1] + "…"


def _apply(step: Step, namespace: str, context: Context) -> bool:
    """Apply a step; whether a pod went under a disruption that its budget has granted."""
    if isinstance(step, Apply):
        apply_owned(context.kube, dict(step.body))
    elif isinstance(step, DeletePod) and step.beside:
        # The budget has one disruption: the first one of the rack took it, and no drain gets it.
        context.kube.delete(PODS, namespace, step.name, uid=step.uid)
        return True
    elif isinstance(step, DeletePod):
        # By eviction: of a drain and the operator, the budget lets one go first.
        return context.kube.evict(namespace, step.name, uid=step.uid)
    elif isinstance(step, DeleteObject):
        context.kube.delete(KINDS[step.kind], namespace, step.name, uid=step.uid)
    elif isinstance(step, GrowClaim):
        request = {"spec": {"resources": {"requests": {"storage": step.size}}}}
        context.kube.patch(CLAIMS, namespace, step.name, request)
    elif isinstance(step, LabelClaim):
        labels = {"metadata": {"labels": dict(step.labels)}}
        context.kube.patch(CLAIMS, namespace, step.name, labels)
    else:
        patch = {"metadata": {"annotations": {RACK: step.rack}}}
        context.kube.patch(PODS, namespace, step.name, patch)
    return False
