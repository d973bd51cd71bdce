"""Topics and users of other namespaces than their cluster's: what it allows, and no more."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from barnabas_operator.brokers import BrokersError
from barnabas_operator.handlers.resource_index import ResourceIndex
from barnabas_operator.kube import TOPICS, Document, Kind, KubeError
from barnabas_operator.plan.topics import TopicView
from barnabas_operator.reconcile.reconciler import SOON_S, Key, find_keys, key_of, reconcile
from barnabas_operator.reconcile.steady import SteadyClusters
from tests.operator import examples
from tests.operator.memory_kube import MemoryKube
from tests.operator.ports import MemoryBrokers, context_on, ledger, user_ledger

KEY = Key("default", "quickstart")
SHA_512 = "SCRAM-SHA-512"
ADOPT = {"barnabas.io/adopt": "resource"}
TEAM, OTHER = "team-a", "team-b"


def of(namespace: str, document: Document, **meta: Any) -> Document:
    """The resource in another namespace; it names the cluster where that is."""
    document["metadata"].update(namespace=namespace, **meta)
    document["metadata"]["uid"] += f"-{namespace}"
    document["spec"]["clusterNamespace"] = "default"
    return document


class Bench:
    """An API server with a cluster that serves and allows these namespaces."""

    def __init__(self, *allowed: str, watched: tuple[str, ...] = ()) -> None:
        self.brokers = MemoryBrokers()
        self.kube = MemoryKube(examples.secured(allowedNamespaces=list(allowed)))
        self.context = replace(context_on(self.kube, self.brokers), watched=watched)
        self.run_pass()
        self.kube.settle()
        self.run_pass()

    def run_pass(self, *documents: Document) -> None:
        """One pass after these were applied."""
        for document in documents:
            self.kube.put(document)
        self.kube.writes.clear()
        reconcile(KEY, self.context)

    def allow(self, *allowed: str) -> None:
        """Another list of namespaces, and a pass."""

        def change(body: Document) -> None:
            body["spec"]["allowedNamespaces"] = list(allowed)

        self.kube.edit("KafkaCluster", "quickstart", change)
        self.run_pass()

    def ready(self, kind: str, name: str, namespace: str = TEAM) -> tuple[str, str, str]:
        """Status, reason and message of a resource's Ready."""
        conditions = self.kube.find(kind, name, namespace)["status"]["conditions"]
        (found,) = [each for each in conditions if each["type"] == "Ready"]
        return found["status"], found["reason"], found["message"]

    def topic(self, name: str, namespace: str = TEAM) -> tuple[str, str]:
        """Status and reason of a topic."""
        return self.ready("KafkaTopic", name, namespace)[:2]

    def user(self, name: str, namespace: str = TEAM) -> tuple[str, str]:
        """Status and reason of a user."""
        return self.ready("KafkaUser", name, namespace)[:2]


@pytest.mark.parametrize("allowed", [TEAM, "*"])
def test_an_allowed_namespace_has_topics_and_users(allowed: str) -> None:
    """The Secret is in the user's namespace; the topic is deleted with its resource."""
    bench = Bench(allowed)
    bench.run_pass(
        of(TEAM, examples.topic("orders", deletionPolicy="Delete")), of(TEAM, examples.user())
    )
    assert bench.topic("orders") == ("True", "Ready")
    assert bench.user("billing") == ("True", "Ready")
    assert ("Secret", TEAM, "billing") in bench.kube.objects
    assert ("Secret", "default", "billing") not in bench.kube.objects
    bench.kube.remove("KafkaTopic", "orders", TEAM)
    bench.kube.remove("KafkaUser", "billing", TEAM)
    bench.run_pass()
    assert (bench.brokers.views, bench.brokers.credentials["billing"]) == ({}, {})
    assert (ledger(bench.kube), user_ledger(bench.kube)) == ({}, {})


def test_a_namespace_that_is_not_allowed_gets_nothing() -> None:
    """By default no other one; it is told so, and a cluster that is not there looks the same."""
    bench = Bench()
    bench.run_pass(of(TEAM, examples.topic("orders")), of(TEAM, examples.user()))
    status, reason, text = bench.ready("KafkaTopic", "orders")
    assert (status, reason) == ("False", "NamespaceNotAllowed")
    assert text == (
        "there is no KafkaCluster quickstart in namespace default, or its spec.allowedNamespaces"
        " does not have team-a"
    )
    assert bench.user("billing") == ("False", "NamespaceNotAllowed")
    assert (bench.brokers.views, bench.brokers.credentials) == ({}, {})
    assert ("Secret", TEAM, "billing") not in bench.kube.objects
    bench.run_pass()
    assert not [each for each in bench.kube.writes if each.startswith("status Kafka")]
    bench.kube.remove("KafkaCluster", "quickstart")
    bench.run_pass(of(OTHER, examples.topic("orders")))
    assert bench.ready("KafkaTopic", "orders", OTHER)[2] == text.replace(TEAM, OTHER)
    assert bench.topic("orders") == ("False", "NamespaceNotAllowed")


