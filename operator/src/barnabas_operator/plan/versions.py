"""Which images pods run, and whether they stay as an earlier operator rendered them.

An upgrade of the operator rolls nothing by itself. The images in use are remembered in the status,
and every pod template carries the operator and the generation of the resource that it was rendered
for. They stay as they are until the resource changes; `spec.version` asks for other images. The
same holds for the pods of pipelines.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from barnabas_operator.api.clusters import ClusterStatus, KafkaCluster
from barnabas_operator.api.conditions import is_ready, is_stalled
from barnabas_operator.api.pipelines import KafkaPipeline, PipelineStatus
from barnabas_operator.api.reading import Resource
from barnabas_operator.names import DYNAMIC_CONFIG, IMAGE, RENDERED
from barnabas_operator.plan.observed import Images
from barnabas_operator.resources.objects import Document, hashed

Object = Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Chosen:
    """The images of a cluster, and what is wrong with the version that it asks for."""

    broker: str
    zookeeper: str
    unknown: str = ""


def chosen_images(
    cluster: Resource[KafkaCluster], sets: Mapping[str, Object], images: Images
) -> Chosen:
    """Of `spec.images`, `spec.version`, the status, the StatefulSets, the operator: the first."""
    spec, status = cluster.body.spec, cluster.body.status
    version, unknown = _version(spec.version, images.versions)
    found = {}
    for component in ("broker", "zookeeper"):
        choices = (
            getattr(spec.images, component) if spec.images else None,
            version.get(component),
            getattr(status.images, component),
            image_in_use(sets.get(component)),
            getattr(images, component),
        )
        found[component] = next(each for each in choices if each)
    return Chosen(broker=found["broker"], zookeeper=found["zookeeper"], unknown=unknown)


def chosen_pipeline_image(
    pipeline: Resource[KafkaPipeline], stateful_set: Object | None, images: Images
) -> tuple[str, str]:
    """The image of a pipeline, by the same order, and what is wrong with `spec.version`.

    A pipeline that has no StatefulSet yet begins with the operator's image.
    """
    spec, status = pipeline.body.spec, pipeline.body.status
    known = {name: each for name, each in images.versions.items() if each.get("pipeline")}
    version, unknown = _version(spec.version, known)
    in_use = (status.image, image_in_use(stateful_set)) if stateful_set is not None else ()
    choices = (spec.image, version.get("pipeline"), *in_use, images.pipeline)
    return next(each for each in choices if each), unknown


def _version(
    asked: str | None, versions: Mapping[str, Mapping[str, str]]
) -> tuple[Mapping[str, str], str]:
    """The images of the version that a spec asks for, and that it is unknown where it is."""
    if asked is None or asked in versions:
        return versions.get(asked or "", {}), ""
    known = ", ".join(sorted(versions)) or "none"
    return {}, f"spec.version {asked} is unknown; this operator knows {known}"


def stamped(body: Document, *, generation: int, operator: str) -> Document:
    """The object with the operator and the generation for which it is rendered."""
    meta = body["metadata"]
    notes = {**meta.get("annotations", {}), RENDERED: f"{operator}/{generation}"}
    if body["kind"] == "StatefulSet":
        notes[IMAGE] = body["spec"]["template"]["spec"]["containers"][0]["image"]
    return hashed({**body, "metadata": {**meta, "annotations": notes}})


def held_generation(status: ClusterStatus | PipelineStatus) -> int:
    """The generation that objects without a stamp were rendered for, as `status.heldGeneration`.

    `status.observedGeneration` answers that only until this operator writes it, and only where
    the earlier operator said that all of it was applied.
    """
    if status.held_generation:
        return status.held_generation
    settled = is_ready(status.conditions) and not is_stalled(status.conditions)
    return status.observed_generation if status.is_of_an_earlier_operator and settled else -1


def is_held(
    found: Object | None,
    resource: Resource[KafkaCluster] | Resource[KafkaPipeline],
    operator: str,
) -> bool:
    """Whether an object stays as another operator rendered it: its resource did not change."""
    if found is None or not operator:
        return False
    stamp = (found["metadata"].get("annotations") or {}).get(RENDERED)
    before, _, generation = (stamp or f"/{held_generation(resource.body.status)}").rpartition("/")
    return before != operator and generation == str(resource.meta.generation)


def as_before(body: Document, found: Object) -> Document | None:
    """The object with the pod template that it has; None if nothing else is to be changed."""
    if body["kind"] != "StatefulSet" or found["spec"].get("replicas") == body["spec"]["replicas"]:
        return None
    notes = {**body["metadata"]["annotations"]}
    before = found["metadata"].get("annotations") or {}
    for name in (RENDERED, IMAGE, DYNAMIC_CONFIG):
        notes.pop(name, None)
        if name in before:
            notes[name] = before[name]
    meta = {**body["metadata"], "annotations": notes}
    spec = {**body["spec"], "template": found["spec"]["template"]}
    return hashed({**body, "metadata": meta, "spec": spec})


def image_in_use(stateful_set: Object | None) -> str:
    """The image that a StatefulSet was rendered with; empty if there is none."""
    if stateful_set is None:
        return ""
    if rendered := (stateful_set["metadata"].get("annotations") or {}).get(IMAGE):
        return str(rendered)
    containers = stateful_set["spec"]["template"]["spec"]["containers"]
    return str(containers[0].get("image", ""))
