"""One pass over a cluster and all that names it: cluster, topics, pipelines, in this order.

That is the unit of the operator's work. A resource that cannot be read is told so and does not
stand in the way of the others.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Final, TypeVar

from barnabas_operator.api.clusters import KafkaCluster
from barnabas_operator.api.conditions import RECONCILING, Condition
from barnabas_operator.api.pipelines import KafkaPipeline
from barnabas_operator.api.reading import (
    Resource,
    ResourceError,
    read_cluster,
    read_metadata,
    read_pipeline,
    read_topic,
)
from barnabas_operator.api.topics import KafkaTopic
from barnabas_operator.kube import CLUSTERS, PIPELINES, TOPICS, Kube
from barnabas_operator.reconcile.clusters import reconcile_cluster
from barnabas_operator.reconcile.context import Context
from barnabas_operator.reconcile.pipelines import reconcile_pipeline
from barnabas_operator.reconcile.status import write_refusal
from barnabas_operator.reconcile.topics import reconcile_topics_of, wait_for_cluster

R = TypeVar("R", KafkaCluster, KafkaTopic, KafkaPipeline)

# Seconds until the next look: soon while something is under way, often enough for the figures of
# pipelines to be of use, and now and then to mend what was changed behind our back.
SOON_S: Final = 2.0
FIGURES_S: Final = 5.0
RESYNC_S: Final = 30.0


@dataclass(frozen=True, slots=True, order=True)
class Key:
    """A cluster by name, whether it exists or is only named by topics and pipelines."""

    namespace: str
    cluster: str

    def __str__(self) -> str:
        return f"{self.namespace}/{self.cluster}"


def key_of(document: Any) -> Key | None:
    """The cluster that a resource is or names; None if it names none."""
    namespace = document["metadata"].get("namespace") or "default"
    if document.get("kind") == CLUSTERS.kind:
        return Key(namespace, document["metadata"]["name"])
    cluster = (document.get("spec") or {}).get("cluster")
    return Key(namespace, cluster) if isinstance(cluster, str) and cluster else None


def all_keys(kube: Kube, namespaces: Iterable[str | None]) -> frozenset[Key]:
    """Every cluster that is or is named; a namespace of None stands for all. Raises KubeError."""
    found = (
        key_of(document)
        for namespace in namespaces
        for kind in (CLUSTERS, TOPICS, PIPELINES)
        for document in kube.list(kind, namespace)
    )
    return frozenset(key for key in found if key is not None)


def reconcile(key: Key, context: Context) -> float:
    """One pass; returns the seconds until the next one is due. Raises KubeError."""
    kube = context.kube
    document = kube.get(CLUSTERS, key.namespace, key.cluster)
    topics = _named(key, kube.list(TOPICS, key.namespace), read_topic, context)
    pipelines = _named(key, kube.list(PIPELINES, key.namespace), read_pipeline, context)
    cluster = _read(document, read_cluster, context) if document else None
    if cluster is not None and cluster.meta.deleting:
        # Its objects go with it; its topics stay on their disks.
        return RESYNC_S
    told: list[tuple[Condition, ...]] = []
    if cluster is not None:
        status = reconcile_cluster(cluster, context)
        body = KafkaCluster(spec=cluster.body.spec, status=status)
        cluster = Resource(cluster.meta, body)
        told.append(status.conditions)
        told += [each.conditions for each in reconcile_topics_of(cluster, topics, context)]
    elif document is None:
        wait_for_cluster(topics, context)
    told += [
        reconcile_pipeline(pipeline, cluster, context).conditions
        for pipeline in pipelines
        if not pipeline.meta.deleting
    ]
    if any(condition.type == RECONCILING for conditions in told for condition in conditions):
        return SOON_S
    return FIGURES_S if pipelines else RESYNC_S


def _named(
    key: Key,
    documents: Iterable[dict[str, Any]],
    read: Callable[[dict[str, Any]], Resource[R]],
    context: Context,
) -> list[Resource[R]]:
    resources = (
        _read(document, read, context) for document in documents if key_of(document) == key
    )
    return [resource for resource in resources if resource is not None]


def _read(
    document: dict[str, Any], read: Callable[[dict[str, Any]], Resource[R]], context: Context
) -> Resource[R] | None:
    try:
        return read(document)
    except ResourceError as error:
        write_refusal(document, read_metadata(document), str(error), context=context)
        return None