def test_the_namespace_of_the_cluster_may_be_said() -> None:
    """It is allowed without a list."""
    bench = Bench()
    bench.run_pass(examples.topic("orders", clusterNamespace="default"))
    assert bench.topic("orders", "default") == ("True", "Ready")


def test_a_namespace_that_was_withdrawn_loses_nothing() -> None:
    """Its topics and users are neither changed nor deleted, with and without their resources."""
    bench = Bench(TEAM)
    bench.run_pass(
        of(TEAM, examples.topic("orders", deletionPolicy="Delete")), of(TEAM, examples.user())
    )
    views, users = dict(bench.brokers.views), dict(bench.brokers.credentials)
    bench.allow(OTHER)
    assert bench.ready("KafkaTopic", "orders")[2].endswith(
        "; what was created before is left as it is, and is not deleted with the resource"
    )
    assert bench.user("billing") == ("False", "NamespaceNotAllowed")
    bench.run_pass(of(TEAM, examples.topic("orders", deletionPolicy="Delete", partitions=9)))
    bench.kube.remove("KafkaUser", "billing", TEAM)
    bench.run_pass()
    bench.kube.remove("KafkaTopic", "orders", TEAM)
    bench.run_pass()
    bench.run_pass()
    assert (bench.brokers.views, bench.brokers.credentials) == (views, users)
    bench.allow(TEAM)
    assert bench.brokers.views == {}
    assert bench.brokers.credentials["billing"] == {}


def test_the_first_namespace_keeps_what_it_has() -> None:
    """However old the other resource is and whatever it is annotated with."""
    bench = Bench(TEAM, OTHER)
    topic, user = {"deletionPolicy": "Delete"}, {"username": "shared"}
    bench.run_pass(
        of(TEAM, examples.topic("orders", **topic)), of(TEAM, examples.user("mine", **user))
    )
    views, users = dict(bench.brokers.views), dict(bench.brokers.credentials)
    old = {"creationTimestamp": "2020-01-01T00:00:00Z", "annotations": ADOPT}
    for namespace in (OTHER, "default"):
        bench.run_pass(
            of(namespace, examples.topic("orders", partitions=9), **old),
            of(namespace, examples.user("theirs", **user), **old),
        )
        assert bench.topic("orders", namespace) == ("False", "Conflict")
        assert bench.user("theirs", namespace) == ("False", "Conflict")
    assert bench.topic("orders") == bench.user("mine") == ("True", "Ready")
    assert (bench.brokers.views, bench.brokers.credentials) == (views, users)
    # Gone with its resource, and not before.
    bench.kube.remove("KafkaTopic", "orders", "default")
    bench.kube.remove("KafkaTopic", "orders", TEAM)
    bench.run_pass()
    assert bench.brokers.views == {}
    bench.run_pass()
    assert bench.topic("orders", OTHER) == ("True", "Ready")
    assert bench.brokers.views["orders"].topic_id != views["orders"].topic_id


def test_existing_topics_and_users_are_not_adopted_from_another_namespace() -> None:
    """Neither by an equal spec nor by the annotation; nor are a user's ACLs, or a super user."""
    bench = Bench(TEAM)
    wanted = examples.topic("orders", partitions=3, replicas=1, config={})
    bench.brokers.views["orders"] = view = TopicView(
        name="orders", topic_id="old", partitions=3, replicas=1, config={}
    )
    bench.brokers.quotas["billing"] = {"producer_byte_rate": 1.0}
    bench.run_pass(
        of(TEAM, wanted, annotations=ADOPT), of(TEAM, examples.user(), annotations=ADOPT)
    )
    assert bench.topic("orders") == bench.user("billing") == ("False", "AlreadyExists")
    assert bench.brokers.views == {"orders": view}
    assert bench.brokers.credentials == {}
    assert (ledger(bench.kube), user_ledger(bench.kube)) == ({}, {})
    admin = examples.secured(
        allowedNamespaces=[TEAM], authorization={"type": "simple", "superUsers": ["admin"]}
    )
    bench.run_pass(admin, of(TEAM, examples.user("admin")))
    assert bench.user("admin") == ("False", "InvalidUsername")
    assert bench.brokers.credentials == {}


