"""Confirms orphans right before what they stand for in Kafka is deleted.

The lists that a pass began with may come from a cache, so they are read again; a resource that
cannot be parsed may mean any topic or user. Where a doubt is left, nothing is deleted in this pass.

With a cluster or its namespace its resources are deleted too, in any order: its volumes may be kept
for a cluster that is created again, and what is on them stays.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Generic, TypeVar

from barnabas_operator.api.clusters import KafkaCluster
from barnabas_operator.api.reading import Metadata, Resource, read_metadata
from barnabas_operator.kube import CLUSTERS, NAMESPACES, Kind, KubeError
from barnabas_operator.plan.orphans import EntryT, PresentResources, orphans
from barnabas_operator.reconcile.context import Context
from barnabas_operator.reconcile.namespaces import list_again

logger = logging.getLogger(__name__)

PresentT = TypeVar("PresentT", bound=PresentResources)


@dataclass(frozen=True, slots=True, kw_only=True)
class DeletionGuard(Generic[PresentT]):
    """What keeps things in Kafka from being deleted: the resources of their kind that exist, and
    resources that cannot be parsed."""

    present: PresentT
    unparsed: tuple[str, ...] = ()


def present_now(
    kind: Kind,
    cluster: Resource[KafkaCluster],
    ledger: Mapping[str, EntryT],
    guard: DeletionGuard[PresentT],
    context: Context,
) -> tuple[dict[str, EntryT], PresentT] | None:
    """The orphans of the pass, and the resources that exist by a new list; None if nothing may be
    deleted. Raises KubeError."""
    doubtful = {name: ledger[name] for name in orphans(ledger, guard.present)}
    if not doubtful:
        return None
    meta, names = cluster.meta, f"{kind.plural.removeprefix('kafka')} {', '.join(doubtful)}"
    if guard.unparsed:
        unparsed = ", ".join(guard.unparsed)
        if context.warnings.is_new(f"{names}: {unparsed}"):
            logger.warning(
                "%s/%s: %s are not deleted while resources cannot be parsed: %s;"
                " upgrade the operator, or correct them",
                meta.namespace, meta.name, names, unparsed,
            )  # fmt: skip
        return None
    try:
        found = list_again(kind, type(guard.present), cluster, doubtful, context)
        # After the lists: what was deleted before its resources is gone by now.
        if reason := leaving(cluster.meta, context):
            if context.warnings.is_new(f"{names}: {reason}"):
                text = "%s/%s: %s are not deleted: %s"
                logger.warning(text, meta.namespace, meta.name, names, reason)
            return None
        return doubtful, found
    except KubeError as error:
        if error.status != 404:
            raise
        # Their definition is gone, or not served for a while: that proves no deletion.
        if context.warnings.is_new(f"{names}: {error}"):
            logger.warning("%s/%s: %s are not deleted: %s", meta.namespace, meta.name, names, error)
        return None


def leaving(cluster: Metadata, context: Context) -> str:
    """Why a cluster, or its namespace, is being deleted or may be; empty if it stays. KubeError."""
    found = context.kube.get(CLUSTERS, cluster.namespace, cluster.name)
    if found is None or read_metadata(found).uid != cluster.uid:
        return f"KafkaCluster {cluster.name} was deleted"
    if read_metadata(found).deleting:
        return f"KafkaCluster {cluster.name} is being deleted"
    try:
        namespace = context.kube.get(NAMESPACES, "", cluster.namespace)
    except KubeError as error:
        if not error.refused:
            raise
        return "the operator may not get namespaces; update the operator's chart or manifest"
    if namespace is not None and read_metadata(namespace).deleting:
        return f"namespace {cluster.namespace} is being deleted"
    return ""
