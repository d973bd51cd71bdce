"""The tools that look after a cluster, on four broker processes in three racks."""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import partial
from importlib import import_module
from pathlib import Path
from urllib.error import HTTPError
from urllib.request import urlopen

import pytest
from click.testing import CliRunner
from confluent_kafka.admin import NewTopic
from kazoo.client import KazooClient

from barnabas_broker.cli.client import Connection
from barnabas_operator.brokers import AdminBrokers
from barnabas_operator.plan.topics import CreateTopic
from tests.broker.cli.conftest import Outcome, run_command
from tests.cluster.running import Cluster, move_controller
from tests.oracle.apache import free_port, run_tool
from tests.waiting import ANSWER, ATTEMPT_S, SETTLE, seconds

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
    cluster.until_placed(topic, *placed)


def states(cluster: Cluster, path: Path, *, fails: int = 0) -> list[str]:
    """What verify says of each partition of a file."""
    printed = barnabas(cluster, "reassign", "verify", path, "--output", "json", fails=fails)
    return [row["state"] for row in printed.json()]


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
    cluster.until_placed("moved", *moved)
    cluster.wait_for(
        "the end of all moves",
        lambda: barnabas(cluster, "reassign", "list", "--output", "json").json(),
        until=lambda found: found == [],
    )
    assert states(cluster, plan) == ["complete", "complete"]
    back.write_text(next(line for line in done.stdout.splitlines() if line.startswith("{")))
    ended = barnabas(cluster, "reassign", "execute", back, "--throttle", "100000000", "--wait")
    assert ended.stdout.count("complete") == 2
    cluster.until_placed("moved", (0, 1), (1, 0))
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
    cluster.wait_for(
        "one leaderless partition and why",
        lambda: leaderless(cluster, 0),
        until=lambda found: found == {"count": 1, "partitions": why},
    )
    cluster.wait_for(
        "a line of the log on the leaderless partition",
        lambda: lines_with(cluster, "No leader", "held-0", "replica 2 is away"),
    )
    barnabas(cluster, "reassign", "execute", there)
    (row,) = barnabas(cluster, "reassign", "list", "--output", "json").json()
    assert (row["topic"], row["adding"], row["removing"]) == ("held", [3], [2])
    assert states(cluster, there, fails=1) == ["moving"]
    refused = barnabas(cluster, "reassign", "execute", elsewhere, fails=1)
    assert "held-0 is being moved to [3] already" in refused.stderr
    refused = barnabas(cluster, "reassign", "plan", "balance", "--topic", "held", fails=1)
    assert "held-0 is being moved to [3]: wait for it, or cancel it" in refused.stderr
    ended = barnabas(cluster, "reassign", "cancel", there)
    assert ended.stdout == "Cancelled the moves of 1 partition.\n"
    assert barnabas(cluster, "reassign", "list").stdout == "No partition is being moved.\n"
    cluster.start_missing()
    cluster.until_placed("held", (2,))
    barnabas(cluster, "reassign", "execute", there, "--wait")
    assert states(cluster, there) == ["complete"]


def test_brokers_are_restarted_one_at_a_time(cluster: Cluster, tmp_path: Path) -> None:
    """While one is away another may not go; it catches up, and leads again what it should."""
    made(cluster, "kept", "0:1:2,1:2:0,2:0:1", min_insync_replicas="2")
    ids = [row["broker"] for row in barnabas(cluster, "brokers", "list", "--output", "json").json()]
    assert ids == [0, 1, 2, 3]
    limit_s = f"{seconds(SETTLE):.0f}"
    barnabas(cluster, "brokers", "caught-up", "--wait", limit_s)
    free = barnabas(cluster, "brokers", "safe-to-restart", "0", "--wait", limit_s)
    assert free.stdout == "Broker 0 may be restarted.\n"
    cluster.brokers[1].stop()
    cluster.until_in_sync("kept", 0, 2)
    cluster.wait_for(
        "kept-0 among the partitions at risk",
        lambda: at_risk(cluster, 0),
        until=lambda found: "kept-0" in found,
    )
    risky = barnabas(cluster, "brokers", "safe-to-restart", "0", fails=1)
    assert "broker 0 may not be restarted: " in risky.stderr
    cluster.start_missing()
    barnabas(cluster, "brokers", "caught-up", "1", "--wait", limit_s)
    cluster.until_placed("kept", (0, 1, 2), (1, 2, 0), (2, 0, 1))
    path = tmp_path / "elections.json"
    path.write_text('{"partitions": [{"topic": "kept", "partition": 1}]}')
    (row,) = barnabas(cluster, "elect-leaders", "--file", path, "--output", "json").json()
    assert row["result"] == "elected"
    cluster.until_led_by("kept", 1, partition=1)
    done = run_tool(
        ELECT, "--bootstrap-server", cluster.bootstrap, "--election-type", "preferred",
        "--path-to-json-file", str(path),
    )  # fmt: skip
    assert "already elected" in done.stdout, done.stdout + done.stderr