def test_a_topic_that_the_brokers_refused_is_not_owned() -> None:
    """One that another client creates afterwards is not taken for the namespace's."""
    bench = Bench(TEAM)
    bench.brokers.refuses["orders"] = BrokersError("POLICY_VIOLATION", "no", reachable=True)
    bench.run_pass(of(TEAM, examples.topic("orders", partitions=3, replicas=1, config={})))
    assert bench.topic("orders") == ("False", "Refused")
    assert ledger(bench.kube) == {}
    bench.brokers.refuses.clear()
    bench.brokers.views["orders"] = TopicView(
        name="orders", topic_id="theirs", partitions=3, replicas=1, config={}
    )
    bench.run_pass()
    assert bench.topic("orders") == ("False", "AlreadyExists")


def test_a_pass_that_ended_before_it_saw_its_topic_is_completed() -> None:
    """The topic is the namespace's: it is in the ledger, under a key that older operators skip."""
    bench = Bench(TEAM)
    bench.kube.fail("status KafkaTopic", 500, times=None)
    with pytest.raises(KubeError):
        bench.run_pass(of(TEAM, examples.topic("orders", deletionPolicy="Retain")))
    bench.kube.faults.clear()
    name = next(name for kind, _, name in bench.kube.objects if "-topics-" in name)
    data = bench.kube.find("ConfigMap", name)["data"]
    assert '"topicId": "id-0"' in data["topics"]
    data["topics"] = data["topics"].replace("id-0", "")
    bench.run_pass()
    assert bench.topic("orders") == ("True", "Ready")
    entry = ledger(bench.kube)["orders"]
    assert entry["topicId"] == "id-0"
    assert entry["foreignResource"] == {"namespace": TEAM, "name": "orders"}
    assert "resource" not in entry


def test_retained_topics_and_users_belong_to_their_namespace() -> None:
    """A resource that comes back has it again, no other namespace does, and the cluster's can."""
    bench = Bench(TEAM, OTHER)
    topic = examples.topic("orders", deletionPolicy="Retain")
    user = examples.user(deletionPolicy="Retain")
    bench.run_pass(of(TEAM, topic), of(TEAM, user))
    views = dict(bench.brokers.views)
    bench.kube.remove("KafkaTopic", "orders", TEAM)
    bench.kube.remove("KafkaUser", "billing", TEAM)
    bench.run_pass()
    bench.run_pass(
        of(OTHER, examples.topic("orders"), annotations=ADOPT),
        of(OTHER, examples.user(), annotations=ADOPT),
    )
    assert bench.topic("orders", OTHER) == bench.user("billing", OTHER) == ("False", "Conflict")
    bench.run_pass(examples.topic("orders"), examples.user())
    assert bench.topic("orders", "default") == ("False", "Conflict")
    assert bench.user("billing", "default") == ("False", "Conflict")
    again = of(TEAM, examples.topic("orders", deletionPolicy="Retain"))
    again["metadata"]["uid"] = "another"
    bench.run_pass(again)
    assert bench.topic("orders") == ("True", "Ready")
    assert bench.brokers.views == views
    bench.kube.remove("KafkaTopic", "orders", TEAM)
    adopting, adopting_user = examples.topic("orders"), examples.user()
    adopting["metadata"]["annotations"] = adopting_user["metadata"]["annotations"] = ADOPT
    bench.run_pass(adopting, adopting_user)
    assert bench.topic("orders", "default") == ("True", "Ready")
    assert bench.user("billing", "default") == ("True", "Ready")
    # From then on it is the cluster's.
    bench.run_pass(of(TEAM, examples.topic("orders")), of(TEAM, examples.user()))
    assert bench.topic("orders") == bench.user("billing") == ("False", "Conflict")


def test_a_namespace_that_cannot_be_listed_loses_nothing() -> None:
    """As one in which the operator has no role any more; others are served and deleted."""

    class Forbidding(MemoryKube):
        forbidden = ""

        def list(self, kind: Kind, namespace: str | None, labels: Any = None) -> list[Document]:
            """Refused in one namespace."""
            if namespace == self.forbidden:
                raise KubeError(403, "forbidden")
            return super().list(kind, namespace, labels)

    bench = Bench(TEAM, OTHER, watched=("default", TEAM, OTHER))
    kube = Forbidding()
    kube.__dict__.update(bench.kube.__dict__)
    bench.kube, bench.context = kube, replace(bench.context, kube=kube)
    delete = {"deletionPolicy": "Delete"}
    bench.run_pass(
        of(TEAM, examples.topic("a", **delete)), of(OTHER, examples.topic("b", **delete))
    )
    assert sorted(bench.brokers.views) == ["a", "b"]
    kube.forbidden = TEAM
    bench.kube.remove("KafkaTopic", "a", TEAM)
    bench.kube.remove("KafkaTopic", "b", OTHER)
    bench.run_pass()
    assert sorted(bench.brokers.views) == ["a"]


