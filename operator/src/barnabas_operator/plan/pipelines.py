"""What to do for a KafkaPipeline: the steps to its objects, and whether its user can be used.

As with clusters, an upgrade of the operator replaces no pod: what another operator rendered stays
until the resource changes (`plan.versions`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from barnabas_operator.api.conditions import READY
from barnabas_operator.api.pipelines import KafkaPipeline
from barnabas_operator.api.reading import Resource
from barnabas_operator.plan.claims import growth, with_present_templates
from barnabas_operator.plan.drift import drift
from barnabas_operator.plan.namespaces import cluster_namespace_of
from barnabas_operator.plan.observed import Images
from barnabas_operator.plan.snapshot import TEMPLATES
from barnabas_operator.plan.steps import Apply, Step
from barnabas_operator.plan.versions import as_before, chosen_pipeline_image, is_held, stamped
from barnabas_operator.resources.objects import Document
from barnabas_operator.resources.pipelines import pipeline_objects

Pipeline = Resource[KafkaPipeline]
Object = Mapping[str, Any]

WAITING_FOR_USER: Final = "WaitingForUser"


@dataclass(frozen=True, slots=True, kw_only=True)
class PipelinePlan:
    """The steps to the objects, the image of the pod, and what a newer operator would change.

    `unknown` is what is wrong with `spec.version`; empty if nothing. `has_pod`: a StatefulSet is
    there, whatever the pipeline waits for.
    """

    steps: tuple[Step, ...]
    image: str
    has_pod: bool
    update_available: str = ""
    unknown: str = ""


@dataclass(frozen=True, slots=True)
class Waiting:
    """What a pipeline waits for: its phase, one word for programs, and the message."""

    phase: str
    reason: str
    message: str


def plan_pipeline(
    pipeline: Pipeline,
    found: Mapping[str, Object],
    *,
    stateful_set: Object | None,
    claims: Sequence[Object],
    images: Images,
    bootstrap_servers: str,
) -> PipelinePlan:
    """What to do now.

    `found` are the objects that have the names of the pipeline's, by kind. `stateful_set` is None
    where that is another's, and so are the `claims` of its name.
    """
    spec, generation = pipeline.body.spec, pipeline.meta.generation
    image, unknown = chosen_pipeline_image(pipeline, stateful_set, images)
    steps: list[Step] = []
    held = False
    for body in pipeline_objects(pipeline, image=image, bootstrap_servers=bootstrap_servers):
        present = found.get(body["kind"])
        possible: Document | None = with_present_templates(body, present)
        if possible is not None and body["kind"] in TEMPLATES:
            possible = stamped(possible, generation=generation, operator=images.operator)
            if present is not None and is_held(present, pipeline, images.operator):
                held = True
                possible = as_before(possible, present)
        if possible is not None and (reason := drift(possible, present)):
            steps.append(Apply(body=possible, reason=reason))
    grown, _ = growth(claims, spec.storage.size)
    asks = spec.version is not None or spec.image is not None
    newer = not asks and (held or image != images.pipeline)
    return PipelinePlan(
        steps=(*steps, *grown),
        image=image,
        has_pod=stateful_set is not None,
        update_available=(
            f"the operator's pods run {images.pipeline}; set spec.version to update"
            if newer
            else ""
        ),
        unknown=unknown,
    )


def user_problem(pipeline: Pipeline, user: Object | None) -> Waiting | None:
    """Why the pipeline's KafkaUser, as the API server has it, cannot be used; None if it can."""
    name, cluster = pipeline.body.spec.user, pipeline.body.spec.cluster
    if user is None:
        text = f"there is no KafkaUser {name} in this namespace"
        return _wait_for_user("UserNotFound", text)
    spec = user.get("spec") or {}
    named, home = spec.get("cluster"), cluster_namespace_of(user)
    if (named, home) != (cluster, pipeline.meta.namespace):
        theirs = named if home == pipeline.meta.namespace else f"{named} of namespace {home}"
        text = f"KafkaUser {name} is a user of KafkaCluster {theirs}, not of {cluster}"
        return _wait_for_user("UserOfAnotherCluster", text)
    if user["metadata"].get("deletionTimestamp"):
        return _wait_for_user("UserNotReady", f"KafkaUser {name} is being deleted")
    conditions = (user.get("status") or {}).get("conditions") or ()
    ready: Object = next((each for each in conditions if each.get("type") == READY), {})
    if ready.get("status") != "True":
        why = ": ".join(filter(None, (ready.get("reason"), ready.get("message"))))
        text = f"KafkaUser {name} is not Ready" + (f" ({why})" if why else "")
        return _wait_for_user("UserNotReady", text)
    return None


def _wait_for_user(reason: str, message: str) -> Waiting:
    return Waiting(WAITING_FOR_USER, reason, message)
