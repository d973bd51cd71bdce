"""Lives of a cluster that random ones seldom have, on the fakes: several changes in one another."""

from __future__ import annotations

from dataclasses import replace

import pytest

from barnabas_operator.kube import Document
from barnabas_operator.plan.observed import ClusterView
from barnabas_operator.reconcile.reconciler import Key, reconcile
from tests.operator import examples
from tests.operator.memory_kube import MemoryKube
from tests.operator.ports import MemoryBrokers, context_on
from tests.operator.test_model import Life
from tests.operator.world import BROKERS, ENSEMBLE, annotate, edited

KEY = Key("default", "quickstart")
OFFSETS = "__consumer_offsets"


def warnings(kube: MemoryKube) -> str:
    """What the cluster warns of."""
    found = kube.find("KafkaCluster", "quickstart")["status"]["conditions"]
    return "; ".join(each["message"] for each in found if each["type"] == "Warning")


class Sized:
    """A cluster whose size changes, with an internal topic and what brokers say of replicas."""

    def __init__(self) -> None:
        self.kube = MemoryKube(examples.cluster(), examples.topic(replicas=1))
        self.brokers = MemoryBrokers()
        self.say(1, replicas={0: 51}, offsets=1)
        self.work()

    def say(self, count: int, *, replicas: dict[int, int], offsets: int) -> None:
        """What brokers answer: who they are, what they hold, and the internal topic's replicas."""
        self.brokers.view = ClusterView(
            cluster_id="an-id",
            broker_ids=tuple(range(count)),
            controller_id=0,
            replicas=replicas,
            internal={OFFSETS: offsets},
        )

    def work(self, passes: int = 8) -> None:
        """Passes and controllers in turn."""
        for _ in range(passes):
            reconcile(KEY, context_on(self.kube, self.brokers))
            self.kube.settle()

    def resize(self, replicas: int) -> None:
        """A user asks for so many brokers."""
        brokers = {**examples.cluster()["spec"]["brokers"], "replicas": replicas}
        self.kube.put(examples.cluster(brokers=brokers))

    @property
    def size(self) -> int:
        """The brokers that run."""
        found: int = self.kube.find("StatefulSet", BROKERS)["spec"]["replicas"]
        return found


def test_brokers_are_added_and_taken_back_with_records_and_topics() -> None:
    """1, 3, 1: brokers that hold replicas stay, internal topics are named, nothing is lost."""
    life = Sized()
    life.resize(3)
    life.work()
    life.say(3, replicas={0: 51, 1: 9, 2: 9}, offsets=1)
    life.work()
    assert life.size == 3
    assert f"{OFFSETS} has 1 replicas where offsets.topic.replication.factor=3" in warnings(
        life.kube
    )
    life.say(3, replicas={0: 51, 1: 60, 2: 9}, offsets=3)
    life.resize(1)
    life.kube.writes.clear()
    life.work()
    assert life.size == 3
    assert "broker 1 holds 60 replicas, broker 2 holds 9 replicas" in warnings(life.kube)
    # Their settings are those of three brokers, so none is restarted to be kept.
    assert not [each for each in life.kube.writes if each.startswith(("evict", "delete"))]
    life.say(3, replicas={0: 51, 1: 60}, offsets=2)
    life.work()
    assert life.size == 2
    life.say(2, replicas={0: 51}, offsets=1)
    life.work()
    life.say(1, replicas={0: 51}, offsets=1)
    life.work()
    assert life.size == 1
    assert life.brokers.views.keys() == {"packages"}
    assert not [each for each in life.kube.writes if each.startswith("delete PersistentVolume")]
    assert "claims of removed brokers are kept" in warnings(life.kube)
    assert OFFSETS not in warnings(life.kube)
    life.kube.writes.clear()
    life.work(1)
    assert life.kube.writes == []


def test_a_topic_is_created_once_the_broker_that_it_needs_is_back() -> None:
    """One of three is away: for kstatus the topic is in progress, and has not failed."""
    life = Life()
    life.work(8)
    lost = f"{BROKERS}-2"
    life.world.lost_nodes.add(lost)
    life.world.die(lost)
    life.world.put_topic("a")
    life.work(2)
    found = life.world.find("KafkaTopic", "a")["status"]["conditions"]
    assert {(each["type"], each["status"], each["reason"]) for each in found} == {
        ("Ready", "False", "WaitingForBrokers"),
        ("Reconciling", "True", "WaitingForBrokers"),
    }
    life.world.lost_nodes.clear()
    life.work(8)
    (ready,) = life.world.find("KafkaTopic", "a")["status"]["conditions"]
    assert (ready["type"], ready["status"]) == ("Ready", "True")


def test_larger_claims_a_roll_and_more_brokers_in_one_edit() -> None:
    """Each pass is judged by the model's rules: one pod at a time, the ensemble first."""
    life = Life()
    life.world.fixed_classes.clear()
    life.work(8)
    life.topic("a", "Delete")
    life.work(2)
    life.upgrade()
    storage = {"replicas": 4, "storage": {"size": "3Gi"}}
    edited(
        life.world,
        brokers=storage,
        config={"num.partitions": "3"},
        images={"broker": life.images.broker, "zookeeper": life.images.zookeeper},
    )
    for _ in range(8):
        life.work(8)
    assert {f"{BROKERS}-{number}" for number in range(4)} <= life.world.pods().keys()
    assert not [name for name in life.world.pods() if life.world.is_outdated(name)]
    sizes = {
        name: body["spec"]["resources"]["requests"]["storage"]
        for (kind, _, name), body in life.world.objects.items()
        if kind == "PersistentVolumeClaim"
    }
    assert {size for name, size in sizes.items() if BROKERS in name} == {"3Gi"}
    assert {size for name, size in sizes.items() if ENSEMBLE in name} == {"1Gi"}
    assert "a" in life.world.brokers.views
    life.world.writes.clear()
    life.work(2)
    assert life.world.writes == []


