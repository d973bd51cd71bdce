"""Bringing a machine to what a file says, again and again, with a real broker."""

from __future__ import annotations

import shutil
import socket
from http import HTTPStatus
from pathlib import Path
from urllib.request import urlopen

import pytest
from confluent_kafka.admin import (
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    ResourceType,
)

from barnabas_operator.api.conditions import is_ready
from barnabas_operator.local.admin import AGAIN_S
from barnabas_operator.local.state import LocalError
from e2e import kafka
from tests.operator.local.laptop import Laptop, cluster, colliding_topics, topic
from tests.oracle.apache import free_port
from tests.waiting import ANSWER, seconds


def test_the_second_time_only_what_is_different_is_done(laptop: Laptop) -> None:
    """Topics appear and grow, nothing is restarted, and nothing at all is done the third time."""
    wanted = cluster()
    seen = laptop.up(wanted, topic(partitions=1))
    broker = laptop.broker
    assert is_ready(seen.status.conditions)
    assert seen.topics["packages"].partitions == 1
    assert seen.brokers[0].pid == broker.pid
    first_ready = seen.status.conditions[0].last_transition_time

    seen = laptop.up(wanted, topic(partitions=3), topic("files"))
    assert laptop.said == [
        "topic files: create with 3 partitions of 1 replicas",
        "topic packages: grow from 1 to 3 partitions",
    ]
    assert seen.topics["packages"].partitions == 3
    laptop.up()
    assert laptop.said == []
    assert laptop.broker == broker
    assert laptop.look().status.conditions[0].last_transition_time == first_ready


def test_three_brokers_and_the_loss_of_one(laptop: Laptop) -> None:
    """Each has a port counted on from the first, and a topic survives a broker."""
    port = free_port(3)
    listeners = [{"name": "plain", "type": "internal", "port": port}]
    brokers = {"replicas": 3, "storage": {"size": "1Gi"}}
    wanted = cluster(brokers=brokers, listeners=listeners)
    seen = laptop.up(wanted, topic(partitions=3, replicas=3))
    assert is_ready(seen.status.conditions)
    assert [each.id for each in seen.brokers] == [0, 1, 2]
    servers = seen.status.listeners[0].bootstrap_servers
    assert len(servers.split(",")) == 3
    assert f"127.0.0.1:{port}" in servers
    client = {"bootstrap.servers": servers}
    sent = kafka.send(client, "packages", [(b"%d" % n, b"before") for n in range(100)])
    laptop.kill(1)
    sent |= kafka.send(client, "packages", [(b"%d" % n, b"after") for n in range(100)])
    assert not is_ready(laptop.look().status.conditions)
    seen = laptop.up()
    assert laptop.said[0].startswith("broker 1 had ended without a request to stop")
    assert is_ready(seen.status.conditions)
    assert kafka.read(client, "packages") == sent
    with pytest.raises(LocalError, match="brokers can be added, not taken away"):
        laptop.up({**wanted, "spec": {**wanted["spec"], "brokers": {**brokers, "replicas": 2}}})


def test_one_broker_that_keeps_its_own_data_stays_alone(laptop: Laptop) -> None:
    """Its topics are in its own journal; a cluster of several is begun as one."""
    wanted = cluster()
    laptop.up(wanted)
    brokers = {"replicas": 3, "storage": {"size": "1Gi"}}
    with pytest.raises(LocalError, match="the only broker keeps the coordination data"):
        laptop.up({**wanted, "spec": {**wanted["spec"], "brokers": brokers}})
    assert laptop.broker.running


def test_the_admin_port_is_shown_and_answers(laptop: Laptop) -> None:
    """Each start takes a free port; a broker that is stopped shows none."""
    laptop.up(cluster())
    (running,) = laptop.look().brokers
    assert running.admin is not None
    assert running.admin.startswith("http://127.0.0.1:")
    with urlopen(f"{running.admin}/ready", timeout=seconds(ANSWER)) as answer:
        assert answer.status == HTTPStatus.OK
    laptop.down()
    assert [each.admin for each in laptop.look().brokers] == [None]


def test_drift_of_a_topic_is_reverted(laptop: Laptop) -> None:
    """Until then `status` tells what would be done."""
    wanted = (cluster(), topic(config={"retention.ms": "60000"}))
    seen = laptop.up(*wanted)
    _set(seen.status.listeners[0].bootstrap_servers, "packages", {"retention.ms": "1"})
    condition = laptop.look().topics["packages"].conditions[1]
    assert (condition.type, condition.reason) == ("Reconciling", "Drifted")
    assert condition.message == "`barnabas local up` would: set retention.ms=60000"
    laptop.up()
    assert laptop.said == ["topic packages: set retention.ms=60000"]


def _set(bootstrap: str, name: str, settings: dict[str, str]) -> None:
    entries = [
        ConfigEntry(key, value, incremental_operation=AlterConfigOpType.SET)
        for key, value in settings.items()
    ]
    resource = ConfigResource(ResourceType.TOPIC, name, incremental_configs=entries)
    admin = AdminClient({"bootstrap.servers": bootstrap})
    admin.incremental_alter_configs([resource])[resource].result(seconds(ANSWER))