OURS = {REASSIGN: "reassign_partitions", ELECT: "leader_election"}


def told_by(whose: str, cluster: Cluster, tool: str, *args: str | Path) -> tuple[int, list[str]]:
    """How Kafka's tool or ours of that name ended, and its lines without the topic's prefix."""
    alive = [it.bootstrap for it in cluster.brokers.values() if it.exit_code is None]
    words = ("--bootstrap-server", ",".join(alive), *map(str, args))
    if whose == "them":
        done = run_tool(tool, *words)
        code, out = done.returncode, done.stdout
    else:
        command = import_module(f"barnabas_broker.cli.kafka.{OURS[tool]}").main
        result = CliRunner().invoke(command, words)
        code, out = result.exit_code, result.stdout
    # Kafka's tool forgets the end of one line.
    out = out.replace("moves are active.Clearing", "moves are active.\nClearing")
    return code, out.replace(f"{whose}-", "").splitlines()


def test_tools_print_reassignments_as_kafkas_do(cluster: Cluster, tmp_path: Path) -> None:
    """The same lines of a move that waits, is refused, is cancelled, and is made."""
    printed: dict[str, list[tuple[int, list[str]]]] = {"ours": [], "them": []}
    for whose, lines in printed.items():
        made(cluster, f"{whose}-waits", "2", min_insync_replicas="1")
        plan, back = tmp_path / f"{whose}.json", tmp_path / f"{whose}-back.json"
        for path, broker in ((plan, 3), (back, 2)):
            entry = {"topic": f"{whose}-waits", "partition": 0, "replicas": [broker]}
            path.write_text(json.dumps({"version": 1, "partitions": [entry]}))
        cluster.brokers[2].stop()
        cluster.wait_for(
            "a leaderless partition",
            lambda: leaderless(cluster, 0),
            until=lambda found: found != {"count": 0, "partitions": []},
        )
        ill = barnabas(cluster, "cluster", "health", fails=1)
        assert "offline brokers:                  2\n" in ill.stdout
        assert f"leaderless partitions:            {whose}-waits-0\n" in ill.stdout
        assert (
            "the cluster is not healthy: 1 offline brokers; 1 leaderless partitions" in ill.stderr
        )
        reassign = partial(told_by, whose, cluster, REASSIGN)
        file = ("--reassignment-json-file", plan)
        lines += [reassign("--execute", *file), reassign("--list"), reassign("--verify", *file)]
        lines.append(reassign("--execute", *file))
        lines += [reassign("--cancel", *file), reassign("--cancel", *file), reassign("--list")]
        cluster.start_missing()
        cluster.until_placed(f"{whose}-waits", (2,))
        lines.append(reassign("--execute", *file, "--throttle", "100000000"))
        cluster.until_placed(f"{whose}-waits", (3,))
        cluster.wait_for(
            "the end of all moves",
            lambda: barnabas(cluster, "reassign", "list", "--output", "json").json(),
            until=lambda found: found == [],
        )
        lines.append(reassign("--verify", *file))
        lines.append(reassign("--verify", "--reassignment-json-file", back))
    assert printed["ours"] == printed["them"]
    assert [code for code, _ in printed["ours"]] == [0, 0, 0, 1, 0, 0, 0, 0, 0, 0]
    assert "waits-0: replicas: 3,2. adding: 3. removing: 2." in printed["ours"][1][1]


def test_tools_print_elections_as_kafkas_do(cluster: Cluster, tmp_path: Path) -> None:
    """An election that is held, one that is not needed, one of a partition that is not there."""
    printed: dict[str, list[tuple[int, list[str]]]] = {"ours": [], "them": []}
    for whose in printed:
        made(cluster, f"{whose}-elected", "1:0:2", min_insync_replicas="1")
    cluster.brokers[1].stop()
    for whose in printed:
        cluster.until_in_sync(f"{whose}-elected", 0, 2)
    cluster.start_missing()
    for whose, lines in printed.items():
        cluster.until_placed(f"{whose}-elected", (1, 0, 2))
        elect = partial(told_by, whose, cluster, ELECT, "--election-type", "preferred")
        one = ("--topic", f"{whose}-elected", "--partition")
        lines += [elect(*one, "0"), elect(*one, "0"), elect(*one, "9")]
        path = tmp_path / "elections.json"
        path.write_text(json.dumps({"partitions": [{"topic": f"{whose}-elected", "partition": 0}]}))
        lines.append(elect("--path-to-json-file", path))
    assert printed["ours"] == printed["them"]
    assert printed["ours"][0] == (
        0, ["Successfully completed leader election (PREFERRED) for partitions elected-0"],
    )  # fmt: skip
    assert [code for code, _ in printed["ours"]] == [0, 0, 1, 0]


