"""A partition that Kafka's tool moves at a throttled rate, of two brokers on one ZooKeeper."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import (
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    ResourceType,
)
from kazoo.client import KazooClient

from barnabas_kafka.protocol.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
    DescribeConfigsResponse,
)
from tests.clients.wire import Wire
from tests.cluster import metrics
from tests.cluster.metrics import metric
from tests.cluster.running import Cluster
from tests.oracle.apache import run_tool
from tests.waiting import ANSWER, seconds

REASSIGN = "org.apache.kafka.tools.reassign.ReassignPartitionsCommand"
RATE = "{}.replication.throttled.rate"
REPLICAS = "{}.replication.throttled.replicas"
RECORDS = 3000
SETTINGS = {
    # A rate that was exceeded once is exceeded for as long as a test may run: what is sent in one
    # answer, a third of the whole, is more than the limit allows in a quarter of an hour.
    "replication.quota.window.num": "3600",
    "replica.fetch.max.bytes": "1000000",
    **metrics.SETTINGS,
}


@pytest.fixture(scope="module")
def three(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """Two brokers."""
    with Cluster(tmp_path_factory.mktemp("throttles"), 2, SETTINGS) as started:
        yield started


def change(cluster: Cluster, kind: ResourceType, name: str, setting: str, value: str) -> None:
    """Set one setting of a topic or a broker, and wait until it is told."""
    entry = ConfigEntry(setting, value, incremental_operation=AlterConfigOpType.SET)
    resource = ConfigResource(kind, name, incremental_configs=[entry])
    cluster.change(lambda admin: admin.incremental_alter_configs([resource]))
    cluster.wait_for(
        f"{setting} among the settings of {name}",
        lambda: throttles(cluster, kind, name),
        until=lambda found: setting in found,
    )


def throttles(cluster: Cluster, kind: ResourceType, name: str) -> dict[str, str | None]:
    """The settings of a topic or a broker that throttle replication.

    The values of a broker's are not told, as Apache does not tell them either.
    """
    admin = cluster.informed_admin()
    (future,) = admin.describe_configs([ConfigResource(kind, name)]).values()
    return {
        setting: entry.value
        for setting, entry in future.result(seconds(ANSWER)).items()
        if ".throttled." in setting and entry.value != ""
    }


def until_unthrottled(cluster: Cluster, kind: ResourceType, name: str) -> None:
    """Wait until a topic or a broker has no throttle left."""
    cluster.wait_for(
        f"no throttles of {name}",
        lambda: throttles(cluster, kind, name),
        until=lambda found: not found,
    )


def setting_of(cluster: Cluster, broker: int, topic: str, setting: str) -> list[str | None]:
    """The value of a topic's setting that this broker has: a library asks any."""
    resource = DescribeConfigsResource(
        resource_type=ResourceType.TOPIC.value,
        resource_name=topic,
        configuration_keys=[setting],
    )
    with Wire(cluster.address(broker)) as wire:
        request = DescribeConfigsRequest(resources=[resource])
        (result,) = wire.ask(request, DescribeConfigsResponse, 2).results
    return [entry.value for entry in result.configs]


def test_a_move_is_throttled(
    cluster: Cluster, znodes: KazooClient, topic: str, tmp_path: Path
) -> None:
    """It stands still above its limit, goes on with another, and leaves nothing behind."""
    cluster.create(topic, replicas=1, min_insync_replicas="1")
    leader = cluster.leader(topic)
    new = next(broker for broker in cluster.brokers if broker != leader)
    producer = Producer({"bootstrap.servers": cluster.bootstrap, "log_level": 0})
    for number in range(RECORDS):
        producer.produce(topic, b"%04d" % number * 250)
        producer.poll(0)
    assert producer.flush(seconds(ANSWER)) == 0
    # The tool sets its limits and then begins; brokers hear of the one and the other by ways of
    # their own. These are there before, so that nothing goes unlimited.
    change(cluster, ResourceType.BROKER, str(leader), RATE.format("leader"), "500")
    change(cluster, ResourceType.TOPIC, topic, REPLICAS.format("leader"), "*")
    cluster.wait_for(
        "the leader's own list of throttled replicas",
        lambda: setting_of(cluster, leader, topic, REPLICAS.format("leader")),
        until=any,
    )
    plan = tmp_path / "plan.json"
    wanted = {"topic": topic, "partition": 0, "replicas": [new]}
    plan.write_text(json.dumps({"version": 1, "partitions": [wanted]}))

    def tool(*arguments: str) -> str:
        given = ("--bootstrap-server", cluster.bootstrap, "--reassignment-json-file", str(plan))
        done = run_tool(REASSIGN, *given, *arguments)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    assert "Successfully started" in tool("--execute", "--throttle", "1000")
    sides = ("leader", "follower")
    for broker in (leader, new):
        rates = json.loads(znodes.get(f"/config/brokers/{broker}")[0])["config"]
        assert rates == {RATE.format(side): "1000" for side in sides}
    lists = {
        REPLICAS.format(side): f"0:{it}" for side, it in zip(sides, (leader, new), strict=True)
    }
    cluster.wait_for(
        f"the throttles {lists}",
        lambda: throttles(cluster, ResourceType.TOPIC, topic),
        until=lambda found: found == lists,
    )
    sent = "kafka_server_leaderreplication_byte_rate"
    cluster.wait_for(
        "a rate above the limit",
        lambda: metric(cluster, leader, sent),
        until=lambda rate: rate > 1000,
    )
    end = {"topic": topic, "partition": "0"}
    cluster.wait_for(
        "an end offset above 0 on the new replica",
        lambda: metric(cluster, new, "kafka_log_log_logendoffset", **end),
    )
    assert "still in progress" in tool("--verify", "--preserve-throttles")
    assert metric(cluster, new, "kafka_log_log_logendoffset", **end) < RECORDS
    assert metric(cluster, leader, sent) > 1000
    assert metric(cluster, new, "kafka_server_followerreplication_byte_rate") > 1000
    tool("--execute", "--additional", "--throttle", "1000000000")
    cluster.until_placed(topic, (new,))
    assert "completed" in tool("--verify")
    assert metric(cluster, new, "kafka_log_log_logendoffset", **end) == RECORDS
    until_unthrottled(cluster, ResourceType.TOPIC, topic)
    for broker in (leader, new):
        until_unthrottled(cluster, ResourceType.BROKER, str(broker))