def test_other_settings_of_the_cluster_restart_the_broker(laptop: Laptop) -> None:
    """With the reason; on the same ports, with the same topics."""
    wanted = cluster(config={"num.partitions": "2"})
    before = laptop.up(wanted, topic())
    broker = laptop.broker
    wanted["spec"]["config"] = {"num.partitions": "4", "log.retention.hours": "1"}
    settings = laptop.state.broker(0) / "server.properties"
    text = settings.read_text()
    with settings.open() as reader:
        after = laptop.up(wanted, topic())
        # It is replaced in one step: what a repair reads is never a part of it.
        assert reader.read() == text
    reasons = "log.retention.hours=1 is new; num.partitions was 2, becomes 4"
    assert laptop.said[0] == f"restarting the broker: {reasons}"
    assert not broker.running
    assert laptop.broker.running
    assert after.status.listeners == before.status.listeners
    assert after.status.cluster_id == before.status.cluster_id
    assert after.topics["packages"].topic_id == before.topics["packages"].topic_id


def test_a_port_that_is_taken(laptop: Laptop) -> None:
    """Another one takes its place, it is told, and it stays as long as the broker runs."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        taken = server.getsockname()[1]
        wanted = cluster(listeners=[{"name": "plain", "port": taken}])
        seen = laptop.up(wanted)
        address = seen.status.listeners[0].bootstrap_servers
        assert not address.endswith(f":{taken}")
        port = address.rpartition(":")[2]
        assert f"port {taken} is in use; listener plain is at {port}" in laptop.said
    again = laptop.up()
    assert laptop.said == []
    assert again.status.listeners == seen.status.listeners


def test_a_broker_that_was_killed_is_started_again(laptop: Laptop) -> None:
    """`status` says that it ended; a process that has its pid now is not taken for it."""
    laptop.up(cluster(), topic())
    laptop.kill()
    seen = laptop.look()
    assert seen.status.conditions[0].reason == "BrokerEnded"
    assert seen.brokers[0].pid is None
    assert seen.topics["packages"].partitions == 3
    laptop.up()
    assert laptop.said[0].startswith(
        "the broker had ended without a request to stop; its last words:"
    )
    assert laptop.broker.running


def test_a_topic_that_cannot_be_made_concerns_itself_alone(laptop: Laptop) -> None:
    """The others are made; its condition says what to do."""
    seen = laptop.up(cluster(), *colliding_topics(), topic("files"))
    assert not is_ready(seen.topics["second"].conditions)
    stalled = seen.topics["second"].conditions[1]
    assert (stalled.type, stalled.reason) == ("Stalled", "Refused")
    assert is_ready(seen.topics["files"].conditions)


def test_a_full_disk_is_reported_once(laptop: Laptop) -> None:
    """It is tried again until the time is up; what is printed is the reason, not the attempts."""
    wanted = cluster(config={"barnabas.log.dirs.min.free.bytes": str(1 << 60)})
    laptop.up(wanted)
    seen = laptop.up(wanted, topic(), timeout_s=20 * AGAIN_S)
    assert not is_ready(seen.topics["packages"].conditions)
    create, reason = (line for line in laptop.said if line.startswith("topic packages: "))
    assert create.endswith("create with 3 partitions of 1 replicas")
    data = laptop.state.broker(0) / "data"
    assert reason.endswith(
        f"KAFKA_STORAGE_ERROR: no log directory takes packages-0: {data} is full"
    )


def test_topics_without_a_resource_follow_the_deletion_policy(laptop: Laptop) -> None:
    """Deleted if it said so, else left alone."""
    wanted = cluster()
    seen = laptop.up(wanted, topic("goes", deletionPolicy="Delete"), topic("stays"))
    laptop.up(wanted)
    assert laptop.said == ["topic goes: delete, its KafkaTopic goes is gone"]
    admin = AdminClient({"bootstrap.servers": seen.status.listeners[0].bootstrap_servers})
    assert set(admin.list_topics(timeout=seconds(ANSWER)).topics) == {"stays"}


def test_a_second_cluster_of_the_same_name_is_refused(laptop: Laptop, tmp_path: Path) -> None:
    """It would take the data of the first; --replace says that it is to."""
    laptop.up(cluster())
    first = laptop.file
    laptop.file = tmp_path / "other.yaml"
    shutil.copy(first, laptop.file)
    with pytest.raises(LocalError, match=f"is the one of {first}; for a second cluster"):
        laptop.up()
    laptop.up(replace=True)
    assert laptop.said == []
    # A file that was moved is the same file.
    moved = laptop.file.rename(tmp_path / "moved.yaml")
    laptop.file = moved
    laptop.up()
    renamed = cluster()
    renamed["metadata"]["name"] = "another"
    with pytest.raises(LocalError, match="belongs to KafkaCluster quickstart, not to another"):
        laptop.up(renamed)


def test_a_comma_would_be_two_directories(tmp_path: Path) -> None:
    """To the broker's settings, that is."""
    laptop = Laptop(tmp_path / "a,b")
    laptop.file = tmp_path / "cluster.yaml"
    with pytest.raises(LocalError, match="no comma"):
        laptop.up(cluster())
