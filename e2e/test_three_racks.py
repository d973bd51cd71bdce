"""Three brokers in three racks on an ensemble of three: what breaks loses nothing, under load."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, Final

import pytest
from confluent_kafka import KafkaException, TopicCollection
from confluent_kafka.admin import AdminClient

from e2e import kafka
from e2e.cluster import ZONES, Cluster, Json
from e2e.kafka import Place, Record
from e2e.load import Load
from e2e.quickstart import MAIN
from e2e.wait import wait_for

FILE: Final = "manifests/examples/three-racks.yaml"
BROKERS: Final = "app.kubernetes.io/instance=three,app.kubernetes.io/component=broker"
READY_WITHIN_S: Final = 300
ACKNOWLEDGED_WITHIN_S: Final = 90.0
ROLLED_WITHIN_S: Final = 300.0


@pytest.fixture(scope="module")
def three(operator: Cluster) -> Iterator[Cluster]:
    """The example, applied and ready; gone after these scenarios."""
    operator.kubectl("apply", "-n", MAIN, "-f", FILE)
    wait_ready(operator)
    yield operator
    operator.kubectl("delete", "-n", MAIN, "-f", FILE, "--timeout=120s")
    labels = "app.kubernetes.io/instance=three"
    wait_for(
        "no pod of the three is left",
        lambda: not operator.list("pods", namespace=MAIN, selector=labels),
        within_s=180,
    )


def wait_ready(cluster: Cluster) -> None:
    """Until cluster and topic are Ready."""
    for resource in ("kafkacluster/three", "kafkatopic/orders"):
        cluster.kubectl(
            "wait", "-n", MAIN, resource, "--for=condition=Ready", f"--timeout={READY_WITHIN_S}s",
            timeout_s=READY_WITHIN_S + 30,
        )  # fmt: skip


def bootstrap(cluster: Cluster) -> str:
    """All three brokers, by ports of their nodes."""
    status = (cluster.get("kafkacluster", "three", namespace=MAIN) or {})["status"]
    (servers,) = (
        each["bootstrapServers"] for each in status["listeners"] if each["name"] == "external"
    )
    return str(servers)


def pods(cluster: Cluster) -> dict[str, Json]:
    """The brokers' pods, by name."""
    found = cluster.list("pods", namespace=MAIN, selector=BROKERS)
    return {pod["metadata"]["name"]: pod for pod in found}


def is_ready(pod: Json) -> bool:
    """Whether a pod is Ready and stays."""
    ready = any(
        each["type"] == "Ready" and each["status"] == "True"
        for each in pod["status"].get("conditions", ())
    )
    return ready and "deletionTimestamp" not in pod["metadata"]


def partitions(cluster: Cluster) -> list[Any]:
    """The partitions of the topic, as a client is told."""
    admin = AdminClient({"bootstrap.servers": bootstrap(cluster), "log_level": 0})
    described = admin.describe_topics(TopicCollection(["orders"]))["orders"].result(timeout=60)
    return list(described.partitions)


def all_in_sync(cluster: Cluster) -> bool:
    """Whether every partition has its three replicas; who has just started may not tell yet."""
    try:
        return all(len(each.isr) == 3 for each in partitions(cluster))
    except KafkaException:
        return False


def more(load: Load, cluster: Cluster) -> None:
    """Until another hundred records were acknowledged: the topic is served again."""
    wanted = len(load.acknowledged) + 100
    wait_for(
        "records are acknowledged",
        lambda: len(load.acknowledged) >= wanted,
        within_s=ACKNOWLEDGED_WITHIN_S,
        told=lambda: cluster.kubectl("get", "pods", "-n", MAIN),
    )


def check(load: Load, before: dict[Place, Record], cluster: Cluster) -> None:
    """What was acknowledged is there, once, at its place, and nothing else is."""
    assert load.failures == []
    found = kafka.read(bootstrap(cluster), "orders")
    placed = {**before, **load.acknowledged}
    assert {place: found.get(place) for place in placed} == placed
    others = [record for place, record in found.items() if place not in placed]
    assert sorted(others) == sorted(load.somewhere)


def test_partitions_have_a_replica_in_each_rack(three: Cluster) -> None:
    """The label of a broker's node is its rack, and replicas are placed by racks."""
    nodes = {
        node["metadata"]["name"]: node["metadata"]["labels"].get("topology.kubernetes.io/zone")
        for node in three.list("nodes", namespace=MAIN)
    }
    found = pods(three)
    told = {name: pod["metadata"]["annotations"]["barnabas.io/rack"] for name, pod in found.items()}
    assert told == {name: nodes[pod["spec"]["nodeName"]] for name, pod in found.items()}
    assert sorted(told.values()) == sorted(ZONES)
    wait_for("all replicas are in sync", lambda: all_in_sync(three), within_s=READY_WITHIN_S)
    for partition in partitions(three):
        assert {node.rack for node in partition.replicas} == set(ZONES)


def test_a_killed_broker_loses_nothing(three: Cluster) -> None:
    """Without grace, under load: others lead, and it comes back in sync."""
    before = kafka.read(bootstrap(three), "orders")
    with Load(bootstrap(three), "orders") as load:
        more(load, three)
        name = "three-broker-1"
        uid = pods(three)[name]["metadata"]["uid"]
        three.kubectl("delete", f"pod/{name}", "-n", MAIN, "--grace-period=0", "--force")
        more(load, three)
        wait_for(
            "the killed broker is back in sync",
            lambda: (
                (pod := pods(three).get(name)) is not None
                and pod["metadata"]["uid"] != uid
                and is_ready(pod)
                and all_in_sync(three)
            ),
            within_s=ROLLED_WITHIN_S,
            told=lambda: three.kubectl("get", "pods", "-n", MAIN),
        )
    check(load, before, three)


def test_a_killed_member_of_the_ensemble_is_not_noticed(three: Cluster) -> None:
    """Two of three members go on; producers see nothing of it."""
    before = kafka.read(bootstrap(three), "orders")
    with Load(bootstrap(three), "orders") as load:
        more(load, three)
        three.kubectl("delete", "pod/three-zookeeper-2", "-n", MAIN, "--grace-period=0", "--force")
        more(load, three)
        wait_ready(three)
    check(load, before, three)


def test_a_roll_takes_one_broker_at_a_time(three: Cluster) -> None:
    """Two are always there, each hands over before it goes, and no record is refused or lost."""
    before, old = kafka.read(bootstrap(three), "orders"), pods(three)
    ready_at_once: list[int] = []

    def is_rolled() -> bool:
        found = pods(three)
        ready_at_once.append(sum(map(is_ready, found.values())))
        fresh = [
            pod
            for name, pod in found.items()
            if pod["metadata"]["uid"] != old[name]["metadata"]["uid"] and is_ready(pod)
        ]
        return len(fresh) == 3

    with Load(bootstrap(three), "orders") as load:
        patch = json.dumps({"spec": {"config": {"log.retention.hours": "100"}}})
        three.kubectl("patch", "kafkacluster/three", "-n", MAIN, "--type=merge", "-p", patch)
        wait_for(
            "all three brokers are new",
            is_rolled,
            within_s=ROLLED_WITHIN_S,
            told=lambda: three.kubectl("get", "pods,kafkaclusters", "-n", MAIN, "-o", "wide"),
        )
        more(load, three)
    assert min(ready_at_once) >= 2
    check(load, before, three)
    wait_ready(three)
