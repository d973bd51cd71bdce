"""The resources of a cluster, out of all documents of its namespace: those that can be parsed.

A resource that cannot be parsed, as one of a newer version, gets the error as its status and does
not block the others; it is counted, for nothing is deleted beside it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Generic, TypeVar

from barnabas_operator.api.clusters import KafkaCluster
from barnabas_operator.api.pipelines import KafkaPipeline
from barnabas_operator.api.reading import Resource, ResourceError, read_metadata
from barnabas_operator.api.topics import KafkaTopic
from barnabas_operator.api.users import KafkaUser
from barnabas_operator.kube import Document
from barnabas_operator.reconcile.context import Context
from barnabas_operator.reconcile.status import write_refusal

R = TypeVar("R", KafkaCluster, KafkaTopic, KafkaUser, KafkaPipeline)


@dataclass(frozen=True, slots=True)
class Readings(Generic[R]):
    """The resources that name a cluster, and the names of those that cannot be parsed."""

    resources: tuple[Resource[R], ...] = ()
    unparsed: tuple[str, ...] = ()


def read_named(
    documents: Iterable[Document],
    cluster: str,
    read: Callable[[Document], Resource[R]],
    context: Context,
) -> Readings[R]:
    """The topics, users or pipelines among the documents that name a cluster.

    One that does not say in a known way which cluster it names may mean any of the namespace.
    """
    resources, unparsed = [], []
    for document in documents:
        spec = document.get("spec")
        named = spec.get("cluster") if isinstance(spec, dict) else None
        if isinstance(named, str) and named != cluster:
            continue
        resource = read_one(document, read, context)
        if resource is None:
            unparsed.append(str(document["metadata"]["name"]))
        else:
            resources.append(resource)
    return Readings(tuple(resources), tuple(unparsed))


def read_one(
    document: Document, read: Callable[[Document], Resource[R]], context: Context
) -> Resource[R] | None:
    """The resource of a document, or None after its status says why it cannot be parsed."""
    try:
        return read(document)
    except ResourceError as error:
        write_refusal(document, read_metadata(document), str(error), context=context)
        return None
