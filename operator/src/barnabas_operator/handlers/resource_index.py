"""What the watches and the resyncs have seen of each cluster, so that a pass need not list it.

Of KafkaTopics, KafkaUsers and KafkaPipelines it has the documents, by the cluster that they name: a
pass would otherwise list every topic of its namespace. They are kept as JSON, a fifth of what they
take as objects, and few passes read them. Of KafkaClusters and of what the operator
owns it has uid and resourceVersion alone, and with them the revision of a cluster: a number that is
another one after each change. It says that nothing has changed, and nothing else
(reconcile.steady).

A resource of ours counts as changed when its spec is another one, whatever its resourceVersion: a
watch that was open when its definition changed shows it without the fields of the new definition,
until it is listed again.

A list replaces what the index has of a namespace; events since that list began count more. A
namespace that was never listed in full has no answer, so a start works from lists. The index may be
late: what cannot be undone is decided by a list of its own (reconcile.kafka_topics).

The event of a deletion has the last spec, which may say Retain where no pass has seen it.
"""

from __future__ import annotations

import json
import threading
from collections import OrderedDict
from collections.abc import Collection, Iterable, Mapping
from sys import intern
from typing import Any, Final, NamedTuple

from barnabas_operator.api.storage import DeletionPolicy
from barnabas_operator.kube import CLUSTERS, PIPELINES, TOPICS, USERS, Document, Kind, trimmed
from barnabas_operator.names import CLUSTER, INSTANCE
from barnabas_operator.plan.namespaces import cluster_namespace_of
from barnabas_operator.reconcile.reconciler import OWNED
from barnabas_operator.reconcile.steady import Revision
from barnabas_operator.resources.objects import digest

# Kept as documents.
NAMING: Final = (TOPICS, USERS, PIPELINES)
RESOURCES: Final = (CLUSTERS, *NAMING)
KINDS: Final = (*RESOURCES, *OWNED)
# So many deleted topics are remembered, the latest.
DELETIONS: Final = 10_000

# Kind, namespace, name.
Place = tuple[str, str, str]
# Namespace of a cluster and its name; the name is None where a resource names none in a known way.
Owner = tuple[str, str | None]
# Kind and owner.
Naming = tuple[str, str, str | None]


class Indexed(NamedTuple):
    """What an object is compared by: its owner, its version, and the spec of a resource of ours."""

    owner: Owner
    # Uid and resourceVersion; None where the object has no version.
    version: tuple[str, str] | None
    # A hash; empty where the spec does not count.
    spec: str


