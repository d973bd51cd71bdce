"""The ledger: topics that are to be deleted with their resources, and what protects them from it.

A topic is entered before it is created, if its resource says `deletionPolicy: Delete`. When the
resource is gone the topic is an orphan and is deleted. That needs no finalizer, so a resource can
be deleted while no operator runs.

An entry has the id of the topic once that is known. Without it, or where the topic has another, the
topic may be another owner's: it is not deleted.

A deletion cannot be undone, so everything in the API protects: a resource of the recorded name or
uid, parsed or not, and every resource that may mean the topic. `plan.shards` has how the ledger is
stored.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from barnabas_operator.api.storage import DeletionPolicy
from barnabas_operator.plan.namespaces import foreign_resource, origin_of, parse_foreign
from barnabas_operator.plan.orphans import PresentResources
from barnabas_operator.plan.shards import Format
from barnabas_operator.plan.topics import Topic


@dataclass(frozen=True, slots=True, kw_only=True)
class LedgerEntry:
    """The resource with which a topic is deleted; older versions recorded neither uid nor id.

    Of resources of another namespace (empty: that of the cluster) each topic is entered, whatever
    its policy: only the entry says which topics are of that namespace.
    """

    resource: str
    uid: str = ""
    topic_id: str = ""
    namespace: str = ""
    policy: DeletionPolicy = DeletionPolicy.DELETE
    # The uid of the definition of KafkaTopics, empty where it is not known.
    definition: str = ""


Ledger = Mapping[str, LedgerEntry]


class Present(PresentResources):
    """What exists in the API, as far as it protects topics."""

    __slots__ = ()

    NAME_FIELD = "topicName"


def parse_former_ledger(data: Mapping[str, str]) -> tuple[Ledger, tuple[str, ...]]:
    """The ledger of an earlier version, which had an item for every managed topic.

    Returns the entries of topics that are deleted with their resources, and lines for a shard for
    the items that cannot be parsed.
    """
    entries, unparsed = {}, []
    for name, text in data.items():
        try:
            document = json.loads(text)
            policy, entry = DeletionPolicy(document["deletionPolicy"]), _entry(document)
        except (ValueError, KeyError, TypeError, AttributeError):
            unparsed.append(json.dumps({"topic": name, "unparsed": text}))
            continue
        if policy is DeletionPolicy.DELETE:
            entries[name] = entry
    return entries, tuple(unparsed)


def _entry(document: Mapping[str, Any]) -> LedgerEntry:
    if "resource" not in document:
        return _foreign_entry(document)
    texts = (document["resource"], document.get("uid", ""), document.get("topicId", ""))
    if not (all(isinstance(text, str) for text in texts) and texts[0]):
        raise ValueError("resource, uid and topicId must be texts")
    return LedgerEntry(
        resource=texts[0],
        uid=texts[1],
        topic_id=texts[2],
        definition=str(document.get("definition", "")),
    )


def _foreign_entry(document: Mapping[str, Any]) -> LedgerEntry:
    texts = (*parse_foreign(document["foreignResource"]), document["uid"], document["topicId"])
    if not all(isinstance(text, str) for text in texts):
        raise ValueError("uid and topicId must be texts")
    namespace, name, uid, topic_id = texts
    return LedgerEntry(
        resource=name,
        uid=uid,
        topic_id=topic_id,
        namespace=namespace,
        policy=DeletionPolicy(document["deletionPolicy"]),
        definition=str(document.get("definition", "")),
    )


def _written(entry: LedgerEntry) -> Mapping[str, Any]:
    definition = {"definition": entry.definition} if entry.definition else {}
    ids = {"uid": entry.uid, "topicId": entry.topic_id, **definition}
    if entry.namespace:
        resource = foreign_resource(entry.namespace, entry.resource)
        return {**resource, **ids, "deletionPolicy": entry.policy.value}
    return {"resource": entry.resource, **ids}


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
        origin, policy, entry = origin_of(topic), topic.body.spec.deletion_policy, kept.get(name)
        if name not in ids and entry is not None and entry.namespace != origin:
            continue
        if policy is not DeletionPolicy.DELETE and not origin:
            kept.pop(name, None)
        elif name in ids:
            kept[name] = LedgerEntry(
                resource=topic.meta.name,
                uid=topic.meta.uid,
                topic_id=ids[name],
                namespace=origin,
                policy=policy,
            )
    return kept


def with_policies(
    ledger: Ledger, owners: Mapping[str, Topic], leaving: Sequence[Topic]
) -> dict[str, LedgerEntry]:
    """The ledger without topics of the cluster's namespace whose resource says Retain now, or said
    so when it went; with the policies of those of other namespaces.

    That needs no answer of a broker: a user who sets that and deletes the resource afterwards means
    it. A resource that is `leaving` speaks for its own entry only: another may have the topic by
    now.
    """
    policies = {topic.meta.uid: topic.body.spec.deletion_policy for topic in leaving}
    kept = {}
    for name, entry in ledger.items():
        said = policies.get(entry.uid, entry.policy)
        owner = owners.get(name)
        if owner is not None and origin_of(owner) == entry.namespace:
            now = owner.body.spec.deletion_policy
        else:
            now = said
        if entry.namespace:
            kept[name] = replace(entry, policy=now)
        elif DeletionPolicy.RETAIN not in (said, now):
            kept[name] = entry
    return kept
