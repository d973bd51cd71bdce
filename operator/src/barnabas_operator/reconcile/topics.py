"""The KafkaTopics of a cluster: ask for the topics once, then make each as its resource says.

`reconcile_topics` needs no Kubernetes: `barnabas local` calls it with the resources of a file.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from barnabas_operator.api.clusters import KafkaCluster
from barnabas_operator.api.conditions import Verdict, is_ready
from barnabas_operator.api.reading import Resource
from barnabas_operator.api.storage import DeletionPolicy
from barnabas_operator.api.topics import TopicStatus
from barnabas_operator.brokers import Brokers, BrokersError
from barnabas_operator.kube import CONFIG_MAPS
from barnabas_operator.names import ClusterNames
from barnabas_operator.plan.topics import (
    AlterConfig,
    CreateTopic,
    GrowPartitions,
    Ledger,
    LedgerEntry,
    Refusal,
    Topic,
    TopicStep,
    TopicView,
    next_ledger,
    orphans,
    owners,
    plan_topic,
    topic_name,
)
from barnabas_operator.reconcile.clusters import bootstrap_servers
from barnabas_operator.reconcile.context import Context
from barnabas_operator.reconcile.status import write_status
from barnabas_operator.resources import objects

LOG: Final = logging.getLogger(__name__)
COMPONENT: Final = "topics"


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """How a topic fares; `view` is the topic as it is now, None if there is none."""

    verdict: Verdict
    view: TopicView | None = None


def reconcile_topics(topics: Sequence[Topic], brokers: Brokers) -> dict[str, Outcome]:
    """Make the topics as their resources say; returns the outcome of each resource by its name.

    Raises BrokersError if the cluster cannot be reached; a refusal concerns its topic alone.
    """
    managed = owners(topics)
    existing = brokers.topic_names() & frozenset(managed)
    views = dict(brokers.topics(existing))
    outcomes = {}
    for topic in topics:
        name = topic_name(topic)
        owner = managed[name]
        if owner.meta.name != topic.meta.name:
            outcomes[topic.meta.name] = _conflict(name, owner)
        else:
            outcomes[topic.meta.name] = _reconcile(topic, views.get(name), brokers)
    return outcomes


def delete_orphans(ledger: Ledger, topics: Sequence[Topic], brokers: Brokers) -> Ledger:
    """Delete the topics whose resource is gone and said so; returns the ledger without them."""
    managed = owners(topics)
    remaining = next_ledger(ledger, managed)
    for name in orphans(ledger, managed):
        LOG.info("topic %s: delete, its KafkaTopic %s is gone", name, ledger[name].resource)
        try:
            brokers.delete_topic(name)
        except BrokersError as error:
            if not error.reachable:
                raise
            LOG.warning("topic %s cannot be deleted: %s", name, error)
            continue
        del remaining[name]
    return remaining


def _conflict(name: str, owner: Topic) -> Outcome:
    text = f"topic {name} is managed by KafkaTopic {owner.meta.name}; delete one of the two"
    return Outcome(verdict=Verdict(ready=False, reason="Conflict", message=text, stalled=True))


def _reconcile(topic: Topic, view: TopicView | None, brokers: Brokers) -> Outcome:
    name = topic_name(topic)
    steps = plan_topic(topic.body.spec, view)
    if isinstance(steps, Refusal):
        verdict = Verdict(ready=False, reason=steps.reason, message=steps.message, stalled=True)
        return Outcome(verdict=verdict, view=view)
    for step in steps:
        LOG.info("topic %s: %s", name, step)
        try:
            _take(step, name, brokers)
        except BrokersError as error:
            if not error.reachable:
                raise
            verdict = Verdict(ready=False, reason="Refused", message=str(error), stalled=True)
            return Outcome(verdict=verdict, view=view)
    if steps:
        view = _look_again(name, brokers)
    if view is None:
        verdict = Verdict(ready=False, reason="Creating", message="being created", settled=False)
        return Outcome(verdict=verdict)
    return Outcome(verdict=Verdict(ready=True, reason="Ready"), view=view)


def _look_again(name: str, brokers: Brokers) -> TopicView | None:
    """The topic after a change; None while the broker that is asked has not heard of it."""
    if name not in brokers.topic_names():
        return None
    return brokers.topics(frozenset({name})).get(name)


def _take(step: TopicStep, name: str, brokers: Brokers) -> None:
    match step:
        case CreateTopic():
            brokers.create_topic(
                name, partitions=step.partitions, replicas=step.replicas, config=step.config
            )
        case GrowPartitions():
            brokers.grow_partitions(name, step.partitions)
        case AlterConfig():
            brokers.alter_config(name, put=step.put, drop=step.drop)


# --- on Kubernetes --------------------------------------------------------------------------------


def reconcile_topics_of(
    cluster: Resource[KafkaCluster], topics: Sequence[Topic], context: Context
) -> list[TopicStatus]:
    """One pass over all KafkaTopics of a cluster and the ledger; returns the statuses told."""
    topics = [topic for topic in topics if not topic.meta.deleting]
    if not is_ready(cluster.body.status.conditions):
        text = f"KafkaCluster {cluster.meta.name} is not ready yet"
        return _wait(topics, "WaitingForCluster", text, context)
    try:
        brokers = context.brokers(bootstrap_servers(cluster))
        # Remembered before it is done: a topic that was made and forgotten would never be deleted.
        ledger = read_ledger(cluster, context)
        remembered = next_ledger(ledger, owners(topics))
        _write_ledger(cluster, ledger, remembered, context)
        outcomes = reconcile_topics(topics, brokers)
        remaining = delete_orphans(remembered, topics, brokers)
    except BrokersError as error:
        return _wait(topics, "Unreachable", str(error), context)
    _write_ledger(cluster, remembered, remaining, context)
    told = []
    for topic in topics:
        outcome = outcomes[topic.meta.name]
        status = _status(topic, outcome.view)
        told.append(write_status(topic, status, outcome.verdict, context))
    return told


def wait_for_cluster(topics: Sequence[Topic], context: Context) -> None:
    """Tell topics whose cluster does not exist so; it may come."""
    for topic in topics:
        text = f"there is no KafkaCluster {topic.body.spec.cluster} in this namespace"
        _wait([topic], "ClusterNotFound", text, context)


def _wait(
    topics: Sequence[Topic], reason: str, message: str, context: Context
) -> list[TopicStatus]:
    verdict = Verdict(ready=False, reason=reason, message=message, settled=False)
    return [write_status(topic, topic.body.status, verdict, context) for topic in topics]


def _status(topic: Topic, view: TopicView | None) -> TopicStatus:
    if view is None:
        return TopicStatus(topic_name=topic_name(topic))
    return TopicStatus(
        topic_name=view.name,
        topic_id=view.topic_id,
        partitions=view.partitions,
        replicas=view.replicas,
    )


def read_ledger(cluster: Resource[KafkaCluster], context: Context) -> Ledger:
    """The topics that are managed, as they were remembered."""
    names = ClusterNames(cluster.meta.name, cluster.meta.namespace)
    found = context.kube.get(CONFIG_MAPS, names.namespace, names.ledger)
    entries: Mapping[str, str] = (found or {}).get("data") or {}
    ledger = {}
    for name, text in entries.items():
        entry = json.loads(text)
        ledger[name] = LedgerEntry(
            resource=entry["resource"], policy=DeletionPolicy(entry["deletionPolicy"])
        )
    return ledger


def _write_ledger(
    cluster: Resource[KafkaCluster], before: Ledger, ledger: Ledger, context: Context
) -> None:
    if before == ledger:
        return
    names = ClusterNames(cluster.meta.name, cluster.meta.namespace)
    body = objects.document(
        "v1", "ConfigMap", names.ledger, owner=cluster.meta, labels=names.labels(COMPONENT)
    )
    body["data"] = {
        name: json.dumps({"resource": entry.resource, "deletionPolicy": entry.policy.value})
        for name, entry in ledger.items()
    }
    context.kube.apply(objects.owned(body, owner=cluster.meta, kind=cluster.kind))
