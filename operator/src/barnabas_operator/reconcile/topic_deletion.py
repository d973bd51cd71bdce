"""Deletion of topics whose resources are gone, each beyond doubt or not at all."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from typing import Final

from barnabas_operator.api.storage import DeletionPolicy
from barnabas_operator.brokers import Brokers, BrokersError
from barnabas_operator.plan.ledger import Ledger, LedgerEntry, Present
from barnabas_operator.plan.orphans import orphans
from barnabas_operator.plan.topics import INTERNAL_TOPICS, TopicView
from barnabas_operator.reconcile.topics import batches

logger = logging.getLogger(__name__)

# Few, since their resources are looked up one by one right before.
DELETE_BATCH: Final = 20


def delete_orphans(
    ledger: Ledger, present: Present, brokers: Brokers, *, exists: Callable[[LedgerEntry], bool]
) -> Ledger:
    """Delete the topics whose resources are gone; returns the ledger without them.

    `exists` asks whether there is the resource of an entry, right before its topic would be
    deleted. Raises BrokersError if no broker answers.
    """
    remaining = dict(ledger)
    for batch in batches(orphans(ledger, present), DELETE_BATCH):
        found = brokers.topics(batch)
        due = []
        for name in batch:
            view = found.get(name)
            if isinstance(view, BrokersError):
                logger.warning("topic %s cannot be deleted: %s", name, view)
            elif view is not None and _stays_of_its_namespace(ledger[name], view):
                continue
            elif reason := _objection(name, ledger[name].topic_id, view):
                logger.warning("topic %s is not deleted with its KafkaTopic: %s", name, reason)
                del remaining[name]
            elif view is None:
                del remaining[name]
            elif not exists(ledger[name]):
                due.append(name)
        for name in _delete(due, ledger, brokers):
            del remaining[name]
    return remaining


def _stays_of_its_namespace(entry: LedgerEntry, view: TopicView) -> bool:
    """Whether an entry stays for a resource that comes back."""
    return entry.policy is DeletionPolicy.RETAIN and entry.topic_id == view.topic_id


def _objection(name: str, topic_id: str, view: TopicView | None) -> str:
    """Why a topic is not the one that was created or adopted; empty if it is, or is gone."""
    if name in INTERNAL_TOPICS:
        return "it is an internal topic"
    if view is None or (topic_id and view.topic_id == topic_id):
        return ""
    if not topic_id:
        return "it is not recorded which topic was created; delete it yourself if it was this one"
    return f"its topic id is {view.topic_id}, not {topic_id}: another client created it"


def _delete(names: Sequence[str], ledger: Ledger, brokers: Brokers) -> Sequence[str]:
    """Delete topics; returns those that are gone. Raises BrokersError if no broker answers."""
    if not names:
        return ()
    for name in names:
        logger.info("topic %s: delete, its KafkaTopic %s is gone", name, ledger[name].resource)
    failed: Mapping[str, BrokersError] = brokers.delete_topics(names)
    for name, error in failed.items():
        logger.warning("topic %s cannot be deleted: %s", name, error)
    return [name for name in names if name not in failed]
