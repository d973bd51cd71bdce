"""Orphans: ledger entries whose resources are gone, and what in the API protects an entry from it.

A deletion cannot be undone, so everything in the API protects: a resource of the recorded name or
uid, parsed or not, and every resource that may mean the same thing in Kafka.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol, Self


class Entry(Protocol):
    """What a ledger has of each thing in Kafka: the resource that it belongs to."""

    @property
    def resource(self) -> str:
        """The name of the resource."""
        ...

    @property
    def uid(self) -> str:
        """The uid of the resource, empty where it is not known."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class PresentResources:
    """What of a kind exists in the API: names, uids, and the names in Kafka that these mean."""

    # The field of the spec with the name in Kafka, where that is not the name of the resource.
    NAME_FIELD: ClassVar[str]

    names: frozenset[str]
    uids: frozenset[str]
    in_kafka: frozenset[str]

    @classmethod
    def of(cls, documents: Iterable[Mapping[str, Any]], cluster: str) -> Self:
        """Of all resources of a kind in a cluster's namespace, as the API server has them."""
        names, uids, in_kafka = set(), set(), set()
        for document in documents:
            meta, spec = document["metadata"], document.get("spec")
            names.add(meta["name"])
            uids.add(meta.get("uid", ""))
            fields: Mapping[str, Any] = spec if isinstance(spec, Mapping) else {}
            named = fields.get("cluster")
            if isinstance(named, str) and named != cluster:
                continue
            name = fields.get(cls.NAME_FIELD)
            in_kafka.add(name if isinstance(name, str) and name else meta["name"])
        return cls(
            names=frozenset(names), uids=frozenset(uids - {""}), in_kafka=frozenset(in_kafka)
        )

    def protects(self, name: str, entry: Entry) -> bool:
        """Whether anything is left that is, or names, what the entry is about."""
        return entry.resource in self.names or entry.uid in self.uids or name in self.in_kafka


def orphans(ledger: Mapping[str, Entry], present: PresentResources) -> list[str]:
    """What to delete: nothing in the API is or names what these entries are about."""
    return sorted(name for name, entry in ledger.items() if not present.protects(name, entry))