def leaderless(cluster: Cluster, broker: int) -> object:
    """The partitions without a leader, as a broker tells on its admin port."""
    url = f"http://{cluster.brokers[broker].settings['barnabas.admin.listener']}/leaderless-partitions"
    try:
        with urlopen(url, timeout=ATTEMPT_S) as response:
            printed = json.load(response)
    except HTTPError as error:
        printed = json.load(error)
        error.close()
    assert printed["led"] is (printed["leaderless"]["count"] == 0)
    return printed["leaderless"]


def lines_with(cluster: Cluster, *words: str) -> list[str]:
    """The lines of all brokers' logs that have all of these words."""
    lines = (
        line for it in cluster.brokers.values() for line in it.log_file.read_text().splitlines()
    )
    return [line for line in lines if all(word in line for word in words)]


def moved_controller(cluster: Cluster, znodes: KazooClient) -> None:
    """Have another broker be the controller, and wait until it is in all brokers' metadata."""
    others = {*cluster.brokers} - {cluster.known_controller()}
    move_controller(cluster, znodes, *others)
    cluster.wait_for(
        f"one of the brokers {others} as the controller in every broker's metadata",
        cluster.controllers,
        until=lambda found: len(found) == 1 and found <= others,
    )


def test_a_frozen_broker_hides_no_other(cluster: Cluster) -> None:
    """Commands that ask every broker show what the others answer, and name the one that does not.

    The controller is frozen, which other brokers still name.
    """
    made(cluster, "seen", "0:1,1:2,2:3,3:0")
    frozen = cluster.known_controller()
    others = {broker for broker in cluster.brokers if broker != frozen}
    ask = partial(barnabas, cluster, fails=1)
    brief = ("--timeout", str(ATTEMPT_S))
    with cluster.frozen(frozen):
        done = ask("cluster", "health", "--output", "json", *brief)
        assert f"broker {frozen} does not answer: " in done.stderr
        assert done.json()["silent_brokers"] == [frozen]
        assert "the cluster is not healthy: 1 silent brokers" in done.stderr
    for command, refusal, shows_brokers in (
        (("groups", "list"), "does not list its groups", False),
        (("transactions", "list"), "does not list its transactions", False),
        (("log-dirs", "describe"), "does not describe its log directories", True),
    ):
        cluster.start_missing()
        with cluster.frozen(frozen):
            done = ask(*command, "--output", "json", *brief)
        assert f"broker {frozen} {refusal}: " in done.stderr
        if shows_brokers:
            assert {row["broker"] for row in done.json()} == others
        else:
            assert isinstance(done.json(), list)


def test_orders_follow_the_controller(cluster: Cluster, znodes: KazooClient) -> None:
    """A client that knows only the controller before finds the next one within the same call."""
    connection = Connection(cluster.bootstrap, seconds(ANSWER))
    client, _ = connection.admin()
    with AdminBrokers(cluster.bootstrap) as brokers:
        assert brokers.describe().controller_id == cluster.known_controller()
        moved_controller(cluster, znodes)
        answers = connection.order(
            client,
            ["ordered"],
            lambda left: client.create_topics([NewTopic(it, 1) for it in left]),
        )
        assert answers["ordered"].result() is None
        until_named(cluster, brokers, "ordered")
        for _ in range(2):
            moved_controller(cluster, znodes)
            assert brokers.delete_topics(["ordered"]) == {}
            until_not_named(cluster, brokers, "ordered")
            moved_controller(cluster, znodes)
            ordered = CreateTopic(partitions=1, replicas=1, config={})
            assert brokers.create_topics({"ordered": ordered}) == {}
            until_named(cluster, brokers, "ordered")
        assert brokers.delete_topics(["ordered"]) == {}


def until_named(cluster: Cluster, brokers: AdminBrokers, topic: str) -> None:
    """Wait until the operator's client sees a topic."""
    cluster.wait_for(f"the topic {topic}", brokers.topic_names, until=lambda it: topic in it)


def until_not_named(cluster: Cluster, brokers: AdminBrokers, topic: str) -> None:
    """Wait until the operator's client sees the topic no more."""
    cluster.wait_for(
        f"the end of the topic {topic}", brokers.topic_names, until=lambda it: topic not in it
    )


def at_risk(cluster: Cluster, broker: int) -> str:
    """The partitions that a restart would put at risk, as the broker says."""
    (row,) = barnabas(cluster, "brokers", "describe", str(broker), "--output", "json").json()
    return " ".join(row["at_risk"])
