"""Orphans: ledger entries whose resources are gone, and what in the API protects an entry from it.

A deletion cannot be undone, so everything in the API protects: a resource of the recorded name or
uid, parsed or not, and every resource that may mean the same thing in Kafka. What was entered under
another definition of its kind is protected too: its resource went with that definition.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import Field, dataclass, field, replace
from typing import Any, ClassVar, Protocol, Self, TypeVar

from barnabas_operator.api.storage import DeletionPolicy
from barnabas_operator.plan.namespaces import cluster_namespace_of


class Entry(Protocol):
    """What a ledger has of each thing in Kafka: the resource that it belongs to. A dataclass."""

    __dataclass_fields__: ClassVar[dict[str, Field[Any]]]

    @property
    def resource(self) -> str:
        """The name of the resource."""
        ...

    @property
    def uid(self) -> str:
        """The uid of the resource, empty where it is not known."""
        ...

    @property
    def namespace(self) -> str:
        """The namespace of the resource, empty for that of the cluster."""
        ...

    @property
    def definition(self) -> str:
        """The uid of the definition of the resource's kind, empty where it is not known."""
        ...

    @property
    def policy(self) -> DeletionPolicy:
        """The last deletionPolicy of the resource."""
        ...


EntryT = TypeVar("EntryT", bound=Entry)


@dataclass(frozen=True, slots=True, kw_only=True)
class PresentResources:
    """What of a kind exists in the API: names, uids, and the names in Kafka that these mean."""

    # The field of the spec with the name in Kafka, where that is not the name of the resource.
    NAME_FIELD: ClassVar[str]

    names: frozenset[str]
    uids: frozenset[str]
    in_kafka: frozenset[str]
    # What exists in other namespaces that have resources of the cluster, and whether a namespace
    # was read: it is neither while the cluster does not allow it, or it cannot be listed.
    others: Mapping[str, Self] = field(default_factory=dict)
    looked_at: Callable[[str], bool] = lambda _: False
    # The uid of the definition of the kind, empty where it is not known; None if it was not read.
    definition: str | None = None

    @classmethod
    def of(
        cls, documents: Iterable[Mapping[str, Any]], cluster: str, home: str | None = None
    ) -> Self:
        """Of all resources of a kind in one namespace, of which some name a cluster of `home`."""
        names, uids, in_kafka = set(), set(), set()
        for document in documents:
            meta, spec = document["metadata"], document.get("spec")
            names.add(meta["name"])
            uids.add(meta.get("uid", ""))
            fields: Mapping[str, Any] = spec if isinstance(spec, Mapping) else {}
            named = fields.get("cluster")
            if isinstance(named, str) and named != cluster:
                continue
            if home is not None and cluster_namespace_of(document) not in (home, None):
                continue
            name = fields.get(cls.NAME_FIELD)
            in_kafka.add(name if isinstance(name, str) and name else meta["name"])
        return cls(
            names=frozenset(names), uids=frozenset(uids - {""}), in_kafka=frozenset(in_kafka)
        )

    @classmethod
    def of_namespaces(
        cls,
        documents: Iterable[Mapping[str, Any]],
        cluster: str,
        home: str,
        looked_at: Callable[[str], bool],
    ) -> Self:
        """Of the resources of all namespaces that name a cluster of the namespace `home`."""
        found: dict[str, list[Mapping[str, Any]]] = {home: []}
        for document in documents:
            found.setdefault(document["metadata"].get("namespace") or "default", []).append(
                document
            )
        by_namespace = {name: cls.of(each, cluster, home) for name, each in found.items()}
        own = by_namespace.pop(home)
        return replace(own, others=by_namespace, looked_at=looked_at)

    @property
    def named(self) -> frozenset[str]:
        """The names in Kafka that resources of any namespace mean."""
        return self.in_kafka.union(*(each.in_kafka for each in self.others.values()))

    def protects(self, name: str, entry: Entry) -> bool:
        """Whether anything is left that is, or names, what the entry is about.

        A resource of another namespace protects only what is of its own namespace: it could keep
        what it may never have.
        """
        if name in self.in_kafka or self.is_of_another(entry):
            return True
        present: PresentResources | None = self
        if entry.namespace:
            if not self.looked_at(entry.namespace):
                return True
            present = self.others.get(entry.namespace)
        return present is not None and (
            entry.resource in present.names or entry.uid in present.uids or name in present.in_kafka
        )

    def is_of_another(self, entry: Entry) -> bool:
        """Whether the definition of an entry's resource is not the one that there is now."""
        return self.definition is not None and entry.definition not in ("", self.definition)


def orphans(ledger: Mapping[str, Entry], present: PresentResources) -> list[str]:
    """What to delete: nothing in the API is or names what these entries are about."""
    return sorted(name for name, entry in ledger.items() if not present.protects(name, entry))


def is_due(ledger: Mapping[str, Entry], present: PresentResources) -> bool:
    """Whether an orphan goes with its resource."""
    found = orphans(ledger, present)
    return any(ledger[name].policy is DeletionPolicy.DELETE for name in found)


def without_retained(ledger: Mapping[str, EntryT], names: Collection[str]) -> dict[str, EntryT]:
    """The ledger without the names whose resources went with `deletionPolicy: Retain`.

    Those of other namespaces stay in it with that policy: only the entry says whose they are.
    """
    return {
        name: replace(entry, policy=DeletionPolicy.RETAIN) if name in names else entry
        for name, entry in ledger.items()
        if name not in names or entry.namespace
    }
