"""The example of three racks as a person uses it: secured, by the Secret of its user."""

from __future__ import annotations

from typing import Any, Final

from confluent_kafka import KafkaException, TopicCollection
from confluent_kafka.admin import AdminClient

from e2e import kafka, users
from e2e.cluster import Cluster, Json
from e2e.kafka import Place, Record
from e2e.load import Load
from e2e.quickstart import MAIN
from tests.waiting import ANSWER, RUN, SETTLE, seconds

FILE: Final = "manifests/examples/three-racks.yaml"
RESOURCES: Final = ("kafkacluster/three", "kafkatopic/orders", "kafkauser/cashier")
ALL: Final = "app.kubernetes.io/instance=three"
BROKERS: Final = f"{ALL},app.kubernetes.io/component=broker"


def wait_ready(cluster: Cluster) -> None:
    """Until all resources of the example are Ready."""
    for resource in RESOURCES:
        cluster.wait_ready(resource, namespace=MAIN, within=RUN)


def client(cluster: Cluster) -> kafka.Client:
    """What the Secret of the example's user says, and nothing else."""
    return users.client(cluster, "cashier")


def pods(cluster: Cluster, selector: str = BROKERS) -> dict[str, Json]:
    """The brokers' pods, or others, by name."""
    found = cluster.list("pod", namespace=MAIN, selector=selector)
    return {pod["metadata"]["name"]: pod for pod in found}


def is_ready(pod: Json) -> bool:
    """Whether a pod is Ready and stays."""
    ready = any(
        each["type"] == "Ready" and each["status"] == "True"
        for each in pod["status"].get("conditions", ())
    )
    return ready and "deletionTimestamp" not in pod["metadata"]


def ready_pods(cluster: Cluster) -> dict[str, str]:
    """The uids of the brokers' pods that are Ready, by name."""
    return {name: pod["metadata"]["uid"] for name, pod in pods(cluster).items() if is_ready(pod)}


def partitions(cluster: Cluster) -> list[Any]:
    """The partitions of the topic, as a client is told."""
    admin = AdminClient({**client(cluster), "log_level": 0})
    described = admin.describe_topics(TopicCollection(["orders"]))["orders"].result(seconds(ANSWER))
    return list(described.partitions)


def in_sync(cluster: Cluster) -> list[int]:
    """How many in-sync replicas each partition has; none where no broker answers yet."""
    try:
        return [len(each.isr) for each in partitions(cluster)]
    except KafkaException:
        return [0]


def wait_in_sync(cluster: Cluster, *, within: float = SETTLE) -> None:
    """Until every partition has three in-sync replicas."""
    cluster.wait_for(
        "three in-sync replicas of every partition",
        lambda: in_sync(cluster),
        until=lambda counts: all(count == 3 for count in counts),
        namespaces=(MAIN,),
        within=within,
    )


def read(cluster: Cluster) -> dict[Place, Record]:
    """What the topic has, by place."""
    given = {**client(cluster), "group.id": "cashier"}
    return kafka.read(given, "orders", limit_s=seconds(SETTLE))


def more(load: Load, cluster: Cluster) -> None:
    """Until another hundred records were acknowledged: the topic is served again."""
    wanted = len(load.acknowledged) + 100
    cluster.wait_for(
        f"{wanted} acknowledged records",
        lambda: len(load.acknowledged),
        until=lambda count: count >= wanted,
        namespaces=(MAIN,),
    )


def check(load: Load, before: dict[Place, Record], cluster: Cluster) -> None:
    """What was acknowledged is there, once, at its place, and nothing else is."""
    assert load.failures == []
    found = read(cluster)
    placed = {**before, **load.acknowledged}
    assert {place: found.get(place) for place in placed} == placed
    others = [record for place, record in found.items() if place not in placed]
    assert sorted(others) == sorted(load.somewhere)
