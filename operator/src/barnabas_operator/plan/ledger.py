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
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from barnabas_operator.api.storage import DeletionPolicy
from barnabas_operator.plan.orphans import PresentResources
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


class Present(PresentResources):
    """What exists in the API, as far as it protects topics."""

    __slots__ = ()

    NAME_FIELD = "topicName"


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
