"""Topics reconciled: on a real broker, and with the resources and the ledger round it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from barnabas_broker.testing import Broker
from barnabas_operator.api.reading import read_topic
from barnabas_operator.brokers import AdminBrokers, Brokers, BrokersError
from barnabas_operator.plan.topics import AlterConfig, Topic
from barnabas_operator.reconcile.reconciler import Key, reconcile
from barnabas_operator.reconcile.topics import Outcome, reconcile_topics
from tests.operator import examples
from tests.operator.memory_kube import MemoryKube
from tests.operator.ports import MemoryBrokers, context_on, ledger

KEY = Key("default", "quickstart")


def _topic(name: str, **spec: Any) -> Topic:
    return read_topic(examples.topic(name, **spec))


def _outcomes(topics: list[Topic], brokers: Brokers) -> Mapping[str, Outcome]:
    return reconcile_topics(topics, brokers).outcomes


def _up(*documents: dict[str, Any], brokers: MemoryBrokers) -> MemoryKube:
    """A Kubernetes in which the quickstart's cluster is ready."""
    kube = MemoryKube(examples.cluster(), *documents)
    context = context_on(kube, brokers)
    reconcile(KEY, context)
    kube.settle()
    reconcile(KEY, context)
    return kube


def _ready(kube: MemoryKube, name: str) -> tuple[str, str]:
    conditions = kube.find("KafkaTopic", name)["status"]["conditions"]
    (ready,) = [each for each in conditions if each["type"] == "Ready"]
    return ready["status"], ready["reason"]


def test_life_of_a_topic_on_a_real_broker(kafka_broker: Broker) -> None:
    """Created, grown, configured, put back after somebody changed it."""
    brokers = AdminBrokers(kafka_broker.bootstrap_servers)
    settings = {"retention.ms": "60000", "cleanup.policy": "compact"}
    name = "life-of-a-topic"
    outcome = _outcomes([_topic(name, partitions=2, config=settings)], brokers)[name]
    assert outcome.verdict.ready
    assert outcome.view is not None
    assert (outcome.view.partitions, outcome.view.config) == (2, settings)
    assert len(outcome.view.topic_id) == 22

    spec = {"partitions": 4, "config": {"retention.ms": "70000"}}
    status = {"topicId": outcome.view.topic_id}
    wanted = read_topic({**examples.topic(name, **spec), "status": status})
    view = _outcomes([wanted], brokers)[name].view
    assert view is not None
    assert (view.partitions, view.config) == (4, {"retention.ms": "70000"})

    brokers.alter_configs({name: AlterConfig(put={"retention.ms": "1"})})
    assert _outcomes([wanted], brokers)[name].view == view


def test_a_refused_topic_does_not_stop_the_others(kafka_broker: Broker) -> None:
    """Two replicas on one broker cannot be; the next topic is made all the same."""
    brokers = AdminBrokers(kafka_broker.bootstrap_servers)
    outcomes = _outcomes([_topic("too-many", replicas=2), _topic("just-right")], brokers)
    verdict = outcomes["too-many"].verdict
    assert (verdict.ready, verdict.stalled, verdict.reason) == (False, True, "Refused")
    assert "INVALID_REPLICATION_FACTOR" in verdict.message
    assert outcomes["just-right"].verdict.ready


def test_a_topic_waits_for_brokers_that_are_to_be_there(kafka_broker: Broker) -> None:
    """One of two is away: that passes by itself, and three replicas on two brokers never fit."""
    brokers = AdminBrokers(kafka_broker.bootstrap_servers)
    topics = [_topic("of-two", replicas=2), _topic("of-three", replicas=3)]
    outcomes = reconcile_topics(topics, brokers, broker_count=2).outcomes
    waits, refused = outcomes["of-two"].verdict, outcomes["of-three"].verdict
    assert (waits.reason, waits.settled, waits.stalled) == ("WaitingForBrokers", False, False)
    assert "INVALID_REPLICATION_FACTOR" in waits.message
    assert (refused.reason, refused.stalled) == ("Refused", True)


def test_a_second_resource_for_a_topic_reports_the_owner() -> None:
    """A conflict is the younger one's, and names the other."""
    older = examples.topic("older", topicName="shared")
    younger = examples.topic("younger", topicName="shared", partitions=9)
    younger["metadata"]["creationTimestamp"] = "2026-02-01T00:00:00Z"
    kube = _up(younger, older, brokers=MemoryBrokers())
    assert _ready(kube, "older") == ("True", "Ready")
    assert _ready(kube, "younger") == ("False", "Conflict")
    message = kube.find("KafkaTopic", "younger")["status"]["conditions"][0]["message"]
    assert "KafkaTopic older" in message


@pytest.mark.parametrize(("policy", "survives"), [("Delete", False), ("Retain", True)])
def test_a_topic_without_its_resource_follows_the_deletion_policy(
    policy: str, survives: bool
) -> None:
    """The ledger knows when the resource is gone; no finalizer is ever set."""
    brokers = MemoryBrokers()
    kube = _up(examples.topic(deletionPolicy=policy), brokers=brokers)
    assert "finalizers" not in kube.find("KafkaTopic", "packages")["metadata"]
    kube.remove("KafkaTopic", "packages")
    reconcile(KEY, context_on(kube, brokers))
    assert ("packages" in brokers.views) is survives
    assert ledger(kube) == {}


def test_a_topic_that_cannot_be_deleted_yet_stays_remembered() -> None:
    """The ledger forgets a topic only when it is deleted."""
    brokers = MemoryBrokers()
    kube = _up(examples.topic(deletionPolicy="Delete"), brokers=brokers)
    kube.remove("KafkaTopic", "packages")
    refusal = BrokersError("TOPIC_DELETION_DISABLED", "no", reachable=True)
    brokers.refuses["packages"] = refusal
    reconcile(KEY, context_on(kube, brokers))
    assert "packages" in ledger(kube)
    brokers.refuses.clear()
    reconcile(KEY, context_on(kube, brokers))
    assert brokers.views == {}


def test_topics_outlive_their_cluster() -> None:
    """Deleting the cluster deletes no topic: the data is on its claims."""
    brokers = MemoryBrokers()
    kube = _up(examples.topic(deletionPolicy="Delete"), brokers=brokers)
    kube.find("KafkaCluster", "quickstart")["metadata"]["deletionTimestamp"] = "2026-01-03"
    kube.remove("KafkaTopic", "packages")
    reconcile(KEY, context_on(kube, brokers))
    assert "packages" in brokers.views


def test_a_topic_waits_for_its_cluster() -> None:
    """Without a cluster the topic says which one it waits for."""
    kube = MemoryKube(examples.topic())
    reconcile(KEY, context_on(kube))
    assert _ready(kube, "packages") == ("False", "ClusterNotFound")
    types = {each["type"] for each in kube.find("KafkaTopic", "packages")["status"]["conditions"]}
    assert types == {"Ready", "Reconciling"}


def test_an_unreachable_cluster_is_waited_for() -> None:
    """No verdict about a topic that nobody could be asked about."""
    brokers = MemoryBrokers()
    kube = _up(examples.topic(), brokers=brokers)
    brokers.error = BrokersError("_TRANSPORT", "down", reachable=False)
    reconcile(KEY, context_on(kube, brokers))
    assert _ready(kube, "packages") == ("True", "Ready")
    kube.put(examples.topic(partitions=9))
    reconcile(KEY, context_on(kube, brokers))
    assert _ready(kube, "packages") == ("False", "WaitingForCluster")