class ResourceIndex:
    """Thread-safe."""

    def __init__(self, deletions: int = DELETIONS, watched: Collection[str] = ()) -> None:
        """`watched` are the namespaces of which anything is listed; empty for all."""
        self._watched = frozenset(watched)
        self._deletions = deletions
        self._lock = threading.Lock()
        self._by_cluster: dict[Naming, dict[Place, str]] = {}
        self._objects: dict[Place, Indexed] = {}
        # The number of objects of each owner, and the number of its last change.
        self._owners: dict[Owner, tuple[int, int]] = {}
        self._changes = 0
        # What was listed in full: kind and namespace, "" for all.
        self._complete: set[tuple[str, str]] = set()
        self._events = 0
        # When each object last had an event, as far back as a list may have begun.
        self._last_event: dict[Place, int] = {}
        # The uids of deleted topics and users whose last policy was not Delete, the oldest first.
        self._retained: OrderedDict[str, None] = OrderedDict()

    def begin(self) -> int:
        """To be called before a list, and handed to `replace` with what was listed."""
        with self._lock:
            return self._events

    def replace(
        self, kind: Kind, namespace: str | None, documents: Iterable[Document], begun: int
    ) -> None:
        """All objects of a kind in a namespace (None: in all), as a list had them."""
        listed = {_place(kind, document): document for document in documents}
        with self._lock:
            known = [
                place
                for place in self._objects
                if place[0] == kind.kind and namespace in (None, place[1])
            ]
            for place in known:
                if place not in listed and self._last_event.get(place, 0) <= begun:
                    self._remove(place)
            for place, document in listed.items():
                if self._last_event.get(place, 0) <= begun:
                    self._put(kind, place, document)
            # No list that matters began before this one: resyncs follow one another.
            old = [place for place, at in self._last_event.items() if at <= begun]
            for place in old:
                if place[0] == kind.kind and namespace in (None, place[1]):
                    del self._last_event[place]
            self._complete.add((kind.kind, namespace or ""))

    def invalidate(self, kind: Kind, namespace: str | None) -> None:
        """What the index has of a kind may be out of date until it is listed again."""
        with self._lock:
            self._complete.discard((kind.kind, namespace or ""))

    def observe(self, kind: Kind, event: Mapping[str, Any]) -> None:
        """An event of a watch."""
        document = event["object"]
        place = _place(kind, document)
        with self._lock:
            self._events += 1
            self._last_event[place] = self._events
            if event.get("type") is None and kind not in NAMING:
                # Its watch lists again, as after 410 Gone: deletions before that had no event.
                self._complete -= {(kind.kind, place[1]), (kind.kind, "")}
            if event.get("type") == "DELETED":
                self._remove(place)
                if kind in (TOPICS, USERS) and _policy(document) != DeletionPolicy.DELETE:
                    self._retain(document["metadata"].get("uid", ""))
            else:
                self._put(kind, place, document)

    def named(self, kind: Kind, namespace: str, cluster: str) -> list[Document] | None:
        """What names the cluster or may mean it; None if the index is incomplete."""
        with self._lock:
            if not self._answers(kind, namespace):
                return None
            found = {
                **self._by_cluster.get((kind.kind, namespace, None), {}),
                **self._by_cluster.get((kind.kind, namespace, cluster), {}),
            }
        return [json.loads(found[name]) for name in sorted(found)]

    def is_listed(self, namespace: str) -> bool:
        """Whether `named` has an answer for clusters of a namespace."""
        with self._lock:
            return all(self._answers(kind, namespace) for kind in NAMING)

    def revision(self, namespace: str, cluster: str) -> Revision | None:
        """Another one after each change of what a pass reads; None if the index is incomplete."""
        with self._lock:
            if not all(self._is_complete(kind, namespace) for kind in KINDS):
                return None
            own, any_of_them = (
                self._owners.get((namespace, each), (0, 0))[1] for each in (cluster, None)
            )
            return own, any_of_them

    def uid(self, kind: Kind, namespace: str, name: str) -> str:
        """The uid of an object, empty where none is known."""
        with self._lock:
            found = self._objects.get((kind.kind, namespace, name))
            return found.version[0] if found and found.version else ""

    def retained(self, uid: str) -> bool:
        """Whether a KafkaTopic or KafkaUser was deleted whose last policy was not Delete."""
        with self._lock:
            return uid in self._retained

    def _answers(self, kind: Kind, namespace: str) -> bool:
        # Resources of watched namespaces may name clusters of others, which are never listed.
        listed = not self._watched or namespace in self._watched
        return not listed or self._is_complete(kind, namespace)

    def _is_complete(self, kind: Kind, namespace: str) -> bool:
        return not self._complete.isdisjoint({(kind.kind, namespace), (kind.kind, "")})

    def _retain(self, uid: str) -> None:
        if uid:
            self._retained[uid] = None
        if len(self._retained) > self._deletions:
            self._retained.popitem(last=False)

    def _put(self, kind: Kind, place: Place, document: Document) -> None:
        found = _indexed(kind, place, document)
        if found.version and self._objects.get(place) == found:
            return
        self._remove(place)
        self._objects[place] = found
        self._count(found.owner, 1)
        if kind not in NAMING:
            return
        text = json.dumps(trimmed(kind, document), separators=(",", ":"))
        self._by_cluster.setdefault((kind.kind, *found.owner), {})[place] = text

    def _remove(self, place: Place) -> None:
        known = self._objects.pop(place, None)
        if known is None:
            return
        self._count(known.owner, -1)
        documents = self._by_cluster.get(naming := (place[0], *known.owner), {})
        documents.pop(place, None)
        if not documents:
            self._by_cluster.pop(naming, None)

    def _count(self, owner: Owner, more: int) -> None:
        """One object more or less; an owner without any is forgotten, its number is not reused."""
        self._changes += 1
        count = self._owners.get(owner, (0, 0))[0] + more
        if count:
            self._owners[owner] = count, self._changes
        else:
            self._owners.pop(owner, None)


def _owner_of(kind: Kind, namespace: str, document: Mapping[str, Any]) -> Owner:
    cluster = _cluster_of(kind, document)
    if kind not in (TOPICS, USERS) or cluster is None:
        return namespace, cluster
    named_in = cluster_namespace_of(document)
    return (namespace, None) if named_in is None else (named_in, cluster)


def _cluster_of(kind: Kind, document: Mapping[str, Any]) -> str | None:
    """The cluster whose passes read an object."""
    if kind is CLUSTERS:
        return str(document["metadata"]["name"])
    if kind in NAMING:
        spec = document.get("spec")
        named = spec.get("cluster") if isinstance(spec, Mapping) else None
        return named if isinstance(named, str) else None
    labels = document["metadata"].get("labels") or {}
    # Claims have only the one, and objects of earlier versions only the other.
    return labels.get(CLUSTER) or labels.get(INSTANCE)


def _indexed(kind: Kind, place: Place, document: Mapping[str, Any]) -> Indexed:
    meta = document["metadata"]
    version = meta.get("resourceVersion", "")
    return Indexed(
        owner=_owner_of(kind, place[1], document),
        version=(meta.get("uid", ""), version) if version else None,
        spec=digest(document.get("spec")) if kind is CLUSTERS or kind in NAMING else "",
    )


def _policy(document: Mapping[str, Any]) -> object:
    spec = document.get("spec")
    return spec.get("deletionPolicy") if isinstance(spec, Mapping) else None


def _place(kind: Kind, document: Mapping[str, Any]) -> Place:
    meta = document["metadata"]
    return kind.kind, intern(meta.get("namespace") or "default"), meta["name"]
