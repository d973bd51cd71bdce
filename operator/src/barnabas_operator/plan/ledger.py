"""The ledger: topics that are to be deleted with their resources, and what protects them from it.

A topic is entered before it is created, if its resource says `deletionPolicy: Delete`. When the
resource is gone the topic is an orphan and is deleted. That needs no finalizer, so a resource can
be deleted while no operator runs.

An entry has the id of the topic once that is known. Without it, or where the topic has another, the
topic may be somebody else's: it is not deleted.

A deletion cannot be undone, so everything in the API protects: a resource of the recorded name or
uid, parsed or not, and every resource that may mean the topic. `plan.shards` has how the ledger is
stored.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from barnabas_operator.api.storage import DeletionPolicy
from barnabas_operator.plan.shards import Format, Stored, change, parse
from barnabas_operator.plan.topics import Topic


@dataclass(frozen=True, slots=True, kw_only=True)
class LedgerEntry:
    """The resource with which a topic is deleted; older versions recorded neither uid nor id."""

    resource: str
    uid: str = ""
    topic_id: str = ""


Ledger = Mapping[str, LedgerEntry]
StoredLedger = Stored[LedgerEntry]


@dataclass(frozen=True, slots=True, kw_only=True)
class Present:
    """What exists in the API, as far as it protects topics: names, uids, names in Kafka."""

    names: frozenset[str]
    uids: frozenset[str]
    topics: frozenset[str]

    @classmethod
    def of(cls, documents: Iterable[Mapping[str, Any]], cluster: str) -> Present:
        """Of all KafkaTopics of a cluster's namespace, as the API server has them."""
        names, uids, topics = set(), set(), set()
        for document in documents:
            meta, spec = document["metadata"], document.get("spec")
            names.add(meta["name"])
            uids.add(meta.get("uid", ""))
            fields: Mapping[str, Any] = spec if isinstance(spec, Mapping) else {}
            named = fields.get("cluster")
            if isinstance(named, str) and named != cluster:
                continue
            topic = fields.get("topicName")
            topics.add(topic if isinstance(topic, str) and topic else meta["name"])
        return cls(names=frozenset(names), uids=frozenset(uids - {""}), topics=frozenset(topics))

    def protects(self, topic: str, entry: LedgerEntry) -> bool:
        """Whether anything is left that is, or names, what the entry is about."""
        return entry.resource in self.names or entry.uid in self.uids or topic in self.topics


def parse_shards(shards: Mapping[int, str]) -> StoredLedger:
    """The ledger of the texts of its shards, by their numbers."""
    return parse(shards, FORMAT)


def changed_shards(
    stored: StoredLedger, entries: Ledger, unparsed: Sequence[str] = ()
) -> tuple[StoredLedger, dict[int, str]]:
    """See `shards.change`."""
    return change(stored, entries, FORMAT, unparsed)


def parse_former_ledger(data: Mapping[str, str]) -> tuple[Ledger, tuple[str, ...]]:
    """The ledger of an earlier version, which had an item for every managed topic.

    Returns the entries of topics that are deleted with their resources, and lines for a shard for
    the items that cannot be parsed.
    """
    entries, unparsed = {}, []
    for name, text in data.items():
        try:
            told = json.loads(text)
            policy, entry = DeletionPolicy(told["deletionPolicy"]), _entry(told)
        except (ValueError, KeyError, TypeError, AttributeError):
            unparsed.append(json.dumps({"topic": name, "unparsed": text}))
            continue
        if policy is DeletionPolicy.DELETE:
            entries[name] = entry
    return entries, tuple(unparsed)


def _entry(told: Mapping[str, Any]) -> LedgerEntry:
    texts = (told["resource"], told.get("uid", ""), told.get("topicId", ""))
    if not (all(isinstance(text, str) for text in texts) and texts[0]):
        raise ValueError("resource, uid and topicId must be texts")
    return LedgerEntry(resource=texts[0], uid=texts[1], topic_id=texts[2])


def _written(entry: LedgerEntry) -> Mapping[str, Any]:
    return {"resource": entry.resource, "uid": entry.uid, "topicId": entry.topic_id}


FORMAT: Final = Format("topic", _entry, _written)


def next_ledger(
    ledger: Ledger, topics: Mapping[str, Topic], ids: Mapping[str, str]
) -> dict[str, LedgerEntry]:
    """The ledger from now on, given the resource of each topic and the ids of managed topics.

    A topic that is to be created has an empty id. One that is not managed has none: its entry, if
    it has one, stays as it was. A resource that says Retain takes its topic out in any case.
    """
    kept = dict(ledger)
    for name, topic in topics.items():
        if topic.body.spec.deletion_policy is not DeletionPolicy.DELETE:
            kept.pop(name, None)
        elif name in ids:
            meta = topic.meta
            kept[name] = LedgerEntry(resource=meta.name, uid=meta.uid, topic_id=ids[name])
    return kept


def orphans(ledger: Ledger, present: Present) -> list[str]:
    """The topics to delete: nothing in the API is or names what their entries are about."""
    return sorted(name for name, entry in ledger.items() if not present.protects(name, entry))
