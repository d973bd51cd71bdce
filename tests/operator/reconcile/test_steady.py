"""Steady clusters: what is skipped, and that every change ends it."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable

import pytest

from barnabas_operator.brokers import BrokersError
from barnabas_operator.handlers.resource_index import KINDS, ResourceIndex
from barnabas_operator.kube import SERVICES, Document
from barnabas_operator.plan.observed import ClusterView
from barnabas_operator.plan.topics import TopicView
from barnabas_operator.plan.user_acls import Acl
from barnabas_operator.reconcile.context import Context
from barnabas_operator.reconcile.reconciler import (
    OWNED,
    RESYNC_S,
    SOON_S,
    Key,
    index_owned,
)
from barnabas_operator.reconcile.steady import FULL_PASS_S, SteadyClusters
from barnabas_operator.resources.objects import digest
from tests.operator import examples
from tests.operator.memory_kube import MemoryKube, select
from tests.operator.ports import MemoryBrokers, context_on

KEY = Key("default", "quickstart")


class Operator:
    """An operator with an index that hears of changes when it is told to."""

    def __init__(self, *documents: Document) -> None:
        self.kube = MemoryKube(*(documents or examples.quickstart()[:3]))
        self.brokers = MemoryBrokers()
        self.index = ResourceIndex()
        self.now = 0.0
        self.steady = SteadyClusters(self.index.revision, lambda: self.now)

    def hear(self) -> None:
        """What watches do: the index has everything as it is."""
        for kind in KINDS:
            found = select(self.kube.list, kind, None, OWNED.get(kind, ""))
            for each in found:
                # Controllers and kubelets of the tests write without a version.
                each["metadata"]["resourceVersion"] = digest([each])
            self.index.replace(kind, None, found, self.index.begin())

    def context(self) -> Context:
        """The ports of a pass."""
        return dataclasses.replace(
            context_on(self.kube, self.brokers),
            index=self.index.named,
            retained=self.index.retained,
        )

    def run_pass(self) -> float:
        """One pass; `requests` and `writes` are its own."""
        self.kube.requests.clear()
        self.kube.writes.clear()
        return self.steady.reconcile(KEY, self.context())

    def settle(self) -> None:
        """Until a pass has nothing to do."""
        for _ in range(3):
            self.hear()
            self.run_pass()
            self.kube.settle()
        self.hear()
        self.run_pass()
        assert self.kube.writes == []


@pytest.fixture
def operator() -> Operator:
    """One whose cluster is settled."""
    running = Operator()
    running.settle()
    return running


def test_a_settled_cluster_costs_no_request_to_the_api_server(operator: Operator) -> None:
    """Its brokers are asked all the same."""
    asked = len(operator.brokers.requests)
    operator.hear()
    assert operator.run_pass() == RESYNC_S
    assert operator.kube.requests == []
    assert len(operator.brokers.requests) > asked


def test_long_waits_are_polled_less_often(operator: Operator) -> None:
    """A broker that is away for a day is no pass every two seconds; any change is one soon."""
    operator.kube.unready("quickstart-broker-0")
    for _ in range(2):
        operator.hear()
        assert operator.run_pass() == SOON_S
    operator.now += 100.0
    operator.hear()
    assert operator.run_pass() == 10.0
    operator.now += 10_000.0
    operator.hear()
    assert operator.run_pass() == RESYNC_S
    operator.kube.edit("Pod", "quickstart-broker-0", lambda body: body["metadata"].update(x="y"))
    operator.hear()
    assert operator.run_pass() == SOON_S
    operator.now += 100.0
    # What the index does not know may have changed at any time.
    operator.index.invalidate(SERVICES, None)
    assert operator.run_pass() == SOON_S


CHANGES: dict[str, Callable[[MemoryKube], object]] = {
    "the spec": lambda kube: kube.put(examples.cluster(config={"num.partitions": "3"})),
    "a topic": lambda kube: kube.put(examples.topic("packages", partitions=9)),
    "a new topic": lambda kube: kube.put(examples.topic("new")),
    "a topic of a newer version": lambda kube: kube.put(examples.topic("new", cluster=["x"])),
    "a deleted topic": lambda kube: kube.remove("KafkaTopic", "packages"),
    "a StatefulSet": lambda kube: kube.remove("StatefulSet", "quickstart-broker"),
    "a Service": lambda kube: kube.remove("Service", "quickstart-bootstrap"),
    "a ConfigMap": lambda kube: kube.edit(
        "ConfigMap", "quickstart-broker", lambda body: body["data"].update(x="y")
    ),
    "a user": lambda kube: kube.put(examples.user()),
    "the ledger": lambda kube: kube.remove("ConfigMap", "quickstart-topics-0"),
    "a budget": lambda kube: kube.remove("PodDisruptionBudget", "quickstart-broker"),
    "a pod": lambda kube: kube.unready("quickstart-broker-0"),
    "a pod's death": lambda kube: kube.remove("Pod", "quickstart-zookeeper-0"),
    "a claim": lambda kube: kube.edit(
        "PersistentVolumeClaim",
        "data-quickstart-broker-0",
        lambda body: body["metadata"]["labels"].update(x="y"),
    ),
    "a label that selected an object": lambda kube: kube.edit(
        "Service", "quickstart-bootstrap", lambda body: body["metadata"].update(labels={})
    ),
}


@pytest.mark.parametrize("change", CHANGES)
def test_every_change_of_an_object_is_read(operator: Operator, change: str) -> None:
    """Of each kind that a pass reads, also what others did and what went."""
    CHANGES[change](operator.kube)
    operator.hear()
    operator.run_pass()
    assert "get KafkaCluster quickstart" in operator.kube.requests


def test_brokers_that_answer_otherwise_are_read(operator: Operator) -> None:
    """A topic that another client altered is put back, each time that it is."""
    packages = operator.brokers.views["packages"]
    altered = dataclasses.replace(packages, config={**packages.config, "retention.ms": "1"})
    for _ in range(2):
        operator.brokers.views["packages"] = altered
        operator.run_pass()
        assert operator.brokers.views["packages"] == packages
        operator.hear()
        operator.run_pass()
        operator.run_pass()
        assert operator.kube.requests == []


@pytest.mark.parametrize(
    "view",
    [
        ClusterView(cluster_id="an-id", broker_ids=(0,), leaderless=("packages-0",)),
        ClusterView(cluster_id="another-id", broker_ids=(0,), controller_id=0),
    ],
)
def test_a_changed_broker_state_updates_the_status(operator: Operator, view: ClusterView) -> None:
    """No object has changed: the brokers say so."""
    operator.brokers.view = view
    operator.run_pass()
    assert "status KafkaCluster quickstart" in operator.kube.writes


def test_a_lost_topic_is_created_again(operator: Operator) -> None:
    """And topics of others come and go without a whole pass."""
    operator.brokers.views["others"] = TopicView(
        name="others", topic_id="o", partitions=1, replicas=1, config={}
    )
    operator.run_pass()
    assert operator.kube.requests == []
    del operator.brokers.views["packages"]
    operator.run_pass()
    assert "packages" in operator.brokers.views


def test_brokers_that_do_not_answer(operator: Operator) -> None:
    """The pass says so; afterwards it is told that they do."""
    operator.brokers.error = BrokersError("_TIMED_OUT", "timed out", reachable=False)
    operator.run_pass()
    assert "status KafkaCluster quickstart" in operator.kube.writes
    operator.brokers.error = None
    operator.run_pass()
    assert "status KafkaCluster quickstart" in operator.kube.writes


def test_a_change_without_an_event_is_found_by_a_list(operator: Operator) -> None:
    """A watch may lose one. Lists of metadata find it, and a whole pass in any case."""
    operator.kube.remove("Service", "quickstart-bootstrap")
    operator.run_pass()
    assert operator.kube.requests == []
    index_owned(operator.kube, [None], operator.index)
    operator.run_pass()
    assert "apply Service quickstart-bootstrap" in operator.kube.writes


def test_a_whole_pass_is_made_in_any_case(operator: Operator) -> None:
    """Whatever the cache says."""
    operator.kube.remove("Service", "quickstart-bootstrap")
    operator.now = FULL_PASS_S / 3
    operator.run_pass()
    assert operator.kube.requests == []
    operator.now = FULL_PASS_S
    operator.run_pass()
    assert "apply Service quickstart-bootstrap" in operator.kube.writes


def test_an_incomplete_index_causes_a_full_read(operator: Operator) -> None:
    """A list of one kind was refused, or a watch ended."""
    operator.kube.fail("list Service", 503)
    index_owned(operator.kube, [None], operator.index)
    for _ in range(2):
        operator.run_pass()
        assert "get KafkaCluster quickstart" in operator.kube.requests
    operator.hear()
    operator.index.invalidate(SERVICES, None)
    operator.run_pass()
    assert "get KafkaCluster quickstart" in operator.kube.requests


def test_a_stale_index_does_not_decide_a_roll(operator: Operator) -> None:
    """The index is late: it has not heard that a pod is away, and a roll is asked for."""
    operator.kube.put(examples.cluster(config={"num.partitions": "3"}))
    operator.hear()
    operator.run_pass()
    operator.kube.settle()
    operator.hear()
    operator.kube.unready("quickstart-zookeeper-0")
    operator.run_pass()
    assert not [write for write in operator.kube.writes if write.startswith("evict")]


@pytest.mark.parametrize(
    "document",
    [
        examples.cluster(brokers={"storage": {"size": "1Gi"}}),
        examples.pipeline(),
        examples.cluster(rollPolicy={"type": "OnApproval"}, config={"num.partitions": "3"}),
    ],
    ids=["a warning", "a pipeline", "a roll that is held back"],
)
def test_time_dependent_clusters_are_never_skipped(operator: Operator, document: Document) -> None:
    """Time has a say in it, or a pod that no event tells of."""
    operator.kube.put(document)
    for _ in range(3):
        operator.hear()
        operator.run_pass()
        operator.kube.settle(pods=False)
    operator.hear()
    for _ in range(2):
        operator.run_pass()
        assert "get KafkaCluster quickstart" in operator.kube.requests


def test_clusters_that_are_gone_are_forgotten(operator: Operator) -> None:
    """What is remembered is bounded by what exists."""
    operator.steady.forget(lambda key: key == KEY)
    operator.run_pass()
    assert "get KafkaCluster quickstart" in operator.kube.requests


@pytest.fixture
def with_users() -> Operator:
    """One whose cluster has two users and is settled."""
    by_secret = {"type": "scram-sha-512", "passwordSecretRef": {"name": "given"}}
    given = {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": "given"},
        "data": {"password": "cGVuY2ls"},
    }
    documents = [examples.user(), examples.user("other", authentication=by_secret), given]
    running = Operator(examples.secured(), *documents)
    running.settle()
    running.run_pass()
    return running


def test_users_of_a_settled_cluster_cost_a_read_of_their_secrets(with_users: Operator) -> None:
    """Secrets are not watched; nothing else is asked of the API server."""
    assert sorted(with_users.kube.requests) == [
        "get Secret billing", "get Secret given", "get Secret other",
    ]  # fmt: skip


def test_a_given_password_is_followed_in_a_settled_cluster(with_users: Operator) -> None:
    """No event tells of it."""
    secret = with_users.kube.find("Secret", "given")
    with_users.kube.put({**secret, "data": {"password": "Y3JheW9u"}})
    with_users.run_pass()
    assert with_users.brokers.credentials["other"]["SCRAM-SHA-512"][1] == "crayon"


def test_a_lost_secret_is_applied_again_in_a_settled_cluster(with_users: Operator) -> None:
    """Pods that mount it could not start."""
    with_users.kube.remove("Secret", "billing")
    with_users.run_pass()
    assert ("Secret", "default", "billing") in with_users.kube.objects


def test_users_that_brokers_describe_otherwise_are_read(with_users: Operator) -> None:
    """Another client has altered ACLs or credentials."""
    acls: set[Acl] = with_users.brokers.acls["billing"]
    before = set(acls)
    acls.pop()
    with_users.run_pass()
    assert with_users.brokers.acls["billing"] == before
    with_users.hear()
    with_users.run_pass()
    with_users.brokers.credentials["billing"].clear()
    with_users.run_pass()
    assert with_users.brokers.credentials["billing"]


def test_passes_go_on_while_clusters_are_forgotten(operator: Operator) -> None:
    """Else the resync of all namespaces ends with an error when a cluster is no longer settled."""
    operator.kube.unready("quickstart-broker-0")
    operator.hear()

    def gone(_: Key) -> bool:
        operator.run_pass()
        return False

    operator.steady.forget(gone)
    assert operator.kube.requests


@pytest.mark.parametrize(("overlap", "is_whole"), [("5m", True), ("1d", False)])
def test_a_step_of_a_short_replacement_of_an_authority_is_not_long_due(
    overlap: str, is_whole: bool
) -> None:
    """Steps follow by time, without a change of any object: a tenth of one may pass unseen."""
    listeners = [examples.LISTENERS[0], examples.SECURED_LISTENER]
    certificates = {"rotationOverlap": overlap}
    operator = Operator(examples.secured(listeners=listeners, certificates=certificates))
    operator.settle()
    operator.run_pass()
    assert operator.kube.requests == []
    operator.now += 31.0
    operator.run_pass()
    assert bool(operator.kube.requests) is is_whole
