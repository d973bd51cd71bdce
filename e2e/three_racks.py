"""The example of three racks as a person uses it: secured, by the Secret of its user."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any, Final

from confluent_kafka import KafkaException, TopicCollection
from confluent_kafka.admin import (
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    ResourceType,
)

from e2e import kafka, users
from e2e.cluster import Cluster, Json
from e2e.commands import ROOT
from e2e.kafka import Place, Record
from e2e.load import Load
from e2e.quickstart import MAIN
from tests.waiting import ANSWER, RUN, SETTLE, seconds

FILE: Final = "manifests/examples/three-racks.yaml"
RESOURCES: Final = ("kafkacluster/three", "kafkatopic/orders", "kafkauser/cashier")
ALL: Final = "app.kubernetes.io/instance=three"
BROKERS: Final = f"{ALL},app.kubernetes.io/component=broker"
# Machine seconds that a partition may take to acknowledge again when its leader hands over.
HAND_OVER: Final = 2.0
PROTOCOL: Final = "inter.broker.protocol.version"
OLD_PROTOCOL: Final = "3.8-IV0"
FOLLOWERS_THROTTLED: Final = "follower.replication.throttled.replicas"
FOLLOWER_RATE: Final = "follower.replication.throttled.rate"
SETTINGS: Final = "  config:\n"


def example() -> str:
    """The example, for brokers that speak an older protocol among themselves than they could."""
    text = (ROOT / FILE).read_text("utf-8")
    assert SETTINGS in text
    return text.replace(SETTINGS, f"{SETTINGS}    {PROTOCOL}: {OLD_PROTOCOL}\n")


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


def patch(cluster: Cluster, spec: Json) -> None:
    """Change the KafkaCluster."""
    text = json.dumps({"spec": spec})
    cluster.kubectl("patch", "kafkacluster/three", "-n", MAIN, "--type=merge", "-p", text)


def annotate(cluster: Cluster, *notes: str) -> None:
    """Annotate the KafkaCluster."""
    cluster.kubectl("annotate", "kafkacluster/three", "-n", MAIN, "--overwrite", *notes)


def roll(cluster: Cluster) -> Json:
    """The plan of the roll that is due; empty if none is."""
    found: Json = (cluster.get("kafkacluster", "three", namespace=MAIN) or {})["status"]
    return found.get("roll") or {}


def wait_for_roll(cluster: Cluster, blocker: str, *, other_than: str = "") -> Json:
    """The plan of a roll, but for that of a token, once something in it blocks it."""
    return cluster.wait_for(
        f"a plan that is blocked: {blocker}",
        lambda: roll(cluster),
        until=lambda plan: (
            plan.get("token") not in (None, other_than) and blocker in str(plan.get("blockers"))
        ),
        namespaces=(MAIN,),
        within=RUN,
    )


def broker_settings(cluster: Cluster) -> str:
    """The brokers' `server.properties`."""
    found = cluster.get("configmap", "three-broker", namespace=MAIN) or {}
    return str(found["data"]["server.properties"])


class Replacements:
    """The pods that have been replaced since: in which order, and how many were ready at once."""

    def __init__(self, cluster: Cluster, selector: str = ALL) -> None:
        self.order: list[str] = []
        self.controller = ""
        """The pod of the broker that was the controller before any broker was replaced."""
        self._cluster, self._selector = cluster, selector
        self._old = {name: pod["metadata"]["uid"] for name, pod in self._pods().items()}
        self.fewest_ready = self.expected = len(self._old)

    def _pods(self) -> dict[str, Json]:
        return pods(self._cluster, self._selector)

    def ready(self) -> list[str]:
        """The new pods that are Ready."""
        found = self._pods()
        self.fewest_ready = min(self.fewest_ready, sum(map(is_ready, found.values())))
        new = [name for name, pod in found.items() if pod["metadata"]["uid"] != self._old[name]]
        self.order += sorted(set(new) - set(self.order))
        if not any("broker" in name for name in new):
            with suppress(KafkaException):  # The controller moves.
                self.controller = controllers_broker(self._cluster)
        return [name for name in new if is_ready(found[name])]

    def wait_for(self, count: int) -> None:
        """Until so many new pods are Ready."""
        self._cluster.wait_for(
            f"{count} new pods that are Ready",
            self.ready,
            until=lambda names: len(names) >= count,
            namespaces=(MAIN,),
            within=RUN,
        )


def controllers_broker(cluster: Cluster) -> str:
    """The pod of the broker that is the controller."""
    admin = AdminClient({**client(cluster), "log_level": 0})
    found = admin.describe_cluster().result(seconds(ANSWER)).controller
    return f"three-broker-{found.id}"


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


def wait_for_preferred_leaders(cluster: Cluster) -> None:
    """Until every partition is led by its first replica."""
    cluster.wait_for(
        "partitions led by their preferred leaders",
        lambda: partitions(cluster),
        until=lambda found: all(each.leader.id == each.replicas[0].id for each in found),
        namespaces=(MAIN,),
        within=RUN,
    )


def read(cluster: Cluster) -> dict[Place, Record]:
    """What the topic has, by place."""
    given = {**client(cluster), "group.id": "cashier"}
    return kafka.read(given, "orders", limit_s=seconds(SETTLE))


@contextmanager
def throttled(cluster: Cluster, broker: int) -> Iterator[None]:
    """Have a broker fetch next to nothing while it is out of sync: back, it stays behind."""
    warden = {
        "apiVersion": "barnabas.io/v1alpha1",
        "kind": "KafkaUser",
        "metadata": {"name": "warden"},
        "spec": {
            "cluster": "three",
            "listener": "external",
            "authorization": {
                "acls": [{"resource": {"type": "cluster"}, "operations": ["AlterConfigs"]}]
            },
        },
    }
    cluster.kubectl("apply", "-n", MAIN, "-f", "-", stdin=json.dumps(warden))
    cluster.wait_ready("kafkauser/warden", namespace=MAIN)
    given = users.client(cluster, "warden")
    try:
        _configure_topic(cluster, **{FOLLOWERS_THROTTLED: "*"})
        _set_rate(given, broker, AlterConfigOpType.SET)
        yield
    finally:
        _set_rate(given, broker, AlterConfigOpType.DELETE)
        _configure_topic(cluster, **{FOLLOWERS_THROTTLED: None})
        cluster.delete_objects("kafkauser/warden", "-n", MAIN)


def _configure_topic(cluster: Cluster, **config: str | None) -> None:
    text = json.dumps({"spec": {"config": config}})
    cluster.kubectl("patch", "kafkatopic/orders", "-n", MAIN, "--type=merge", "-p", text)
    cluster.wait_ready("kafkatopic/orders", namespace=MAIN)


def _set_rate(given: kafka.Client, broker: int, operation: AlterConfigOpType) -> None:
    entry = ConfigEntry(FOLLOWER_RATE, "1", incremental_operation=operation)
    resource = ConfigResource(ResourceType.BROKER, str(broker), incremental_configs=[entry])
    admin = AdminClient({**given, "log_level": 0})
    admin.incremental_alter_configs([resource])[resource].result(seconds(ANSWER))


def disruptions_allowed(cluster: Cluster) -> int:
    """How many brokers' pods may be evicted now."""
    found = cluster.get("poddisruptionbudget", "three-broker", namespace=MAIN) or {}
    return int(found["status"]["disruptionsAllowed"])


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
