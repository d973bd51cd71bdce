"""KafkaTopics and KafkaPipelines by the cluster that they name, kept up by watches and resyncs.

A pass of one cluster would otherwise list every topic of its namespace. A list replaces what the
index has of a namespace; events since that list began count more. A namespace that was never listed
in full has no answer, so a start works from lists. The index may be late: what cannot be undone is
decided by a list of its own (reconcile.kafka_topics).

The event of a deletion has the last spec, which may say Retain where no pass has seen it.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Iterable, Mapping
from typing import Any, Final

from barnabas_operator.api.storage import DeletionPolicy
from barnabas_operator.kube import PIPELINES, TOPICS, Document, Kind

KINDS: Final = (TOPICS, PIPELINES)
# So many deleted topics are remembered, the latest.
DELETIONS: Final = 10_000

# Kind, namespace, name.
Place = tuple[str, str, str]
# Kind, namespace, cluster; the cluster is None where a resource names none in a known way.
Naming = tuple[str, str, str | None]


class ResourceIndex:
    """Thread-safe; documents are shared and must not be changed."""

    def __init__(self, deletions: int = DELETIONS) -> None:
        self._deletions = deletions
        self._lock = threading.Lock()
        self._by_cluster: dict[Naming, dict[str, Document]] = {}
        self._naming: dict[Place, Naming] = {}
        # What was listed in full: kind and namespace, "" for all.
        self._complete: set[tuple[str, str]] = set()
        self._events = 0
        # When each object last had an event, as far back as a list may have begun.
        self._last_event: dict[Place, int] = {}
        # The uids of deleted topics whose last policy was not Delete, the oldest deletion first.
        self._retained: OrderedDict[str, None] = OrderedDict()

    def begin(self) -> int:
        """To be called before a list, and handed to `replace` with what was listed."""
        with self._lock:
            return self._events

    def replace(
        self, kind: Kind, namespace: str | None, documents: Iterable[Document], begun: int
    ) -> None:
        """All objects of a kind in a namespace (None: in all), as a list had them."""
        if kind not in KINDS:
            return
        listed = {_place(kind, document): document for document in documents}
        with self._lock:
            known = [
                place
                for place in self._naming
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

    def observe(self, kind: Kind, event: Mapping[str, Any]) -> None:
        """An event of a watch."""
        if kind not in KINDS:
            return
        document = event["object"]
        place = _place(kind, document)
        with self._lock:
            self._events += 1
            self._last_event[place] = self._events
            if event.get("type") == "DELETED":
                self._remove(place)
                if kind is TOPICS and _policy(document) != DeletionPolicy.DELETE:
                    self._retain(document["metadata"].get("uid", ""))
            else:
                self._put(kind, place, document)

    def named(self, kind: Kind, namespace: str, cluster: str) -> list[Document] | None:
        """What names the cluster or may mean it; None if the index cannot tell."""
        with self._lock:
            if self._complete.isdisjoint({(kind.kind, namespace), (kind.kind, "")}):
                return None
            found = {
                **self._by_cluster.get((kind.kind, namespace, None), {}),
                **self._by_cluster.get((kind.kind, namespace, cluster), {}),
            }
            return [found[name] for name in sorted(found)]

    def retained(self, uid: str) -> bool:
        """Whether a KafkaTopic was deleted whose last policy was not Delete."""
        with self._lock:
            return uid in self._retained

    def _retain(self, uid: str) -> None:
        if uid:
            self._retained[uid] = None
        if len(self._retained) > self._deletions:
            self._retained.popitem(last=False)

    def _put(self, kind: Kind, place: Place, document: Document) -> None:
        self._remove(place)
        spec = document.get("spec")
        named = spec.get("cluster") if isinstance(spec, Mapping) else None
        naming = (kind.kind, place[1], named if isinstance(named, str) else None)
        # The larger half of many objects, and nothing that a pass asks of these kinds.
        meta = {
            name: value for name, value in document["metadata"].items() if name != "managedFields"
        }
        head = {"apiVersion": kind.api_version, "kind": kind.kind}
        self._by_cluster.setdefault(naming, {})[place[2]] = {**document, **head, "metadata": meta}
        self._naming[place] = naming

    def _remove(self, place: Place) -> None:
        naming = self._naming.pop(place, None)
        if naming is None:
            return
        documents = self._by_cluster[naming]
        del documents[place[2]]
        if not documents:
            del self._by_cluster[naming]


def _policy(document: Mapping[str, Any]) -> object:
    spec = document.get("spec")
    return spec.get("deletionPolicy") if isinstance(spec, Mapping) else None


def _place(kind: Kind, document: Mapping[str, Any]) -> Place:
    meta = document["metadata"]
    return kind.kind, meta.get("namespace") or "default", meta["name"]
