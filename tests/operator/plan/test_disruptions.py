"""How many brokers may be evicted."""

from __future__ import annotations

from typing import Any

import pytest

from barnabas_operator.plan.disruptions import max_unavailable
from barnabas_operator.plan.observed import ClusterView
from barnabas_operator.reconcile.reconciler import Key, reconcile
from tests.operator import examples
from tests.operator.memory_kube import MemoryKube
from tests.operator.ports import MemoryBrokers, context_on

KEY = Key("default", "quickstart")
THREE = examples.cluster(
    brokers={"replicas": 3, "storage": {"size": "1Gi"}},
    listeners=[{"name": "plain", "port": 9092}],
)


def _view(*out_of_sync: int) -> ClusterView:
    return ClusterView(cluster_id="an-id", broker_ids=(0, 1, 2), out_of_sync=frozenset(out_of_sync))


@pytest.mark.parametrize(
    ("view", "present", "allowed"),
    [
        (_view(), None, 1),
        (_view(), 0, 1),
        (_view(1), 1, 0),
        (_view(7), 1, 1),
        (None, None, 1),
        (None, 0, 0),
        (None, 1, 1),
        (None, "50%", 1),
    ],
)
def test_none_while_a_replica_is_out_of_sync(
    view: ClusterView | None, present: int | str | None, allowed: int
) -> None:
    """Broker 7 was removed; brokers that do not answer leave the budget as it is, and what another
    program has made of it ends no pass."""
    found = None if present is None else {"spec": {"maxUnavailable": present}}
    assert max_unavailable(3, view, found) == allowed


def _up(brokers: MemoryBrokers) -> MemoryKube:
    kube = MemoryKube(THREE)
    for _ in range(3):
        reconcile(KEY, context_on(kube, brokers))
        kube.settle()
    return kube


def _allowed(kube: MemoryKube) -> int:
    kube.budget()
    status: dict[str, Any] = kube.find("PodDisruptionBudget", "quickstart-broker")["status"]
    return int(status["disruptionsAllowed"])


def test_a_second_drain_waits_until_the_first_broker_is_in_sync() -> None:
    """It is ready before: the budget is closed until then, and open again after."""
    brokers = MemoryBrokers()
    kube = _up(brokers)
    assert _allowed(kube) == 1
    brokers.view = _view(1)
    reconcile(KEY, context_on(kube, brokers))
    assert _allowed(kube) == 0
    brokers.view = _view()
    reconcile(KEY, context_on(kube, brokers))
    assert _allowed(kube) == 1


def test_a_roll_waits_for_a_drain() -> None:
    """The budget lets one go: the eviction of the other is tried again, and the status says so."""
    brokers = MemoryBrokers()
    kube = _up(brokers)
    document = {**THREE, "spec": {**THREE["spec"], "config": {"num.partitions": "3"}}}
    kube.put(document)
    reconcile(KEY, context_on(kube, brokers))
    kube.settle()
    kube.find("PodDisruptionBudget", "quickstart-broker")["status"]["disruptionsAllowed"] = 0
    reconcile(KEY, context_on(kube, brokers))
    conditions = kube.find("KafkaCluster", "quickstart")["status"]["conditions"]
    (waiting,) = [each for each in conditions if each["type"] == "Reconciling"]
    assert "would violate the pod's disruption budget" in waiting["message"]
    assert "Stalled" not in [each["type"] for each in conditions]
    kube.settle()
    reconcile(KEY, context_on(kube, brokers))
    assert kube.find("Pod", "quickstart-broker-2")["metadata"]["deletionTimestamp"]
