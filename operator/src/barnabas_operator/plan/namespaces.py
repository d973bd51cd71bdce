"""KafkaTopics and KafkaUsers of other namespaces than their cluster's, and what each may have.

A cluster names the namespaces that it allows. What a resource of another namespace has created is
of that namespace: the ledger says so, and nothing else does. It neither adopts what exists already
nor gets what is of a third namespace, whatever its annotations say and however old it is. Resources
of the cluster's own namespace come first for unowned topics; they get what another namespace has
only with the annotation that adopts, once no resource that is allowed has it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

from barnabas_operator.api.reading import Resource
from barnabas_operator.api.topics import ADOPT, Adopt, KafkaTopic
from barnabas_operator.api.users import KafkaUser

Member = Resource[KafkaTopic] | Resource[KafkaUser]


class Held(Protocol):
    """What an entry of a ledger says of its resource."""

    @property
    def resource(self) -> str:
        """The name of the resource."""
        ...

    @property
    def namespace(self) -> str:
        """The namespace of the resource, empty for that of the cluster."""
        ...


def origin_of(resource: Member) -> str:
    """The namespace of a resource, empty for that of its cluster."""
    own = resource.meta.namespace
    return "" if resource.body.spec.cluster_namespace in (None, own) else own


def cluster_namespace_of(document: Mapping[str, Any]) -> str | None:
    """The namespace of the cluster that a resource names; None if it says so in no known way."""
    own = document["metadata"].get("namespace") or "default"
    spec = document.get("spec")
    given = spec.get("clusterNamespace") if isinstance(spec, Mapping) else None
    return str(own) if given is None else given if isinstance(given, str) else None


def label_of(resource: Member) -> str:
    """The resource as messages name it: with its namespace where that is not the cluster's."""
    origin = origin_of(resource)
    return f"{origin}/{resource.meta.name}" if origin else resource.meta.name


def precedence(resource: Member, entry: Held | None) -> tuple[bool, bool, str, str, str]:
    """The order of resources that name the same: the first one has it."""
    origin, meta = origin_of(resource), resource.meta
    holds = entry is not None and entry.namespace == origin
    return not holds, bool(origin), meta.created, origin, meta.name


def objection_to(resource: Member, entry: Held | None) -> str:
    """Why a resource does not get what the ledger has; empty if it may."""
    origin = origin_of(resource)
    if entry is None or entry.namespace == origin:
        return ""
    holder = f"{entry.namespace}/{entry.resource}" if entry.namespace else entry.resource
    text = f"it is of {resource.kind} {holder}, of another namespace"
    if origin:
        return text
    if resource.meta.annotations.get(ADOPT) == Adopt.RESOURCE:
        return ""
    return f"{text}; annotate the resource with {ADOPT}={Adopt.RESOURCE} to take it over"


def foreign_resource(namespace: str, name: str) -> Mapping[str, Any]:
    """The resource of an entry as the ledger has it.

    Not under the key of other entries: an operator that looks for all resources in the cluster's
    namespace would find that this one is gone, and delete what it is about.
    """
    return {"foreignResource": {"namespace": namespace, "name": name}}


def parse_foreign(document: Mapping[str, Any]) -> tuple[str, str]:
    """Namespace and name of a resource; raises ValueError, KeyError or TypeError."""
    texts = document["namespace"], document["name"]
    if not all(isinstance(text, str) and text for text in texts):
        raise ValueError("namespace and name must be texts")
    return texts
