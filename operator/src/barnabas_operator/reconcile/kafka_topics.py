"""The KafkaTopics of a cluster on Kubernetes: ledger, topics, statuses, deletions, in this order.

A deletion comes last, and only in a pass in which everything else was answered.
"""

from __future__ import annotations

import dataclasses
import logging
from collections.abc import Sequence
from dataclasses import dataclass

from barnabas_operator.api.clusters import KafkaCluster
from barnabas_operator.api.reading import Resource
from barnabas_operator.api.topics import TopicStatus
from barnabas_operator.brokers import Brokers, BrokersError
from barnabas_operator.kube import TOPICS, KubeError
from barnabas_operator.plan.ledger import Ledger, Present, with_policies
from barnabas_operator.plan.namespaces import label_of
from barnabas_operator.plan.orphans import is_due, without_retained
from barnabas_operator.plan.topics import CREATING, Topic, owners, topic_name
from barnabas_operator.reconcile.clusters import connect
from barnabas_operator.reconcile.context import Context
from barnabas_operator.reconcile.ledger import LedgerStore
from barnabas_operator.reconcile.namespaces import exists
from barnabas_operator.reconcile.orphans import DeletionGuard, present_now
from barnabas_operator.reconcile.status import write_statuses, write_waiting
from barnabas_operator.reconcile.topic_deletion import delete_orphans
from barnabas_operator.reconcile.topics import Outcome, reconcile_topics

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Managed:
    """The statuses of a cluster's KafkaTopics.

    `settled`: every topic was described and has its status, none was changed, none is an orphan.
    """

    statuses: list[TopicStatus]
    settled: bool = False


def reconcile_topics_of(
    cluster: Resource[KafkaCluster],
    topics: Sequence[Topic],
    guard: DeletionGuard[Present],
    context: Context,
) -> Managed:
    """One pass over all KafkaTopics of a cluster and the ledger. Raises KubeError."""
    leaving = [topic for topic in topics if topic.meta.deleting]
    topics = [topic for topic in topics if not topic.meta.deleting]
    store = LedgerStore.read(cluster, context.kube, context.warnings.is_new)
    entries = with_policies(store.entries, owners(topics, store.entries), leaving)
    # Of what is there its resource decides; this is for what was seen to go with Retain.
    retained = {name for name, entry in entries.items() if context.retained(entry.uid)}
    store.write(without_retained(entries, retained))
    if not cluster.body.status.serves_topics:
        text = f"KafkaCluster {cluster.meta.name} does not answer"
        return Managed(statuses=_wait(topics, "WaitingForCluster", text, context))
    brokers = connect(cluster, context)
    try:
        result = reconcile_topics(
            topics,
            brokers,
            ledger=store.entries,
            remember=store.write,
            broker_count=cluster.body.spec.brokers.replicas,
        )
    except BrokersError as error:
        return Managed(statuses=_wait(topics, "Unreachable", str(error), context))
    except KubeError as error:
        if error.refused:
            _wait(topics, "Refused", f"the ledger of topics: {error.message}", context)
        raise
    store.write(result.ledger)
    outcomes = [(topic, result.outcomes[label_of(topic)]) for topic in topics]
    statuses = write_statuses(
        [(topic, _status(topic, each), each.verdict) for topic, each in outcomes], context
    )
    if not result.failed:
        try:
            store.write(_delete_orphans(cluster, store.entries, guard, brokers, context))
        except BrokersError as error:
            logger.warning("%s: topics cannot be deleted: %s", cluster.meta.name, error)
    settled = (
        result.settled and len(statuses) == len(topics) and not is_due(store.entries, guard.present)
    )
    return Managed(statuses=statuses, settled=settled)


def wait_for_cluster(topics: Sequence[Topic], context: Context) -> None:
    """Write to topics that their cluster does not exist; it may be created later."""
    for topic in topics:
        text = f"there is no KafkaCluster {topic.body.spec.cluster} in this namespace"
        _wait([topic], "ClusterNotFound", text, context, always=True)


def _delete_orphans(
    cluster: Resource[KafkaCluster],
    ledger: Ledger,
    guard: DeletionGuard[Present],
    brokers: Brokers,
    context: Context,
) -> Ledger:
    """Delete what is an orphan beyond doubt: by this pass, by a new list, by name. KubeError."""
    found = present_now(TOPICS, cluster, ledger, guard, context)
    if found is None:
        return ledger
    doubtful, present = found
    left = delete_orphans(
        doubtful,
        present,
        brokers,
        exists=lambda entry: exists(TOPICS, cluster, entry, context),
    )
    deleted = doubtful.keys() - left.keys()
    return {name: entry for name, entry in ledger.items() if name not in deleted}


def _wait(
    topics: Sequence[Topic], reason: str, message: str, context: Context, *, always: bool = False
) -> list[TopicStatus]:
    write_waiting(topics, reason, message, context, always=always)
    return [topic.body.status for topic in topics]


def _status(topic: Topic, outcome: Outcome) -> TopicStatus:
    """The status without conditions. The topic id is the memory of what is managed: that of a topic
    which is not stays out, and the id of a topic that another client replaced stays in."""
    before, view = topic.body.status, outcome.view
    if view is None:
        known = "" if outcome.verdict.reason == CREATING else before.topic_id
        return dataclasses.replace(before, topic_name=topic_name(topic), topic_id=known)
    return TopicStatus(
        topic_name=view.name,
        topic_id=view.topic_id if outcome.managed else before.topic_id,
        partitions=view.partitions,
        replicas=view.replicas,
    )
