"""Conditions of a verdict, and statuses that are written only when they say something new."""

from __future__ import annotations

import dataclasses
import logging
from collections.abc import Iterable, Sequence
from typing import Any, Final, TypeVar

from barnabas_operator.api.clusters import ClusterStatus, KafkaCluster
from barnabas_operator.api.conditions import (
    READY,
    STALLED,
    WARNING,
    Condition,
    Verdict,
    conditions,
    is_ready,
)
from barnabas_operator.api.pipelines import KafkaPipeline, PipelineStatus
from barnabas_operator.api.reading import Metadata, Resource
from barnabas_operator.api.topics import KafkaTopic, TopicStatus
from barnabas_operator.api.users import KafkaUser, UserStatus
from barnabas_operator.api.writing import to_json
from barnabas_operator.kube import KINDS, KubeError
from barnabas_operator.plan.findings import Reason
from barnabas_operator.reconcile.context import Context, Regarding

logger = logging.getLogger(__name__)

S = TypeVar("S", ClusterStatus, TopicStatus, UserStatus, PipelineStatus)
W = TypeVar("W", Resource[KafkaTopic], Resource[KafkaUser])
AnyResource = (
    Resource[KafkaCluster] | Resource[KafkaTopic] | Resource[KafkaUser] | Resource[KafkaPipeline]
)

# An API server that fails so often fails for the rest, too; each request would take a time-out.
FAILED_WRITES: Final = 3


class StatusRefusedError(KubeError):
    """The API server refuses a status, and would again; `unwritten` is that status."""

    def __init__(self, error: KubeError, unwritten: Any) -> None:
        super().__init__(error.status, error.message, retry_after=error.retry_after)
        self.unwritten = unwritten


def write_status(resource: AnyResource, status: S, verdict: Verdict, context: Context) -> S:
    """Write the status with the conditions of the verdict, unless it is what is there already.

    Raises StatusRefusedError, and other KubeErrors.
    """
    generation = resource.meta.generation
    if resource.unknown_fields:
        verdict = dataclasses.replace(verdict, warnings=(*verdict.warnings, _ignored(resource)))
    current = conditions(
        verdict,
        generation=generation,
        previous=resource.body.status.conditions,
        now=context.now,
    )
    complete = dataclasses.replace(status, observed_generation=generation, conditions=current)
    if complete != resource.body.status:
        kind, meta = KINDS[resource.kind], resource.meta
        before = to_json(resource.body.status)
        written = {
            name: value
            for name, value in to_json(complete).items()
            # What was not known here may be in the API: the resource may come from a cache.
            if value != "" or before.get(name)
        }
        written |= {name: None for name in before if name not in to_json(complete)}
        try:
            context.kube.patch_status(kind, meta.namespace, meta.name, written)
        except KubeError as error:
            raise (StatusRefusedError(error, complete) if error.refused else error) from error
        record_transition(resource, current, context)
    return complete


def write_statuses(updates: Iterable[tuple[AnyResource, S, Verdict]], context: Context) -> list[S]:
    """Write the statuses; one that is refused concerns its resource alone.

    Raises the first KubeError of an API server that fails, after the others have had their turn.
    """
    statuses: list[S] = []
    failures: list[KubeError] = []
    for resource, status, verdict in updates:
        try:
            statuses.append(write_status(resource, status, verdict, context))
        except KubeError as error:
            name = f"{resource.kind} {resource.meta.name}"
            logger.warning("%s: status not written: %s", name, error)
            if 400 <= error.status < 500 and error.status != 429:
                continue
            failures.append(error)
            if len(failures) >= FAILED_WRITES:
                break
    if failures:
        raise failures[0]
    return statuses


def write_waiting(
    resources: Iterable[W], reason: str, message: str, context: Context, *, always: bool = False
) -> None:
    """Write to resources what they wait for.

    One that is settled, and whose spec has not changed, keeps its status: a cluster that does not
    answer for a moment is not a write for each resource.
    """
    verdict = Verdict(ready=False, reason=reason, message=message, settled=False)
    waiting = [each for each in resources if always or not _is_settled(each)]
    write_statuses([(each, each.body.status, verdict) for each in waiting], context)


def _is_settled(resource: Resource[KafkaTopic] | Resource[KafkaUser]) -> bool:
    status = resource.body.status
    stalled = any(each.type == STALLED for each in status.conditions)
    current = status.observed_generation == resource.meta.generation
    return current and (stalled or is_ready(status.conditions))


def record_transition(
    resource: AnyResource, current: Sequence[Condition], context: Context
) -> None:
    """Write an event when the resource has become Ready, or not Ready for another reason."""
    before = {each.type: each for each in resource.body.status.conditions}.get(READY)
    ready = next(each for each in current if each.type == READY)
    if before is not None and (before.status, before.reason) == (ready.status, ready.reason):
        return
    regarding = Regarding.of(KINDS[resource.kind], resource.meta)
    stalled = any(each.type == STALLED for each in current)
    note = ready.message or ("Ready" if ready.status == "True" else "not Ready")
    context.events.record(
        regarding, action="Reconcile", reason=ready.reason, note=note, warning=stalled
    )


def record_expiry(resource: AnyResource, text: str, context: Context) -> None:
    """Write an event when a certificate begins to be warned of, whatever else is."""
    before = {each.type: each for each in resource.body.status.conditions}.get(WARNING)
    if before is not None and text in before.message:
        return
    context.events.record(
        Regarding.of(KINDS[resource.kind], resource.meta),
        action="Reconcile",
        reason=Reason.CERTIFICATE_EXPIRES,
        note=text,
        warning=True,
    )


def _ignored(resource: AnyResource) -> str:
    fields = ", ".join(resource.unknown_fields)
    return f"fields that this version of the operator does not know are ignored: {fields}"


def write_refusal(
    document: dict[str, Any],
    meta: Metadata,
    message: str,
    *,
    context: Context,
    reason: str = "Invalid",
) -> None:
    """Report on a resource that is not acted on what is wrong with it; the rest of its status
    stays.

    What the API server answers concerns this resource alone.
    """
    verdict = Verdict(ready=False, reason=reason, message=message, stalled=True)
    current = conditions(
        verdict, generation=meta.generation, previous=_previous(document), now=context.now
    )
    status = {"observedGeneration": meta.generation, "conditions": to_json(current)}
    before = document.get("status") or {}
    if any(before.get(name) != value for name, value in status.items()):
        kind = KINDS[document["kind"]]
        try:
            context.kube.patch_status(kind, meta.namespace, meta.name, status)
        except KubeError as error:
            if not 400 <= error.status < 500 or error.status == 429:
                raise
            logger.warning("%s %s: status not written: %s", kind.kind, meta.name, error)


def _previous(document: dict[str, Any]) -> Sequence[Condition]:
    found = (document.get("status") or {}).get("conditions") or ()
    return [
        Condition(
            type=each.get("type", ""),
            status=each.get("status", ""),
            reason=each.get("reason", ""),
            last_transition_time=each.get("lastTransitionTime", ""),
        )
        for each in found
    ]
