"""The tools that look after a cluster, on four broker processes in three racks."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from urllib.error import HTTPError
from urllib.request import urlopen

import pytest
from confluent_kafka.admin import NewTopic
from kazoo.client import KazooClient

from barnabas_broker.cli.client import Connection
from barnabas_operator.brokers import AdminBrokers, BrokersError
from tests.broker.cli.conftest import Outcome, run_command
from tests.cluster.running import Cluster, controlled_by
from tests.oracle.apache import free_port, run_tool

REASSIGN = "org.apache.kafka.tools.reassign.ReassignPartitionsCommand"
ELECT = "org.apache.kafka.tools.LeaderElectionCommand"


@pytest.fixture(scope="module")
def three(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """Four for once, each with an admin port."""
    settings = {"auto.leader.rebalance.enable": "false"}
    directory = tmp_path_factory.mktemp("tools")
    cluster = Cluster(directory, brokers=4, settings=settings, racks=("a", "b", "c", "c"))
    for broker in cluster.brokers.values():
        broker.settings["barnabas.admin.listener"] = f"127.0.0.1:{free_port()}"
    with cluster as started:
        yield started


def barnabas(cluster: Cluster, *args: str | Path, fails: int = 0) -> Outcome:
    """Run a command with the addresses of those that run."""
    alive = [it.bootstrap for it in cluster.brokers.values() if it.exit_code is None]
    return run_command(*map(str, args), bootstrap=",".join(alive), fails=fails)


def made(cluster: Cluster, topic: str, assignment: str, **config: str) -> None:
    """Create a topic whose replicas lie where they are told, and wait until it is whole."""
    settings = [f"--config={name.replace('_', '.')}={value}" for name, value in config.items()]
    barnabas(cluster, "topics", "create", topic, "--replica-assignment", assignment, *settings)
    placed = [tuple(map(int, each.split(":"))) for each in assignment.split(",")]
    cluster.until(lambda: cluster.lies(topic, *placed))


def states(cluster: Cluster, path: Path, *, fails: int = 0) -> list[str]:
    """What verify says of each partition of a file."""
    told = barnabas(cluster, "reassign", "verify", path, "--output", "json", fails=fails)
    return [row["state"] for row in told.json()]


def test_files_are_exchanged_with_kafkas_tool(cluster: Cluster, tmp_path: Path) -> None:
    """It makes the moves of our plan; we undo them with what it prints, and it finds them done."""
    made(cluster, "moved", "0:1,1:0", min_insync_replicas="1")
    plan, back = tmp_path / "plan.json", tmp_path / "back.json"
    barnabas(cluster, "reassign", "plan", "drain", "0", "--topic", "moved", "--to", plan)
    kafka = ("--bootstrap-server", cluster.bootstrap)
    done = run_tool(
        REASSIGN, *kafka, "--reassignment-json-file", str(plan), "--execute",
        "--throttle", "100000000",
    )  # fmt: skip
    assert "Successfully started" in done.stdout, done.stdout + done.stderr
    planned = json.loads(plan.read_text())["partitions"]
    moved = [tuple(each["replicas"]) for each in planned]
    cluster.until(lambda: cluster.lies("moved", *moved))
    cluster.until(lambda: barnabas(cluster, "reassign", "list", "--output", "json").json() == [])
    assert states(cluster, plan) == ["complete", "complete"]
    back.write_text(next(line for line in done.stdout.splitlines() if line.startswith("{")))
    ended = barnabas(cluster, "reassign", "execute", back, "--throttle", "100000000", "--wait")
    assert ended.stdout.count("complete") == 2
    cluster.until(lambda: cluster.lies("moved", (0, 1), (1, 0)))
    seen = run_tool(REASSIGN, *kafka, "--reassignment-json-file", str(back), "--verify")
    assert seen.stdout.count("is completed.") == 2, seen.stdout + seen.stderr


def test_a_move_that_waits_for_its_source(cluster: Cluster, tmp_path: Path) -> None:
    """It is listed, guarded against another, cancelled, and made when its only copy is back."""
    made(cluster, "held", "2", min_insync_replicas="1")
    there, elsewhere = tmp_path / "there.json", tmp_path / "elsewhere.json"
    for path, broker in ((there, 3), (elsewhere, 1)):
        entry = {"topic": "held", "partition": 0, "replicas": [broker]}
        path.write_text(json.dumps({"version": 1, "partitions": [entry]}))
    cluster.brokers[2].stop()
    why = [{"topic": "held", "partition": 0, "reason": "in-sync replica 2 is away"}]
    cluster.until(lambda: leaderless(cluster, 0) == {"count": 1, "partitions": why})
    cluster.until(lambda: is_logged(cluster, "nobody leads", "held-0", "replica 2 is away"))
    barnabas(cluster, "reassign", "execute", there)
    (row,) = barnabas(cluster, "reassign", "list", "--output", "json").json()
    assert (row["topic"], row["adding"], row["removing"]) == ("held", [3], [2])
    assert states(cluster, there, fails=1) == ["moving"]
    refused = barnabas(cluster, "reassign", "execute", elsewhere, fails=1)
    assert "held-0 is being moved to [3] already" in refused.stderr
    refused = barnabas(cluster, "reassign", "plan", "balance", "--topic", "held", fails=1)
    assert "held-0 is being moved to [3]: wait for it, or cancel it" in refused.stderr
    ended = barnabas(cluster, "reassign", "cancel", there)
    assert ended.stdout == "Cancelled the moves of 1 partitions.\n"
    assert barnabas(cluster, "reassign", "list").stdout == "No partition is being moved.\n"
    cluster.start_missing()
    cluster.until(lambda: cluster.lies("held", (2,)))
    barnabas(cluster, "reassign", "execute", there, "--wait")
    assert states(cluster, there) == ["complete"]


def test_brokers_are_restarted_one_at_a_time(cluster: Cluster, tmp_path: Path) -> None:
    """While one is away another may not go; it catches up, and leads again what it should."""
    made(cluster, "kept", "0:1:2,1:2:0,2:0:1", min_insync_replicas="2")
    ids = [row["broker"] for row in barnabas(cluster, "brokers", "list", "--output", "json").json()]
    assert ids == [0, 1, 2, 3]
    barnabas(cluster, "brokers", "caught-up", "--wait", "120")
    free = barnabas(cluster, "brokers", "safe-to-restart", "0", "--wait", "120")
    assert free.stdout == "Broker 0 may be restarted.\n"
    cluster.brokers[1].stop()
    cluster.until(lambda: cluster.isr("kept") == (0, 2))
    cluster.until(lambda: "kept-0" in at_risk(cluster, 0))
    risky = barnabas(cluster, "brokers", "safe-to-restart", "0", fails=1)
    assert "broker 0 may not be restarted: " in risky.stderr
    cluster.start_missing()
    barnabas(cluster, "brokers", "caught-up", "1", "--wait", "120")
    cluster.until(lambda: cluster.lies("kept", (0, 1, 2), (1, 2, 0), (2, 0, 1)))
    path = tmp_path / "elections.json"
    path.write_text('{"partitions": [{"topic": "kept", "partition": 1}]}')
    (row,) = barnabas(cluster, "elect-leaders", "--file", path, "--output", "json").json()
    assert row["result"] == "elected"
    cluster.until(lambda: cluster.leader("kept", 1) == 1)
    done = run_tool(
        ELECT, "--bootstrap-server", cluster.bootstrap, "--election-type", "preferred",
        "--path-to-json-file", str(path),
    )  # fmt: skip
    assert "already elected" in done.stdout, done.stdout + done.stderr


def leaderless(cluster: Cluster, broker: int) -> object:
    """The partitions without a leader, as a broker tells on its admin port."""
    url = f"http://{cluster.brokers[broker].settings['barnabas.admin.listener']}/led"
    try:
        with urlopen(url, timeout=60) as response:
            told = json.load(response)
    except HTTPError as error:
        told = json.load(error)
        error.close()
    assert told["led"] is (told["leaderless"]["count"] == 0)
    return told["leaderless"]


def is_logged(cluster: Cluster, *words: str) -> bool:
    """Whether some broker has said all of this in one line."""
    lines = (
        line for it in cluster.brokers.values() for line in it.log_file.read_text().splitlines()
    )
    return any(all(word in line for word in words) for line in lines)


def moved_controller(cluster: Cluster, znodes: KazooClient) -> None:
    """Have another broker be the controller, and wait until all have heard of it."""
    others = {*cluster.brokers} - {cluster.known_controller()}
    cluster.until(lambda: controlled_by(znodes, *others))
    cluster.until(lambda: cluster.controller() in others)


def test_orders_follow_the_controller(cluster: Cluster, znodes: KazooClient) -> None:
    """Who knows only the one before looks again: commands at once, the operator the next time."""
    connection = Connection(cluster.bootstrap, 60)
    client, _ = connection.admin()
    brokers = AdminBrokers(cluster.bootstrap)

    def refusal() -> BrokersError | None:
        """Of the operator's order; None where its client had heard of the new one by itself."""
        moved_controller(cluster, znodes)
        answers = connection.order(
            client,
            ["ordered"],
            lambda left: client.create_topics([NewTopic(it, 1) for it in left]),
        )
        assert answers["ordered"].result() is None
        cluster.until(lambda: "ordered" in brokers.topic_names())
        moved_controller(cluster, znodes)
        try:
            brokers.delete_topic("ordered")
        except BrokersError as error:
            return error
        cluster.until(lambda: "ordered" not in brokers.topic_names())
        return None

    refused = next(filter(None, (refusal() for _ in range(10))))
    assert (refused.code, refused.reachable) == ("NOT_CONTROLLER", False)
    brokers.topic_names()
    brokers.delete_topic("ordered")
    cluster.until(lambda: "ordered" not in brokers.topic_names())


def at_risk(cluster: Cluster, broker: int) -> str:
    """The partitions that a restart would put at risk, as the broker says."""
    (row,) = barnabas(cluster, "brokers", "describe", str(broker), "--output", "json").json()
    return " ".join(row["at_risk"])