@pytest.mark.parametrize("asked", [False, True])
def test_settings_that_change_in_the_middle_of_a_roll(asked: bool) -> None:
    """A user edits every few passes, and annotates pods: the roll begins again and ends."""
    life = Life()
    life.work(8)
    life.topic("a", "Delete")
    for number in (1, 2, 3, 2):
        life.configure(number)
        life.work(3)
        if asked:
            life.ask(BROKERS, number % 3)
            life.pause(paused=number == 2)
            life.work(1)
    life.pause(paused=False)
    for _ in range(6):
        life.work(8)
    text = life.world.find("ConfigMap", BROKERS)["data"]["server.properties"]
    assert "num.partitions=2" in text
    assert not [name for name in life.world.pods() if life.world.is_outdated(name)]
    life.teardown()


def test_a_cluster_that_is_edited_without_end_is_never_rolled_two_at_once() -> None:
    """Another edit in each pass: pods of several templates are there at once, and one is away."""
    life = Life()
    life.work(8)
    for number in range(24):
        life.configure(1 + number % 3)
        edited(life.world, brokers={"replicas": 3 + number % 2})
        annotate(life.world, "KafkaCluster", "quickstart", "example.org/edit", str(number))
        life.work(2)
    life.configure(1)
    life.resize(3)
    life.teardown()


class Again:
    """A cluster with a topic and a user that is deleted and created again, claims retained."""

    def __init__(self) -> None:
        self.kube = MemoryKube(examples.secured())
        self.brokers = MemoryBrokers()
        self.work(2)
        self.kube.put(examples.topic(deletionPolicy="Delete"))
        self.kube.put(examples.user())
        self.work(2)
        self.brokers.steps.clear()

    def work(self, passes: int, settle: bool = True) -> None:
        """Passes, and what the controllers do."""
        for _ in range(passes):
            reconcile(KEY, context_on(self.kube, self.brokers))
            if settle:
                self.kube.settle()

    def create(self) -> None:
        """A user applies the same cluster again."""
        document: Document = examples.secured()
        document["metadata"]["uid"] = "another"
        self.kube.put(document)


@pytest.mark.parametrize("collected", [True, False])
def test_a_cluster_of_the_same_name_with_retained_claims(collected: bool) -> None:
    """Whether the garbage collector was there before or not: topics, users and passwords stay."""
    life = Again()
    password = life.kube.find("Secret", "billing")["data"]["password"]
    claims = {key for key in life.kube.objects if key[0] == "PersistentVolumeClaim"}
    pods = {name for kind, _, name in life.kube.objects if kind == "Pod"}
    life.kube.remove("KafkaCluster", "quickstart")
    if collected:
        life.kube.collect_garbage()
        life.work(1)
    life.create()
    life.kube.writes.clear()
    life.work(2, settle=False)
    if not collected:
        # Objects of the former cluster are neither taken over nor deleted.
        assert not [each for each in life.kube.writes if each.startswith(("delete", "evict"))]
        owners = life.kube.find("StatefulSet", BROKERS)["metadata"]["ownerReferences"]
        assert owners[0]["uid"] == "uid-of-quickstart"
        life.kube.collect_garbage()
    life.kube.settle()
    life.work(4)
    assert {key for key in life.kube.objects if key[0] == "PersistentVolumeClaim"} == claims
    assert {name for kind, _, name in life.kube.objects if kind == "Pod"} == pods
    assert life.kube.find("Secret", "billing")["data"]["password"] == password
    assert not [each for each in life.brokers.steps if each.startswith("delete")]
    assert life.brokers.views.keys() == {"packages"}
    for kind, name in (
        ("KafkaCluster", "quickstart"), ("KafkaTopic", "packages"), ("KafkaUser", "billing"),
    ):  # fmt: skip
        assert life.kube.find(kind, name)["status"]["conditions"][0]["status"] == "True", name
    life.kube.writes.clear()
    life.work(1)
    assert life.kube.writes == []
    # What the new cluster has entered goes with its resources as before.
    life.kube.remove("KafkaTopic", "packages")
    life.work(1)
    assert life.brokers.views == {}


def test_a_clock_that_was_months_ahead_and_is_right_again() -> None:
    """Of operators before the API server's clock counted: nothing hangs, nothing is replaced."""
    kube, brokers = MemoryKube(examples.secured()), MemoryBrokers()
    kube.put(examples.user(authentication={"type": "scram-sha-512", "rotationDays": 30}))
    ahead = replace(context_on(kube, brokers), now="2026-09-02T03:04:05Z")
    for _ in range(3):
        reconcile(KEY, ahead)
        kube.settle()
    password = kube.find("Secret", "billing")["data"]["password"]
    for _ in range(2):
        reconcile(KEY, context_on(kube, brokers))
        kube.settle()
    assert kube.find("Secret", "billing")["data"]["password"] == password
    kube.writes.clear()
    reconcile(KEY, context_on(kube, brokers))
    assert kube.writes == []
    later = replace(context_on(kube, brokers), now="2026-02-02T03:04:05Z")
    reconcile(KEY, later)
    assert kube.find("Secret", "billing")["data"]["password"] != password
    (ready, *_) = kube.find("KafkaCluster", "quickstart")["status"]["conditions"]
    assert ready["status"] == "True"
