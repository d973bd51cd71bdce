"""The ledger: topics that are to be deleted with their resources, and what protects them from it.

A topic is entered before it is created, if its resource says `deletionPolicy: Delete`. When the
resource is gone the topic is an orphan and is deleted. That needs no finalizer, so a resource can
be deleted while no operator runs.

An entry has the id of the topic once that is known. Without it, or where the topic has another, the
topic may be somebody else's: it is not deleted.

A deletion cannot be undone, so everything in the API protects: a resource of the recorded name or
uid, parsed or not, and every resource that may mean the topic. Entries that cannot be parsed are
kept as they are: they may be of a newer version.

The ledger is stored in shards, each a text with a JSON object a line. An entry stays in its shard,
so a change is a write of one shard; new entries go to the first one that has room.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from barnabas_operator.api.storage import DeletionPolicy
from barnabas_operator.plan.topics import Topic


@dataclass(frozen=True, slots=True, kw_only=True)
class LedgerEntry:
    """The resource with which a topic is deleted; older versions recorded neither uid nor id."""

    resource: str
    uid: str = ""
    topic_id: str = ""


Ledger = Mapping[str, LedgerEntry]

# A quarter of what a ConfigMap may hold: ids are filled in later, and a write is of a whole shard.
SHARD_BYTES: Final = 256 * 1024


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


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredLedger:
    """The ledger as it is stored: entries, the shard of each, and lines that cannot be parsed."""

    entries: Ledger = field(default_factory=dict)
    shards: Mapping[str, int] = field(default_factory=dict)
    unparsed: Mapping[int, tuple[str, ...]] = field(default_factory=dict)


def parse_shards(shards: Mapping[int, str]) -> StoredLedger:
    """The ledger of the texts of its shards, by their numbers."""
    entries: dict[str, LedgerEntry] = {}
    places: dict[str, int] = {}
    unparsed: dict[int, tuple[str, ...]] = {}
    for number, text in sorted(shards.items()):
        for line in filter(None, text.split("\n")):
            try:
                told = json.loads(line)
                name, entry = told["topic"], _entry(told)
                if not (isinstance(name, str) and name):
                    raise ValueError("topic must be a text")
            except (ValueError, KeyError, TypeError, AttributeError):
                unparsed[number] = (*unparsed.get(number, ()), line)
                continue
            entries[name], places[name] = entry, number
    return StoredLedger(entries=entries, shards=places, unparsed=unparsed)


def changed_shards(
    stored: StoredLedger, entries: Ledger, unparsed: Sequence[str] = ()
) -> tuple[StoredLedger, dict[int, str]]:
    """The ledger with these entries, and the texts of the shards that have changed.

    `unparsed` are further lines that cannot be parsed; they go to the first shard.
    """
    foreign = dict(stored.unparsed)
    changed = set()
    if unparsed:
        foreign[0] = (*foreign.get(0, ()), *unparsed)
        changed.add(0)
    lines: dict[int, list[str]] = {number: list(each) for number, each in foreign.items()}
    new = []
    for name, entry in sorted(entries.items()):
        number = stored.shards.get(name)
        if number is None:
            new.append((name, _line(name, entry)))
            continue
        lines.setdefault(number, []).append(_line(name, entry))
        if stored.entries[name] != entry:
            changed.add(number)
    changed |= {number for name, number in stored.shards.items() if name not in entries}
    places = {name: number for name, number in stored.shards.items() if name in entries}
    number = 0
    room = SHARD_BYTES - _size(lines.get(number, ()))
    for name, line in new:
        while room < len(line) + 1:
            number += 1
            room = SHARD_BYTES - _size(lines.get(number, ()))
        room -= len(line) + 1
        lines.setdefault(number, []).append(line)
        places[name] = number
        changed.add(number)
    texts = {each: "".join(f"{line}\n" for line in lines.get(each, ())) for each in changed}
    return StoredLedger(entries=dict(entries), shards=places, unparsed=foreign), texts


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


def _line(name: str, entry: LedgerEntry) -> str:
    told = {"topic": name, "resource": entry.resource, "uid": entry.uid, "topicId": entry.topic_id}
    return json.dumps(told)


def _size(lines: Iterable[str]) -> int:
    return sum(len(line) + 1 for line in lines)


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