def test_a_cluster_in_a_namespace_that_is_not_watched_is_not_touched() -> None:
    """The operator says that it does not watch it, whatever rights it happens to have there."""
    bench = Bench(TEAM)
    bench.context = replace(bench.context, watched=(TEAM,))
    bench.run_pass(of(TEAM, examples.topic("orders")), of(TEAM, examples.user()))
    status, reason, text = bench.ready("KafkaTopic", "orders")
    assert (status, reason) == ("False", "NamespaceNotWatched")
    assert "add it to watchNamespaces" in text
    assert bench.user("billing") == ("False", "NamespaceNotWatched")
    assert bench.brokers.views == {}
    assert {each.split()[0] for each in bench.kube.writes} == {"status"}


def test_the_cache_finds_what_names_a_cluster_from_elsewhere() -> None:
    """An event asks for a pass of that cluster, which is another revision of it."""
    foreign, own = of(TEAM, examples.topic("orders")), examples.topic("orders")
    assert key_of(foreign) == key_of(own) == KEY
    kube, index = MemoryKube(examples.cluster(), foreign, own), ResourceIndex()
    assert find_keys(kube, [None], index).keys == {KEY}
    named = index.named(TOPICS, KEY.namespace, KEY.cluster) or []
    assert sorted(each["metadata"]["namespace"] for each in named) == ["default", TEAM]


def test_a_refused_namespace_keeps_no_cluster_from_being_steady() -> None:
    """Its topics are not among those of which the brokers are asked."""
    bench = Bench(TEAM)
    bench.brokers.views["theirs"] = TopicView(
        name="theirs", topic_id="x", partitions=1, replicas=1, config={}
    )
    bench.run_pass(of(TEAM, examples.topic("orders")), of(OTHER, examples.topic("theirs")))
    index = ResourceIndex()
    find_keys(bench.kube, [None], index)
    steady = SteadyClusters(lambda *_: (1, 0))
    context = replace(bench.context, index=index.named)
    steady.reconcile(KEY, context)
    bench.brokers.requests.clear()
    steady.reconcile(KEY, context)
    assert bench.brokers.requests == ["list", "describe"]


def test_nothing_is_touched_where_another_operator_acts() -> None:
    """Neither the resources of its namespace nor what they have in Kafka, until it is gone."""
    bench = Bench(TEAM)
    bench.run_pass(of(TEAM, examples.topic("orders", deletionPolicy="Delete")))
    alone = bench.context
    bench.context = replace(alone, acts_in=lambda namespace: namespace != TEAM)
    bench.kube.remove("KafkaTopic", "orders", TEAM)
    bench.run_pass(of(TEAM, examples.topic("late")), of(TEAM, examples.user()))
    assert "status" not in bench.kube.find("KafkaTopic", "late", TEAM)
    assert "status" not in bench.kube.find("KafkaUser", "billing", TEAM)
    assert bench.brokers.views.keys() == {"orders"}
    assert bench.kube.writes == []
    outcome = reconcile(KEY, bench.context)
    assert (outcome.again_in, outcome.settled) == (SOON_S, False)
    bench.context = alone
    bench.run_pass()
    assert bench.topic("late") == ("True", "Ready")
    assert bench.user("billing") == ("True", "Ready")
    assert bench.brokers.views.keys() == {"late"}


def test_a_cluster_of_another_operator_is_named_to_resources_elsewhere() -> None:
    """They learn why nothing is created; in the other's namespace nothing is written."""
    bench = Bench(TEAM)
    bench.context = replace(bench.context, acts_in=lambda namespace: namespace == TEAM)
    bench.run_pass(of(TEAM, examples.topic("orders")), examples.topic("own"))
    status, reason, text = bench.ready("KafkaTopic", "orders")
    assert (status, reason) == ("False", "NamespaceNotWatched")
    assert text == (
        "another operator acts in namespace default, whose Lease it holds; have one operator watch"
        " the namespaces of the cluster and of this resource"
    )
    assert bench.kube.writes == ["status KafkaTopic orders"]
