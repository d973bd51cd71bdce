"""Resources of other namespaces than their cluster's: which are refused, and what others leave.

Nothing is created for one that is refused. What was created before its namespace was withdrawn
stays as it is, also when the resource goes: it is neither changed nor deleted.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final, TypeVar

from barnabas_operator.api.clusters import KafkaCluster
from barnabas_operator.api.reading import Resource, read_metadata
from barnabas_operator.api.storage import DeletionPolicy
from barnabas_operator.kube import Document, Kind, KubeError
from barnabas_operator.plan.findings import Reason
from barnabas_operator.plan.orphans import Entry, PresentResources
from barnabas_operator.reconcile.context import Context
from barnabas_operator.reconcile.definitions import definition_uid
from barnabas_operator.reconcile.status import write_refusal

logger = logging.getLogger(__name__)

P = TypeVar("P", bound=PresentResources)

# Of the status of a KafkaTopic or KafkaUser: there is something in Kafka.
CREATED: Final = ("topicId", "username")


def namespace_of(document: Document) -> str:
    """The namespace of a resource."""
    return str(document["metadata"].get("namespace") or "default")


def is_allowed(cluster: Resource[KafkaCluster], namespace: str, context: Context) -> bool:
    """Whether resources of a namespace may name the cluster, and the operator watches it."""
    own = namespace == cluster.meta.namespace
    return own or (context.watches(namespace) and cluster.body.spec.allows_namespace(namespace))


def refuse_unallowed(
    documents: Iterable[Document], home: str, cluster: str, context: Context
) -> None:
    """Report to resources of other namespaces that the cluster does not allow them.

    A cluster that does not exist is reported in the same way: it is not theirs to find out.
    """
    for document in documents:
        where = namespace_of(document)
        text = (
            f"there is no KafkaCluster {cluster} in namespace {home}, or its spec.allowedNamespaces"
            f" does not have {where}"
        )
        _refuse(document, Reason.NAMESPACE_NOT_ALLOWED, text, context)


def refuse_unwatched(documents: Iterable[Document], home: str, context: Context) -> None:
    """Report to resources that the operator does not act in the namespace of their cluster."""
    if context.watched and home not in context.watched:
        text = (
            f"the operator does not watch namespace {home}; add it to watchNamespaces of the"
            " operator's chart"
        )
    else:
        text = (
            f"another operator acts in namespace {home}, whose Lease it holds; have one operator"
            " watch the namespaces of the cluster and of this resource"
        )
    for document in documents:
        _refuse(document, Reason.NAMESPACE_NOT_WATCHED, text, context)


def _refuse(document: Document, reason: Reason, text: str, context: Context) -> None:
    elsewhere = not context.watches(namespace_of(document))
    if elsewhere or document["metadata"].get("deletionTimestamp"):
        return
    status: Any = document.get("status") or {}
    if any(status.get(name) for name in CREATED):
        text += "; what was created before is left as it is, and is not deleted with the resource"
    meta = read_metadata(document)
    write_refusal(document, meta, text, context=context, reason=reason.value)


def list_again(
    kind: Kind,
    present: type[P],
    cluster: Resource[KafkaCluster],
    entries: Mapping[str, Entry],
    context: Context,
) -> P:
    """What exists now, asked for directly, in the namespaces of these entries. Raises KubeError.

    Of a namespace that cannot be listed nothing is an orphan. Where the definition is gone, being
    deleted, or another one, its resources went with it, and nothing that has been theirs is one.
    """
    home = cluster.meta.namespace
    documents = context.kube.list(kind, home)
    listed = set()
    for namespace in sorted({entry.namespace for entry in entries.values()} - {""}):
        if not is_allowed(cluster, namespace, context):
            continue
        try:
            documents = [*documents, *context.kube.list(kind, namespace)]
        except KubeError as error:
            logger.warning("Listing failed: namespace=%s %s", namespace, error)
            continue
        listed.add(namespace)
    found = present.of_namespaces(documents, cluster.meta.name, home, listed.__contains__)
    # After the lists: a definition that is not being deleted now was not when they were empty.
    found = replace(found, definition=definition_uid(kind, context.kube))
    held = [
        name
        for name, entry in entries.items()
        if entry.policy is DeletionPolicy.DELETE and found.is_of_another(entry)
    ]
    if held and context.warnings.is_new(f"definition of {kind.kind}: {', '.join(held)}"):
        logger.warning(
            "%s/%s: %s are not deleted: the definition of %s was deleted or cannot be read",
            home, cluster.meta.name, ", ".join(held), kind.kind,
        )  # fmt: skip
    return found


def exists(kind: Kind, cluster: Resource[KafkaCluster], entry: Entry, context: Context) -> bool:
    """Whether there is the resource of an entry. Raises KubeError."""
    namespace = entry.namespace or cluster.meta.namespace
    return context.kube.get(kind, namespace, entry.resource) is not None


def list_named(kind: Kind, home: str, context: Context) -> Sequence[Document]:
    """The resources of a kind in all watched namespaces. Raises KubeError for that of the cluster.

    One that cannot be listed is left out: what is of it in Kafka stays as it is.
    """
    kube = context.kube
    if not context.watched:
        return kube.list(kind, None)
    documents = kube.list(kind, home) if context.watches(home) else []
    for namespace in context.watched:
        if namespace == home:
            continue
        try:
            documents = [*documents, *kube.list(kind, namespace)]
        except KubeError as error:
            logger.warning("Listing failed: namespace=%s %s", namespace, error)
    return documents
