"""`kafka-reassign-partitions` and `kafka-leader-election` against three brokers.

The suite `cluster` compares what they print with Apache's tools.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from click.testing import Result

from barnabas_broker.testing import Broker
from tests.broker.cli.cluster import Three, three_brokers
from tests.broker.cli.conftest import run_command
from tests.broker.cli.kafka.test_tool import run
from tests.waiting import wait_for

CLEARED = (
    "Clearing broker-level throttles on brokers 0,1,2\n"
    "Clearing topic-level throttles on topic orders\n"
)


@pytest.fixture(scope="module")
def three(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Three]:
    with three_brokers(tmp_path_factory.mktemp("three")) as running:
        run_command(
            "topics", "create", "orders", "--replica-assignment", "0:1,1:2",
            bootstrap=running.bootstrap,
        )  # fmt: skip
        running.until_assigned("orders", (0, 1), (1, 2))
        yield running


def reassign(three: Three, *args: str | Path, fails: bool = False) -> Result:
    """Run `kafka-reassign-partitions`."""
    where = ("--bootstrap-server", three.bootstrap)
    return run("reassign_partitions", *where, *map(str, args), fails=fails)


def elect(three: Three, *args: str | Path, fails: bool = False) -> Result:
    """Run `kafka-leader-election`."""
    where = ("--bootstrap-server", three.bootstrap)
    return run("leader_election", *where, *map(str, args), fails=fails)


def written(path: Path, *replicas: list[int], topic: str = "orders") -> Path:
    """A reassignment file of a topic's first partitions."""
    entries = [
        {"topic": topic, "partition": number, "replicas": each, "log_dirs": ["any"] * len(each)}
        for number, each in enumerate(replicas)
    ]
    document = {"version": 1, "partitions": entries}
    path.write_text(json.dumps(document, separators=(",", ":")))
    return path


def test_moves_there_and_back(three: Three, tmp_path: Path) -> None:
    """Execute prints the file that leads back; verify says when all is done, and clears."""
    there = written(tmp_path / "there.json", [2, 1], [0, 2])
    back = written(tmp_path / "back.json", [0, 1], [1, 2])
    begun = reassign(three, "--execute", "--reassignment-json-file", there, "--throttle", "1000000")
    assert begun.stdout == (
        f"Current partition replica assignment\n\n{back.read_text()}\n\n"
        "Save this to use as the --reassignment-json-file option during rollback\n"
        "Warning: You must run --verify periodically, until the reassignment completes, to ensure "
        "the throttle is removed.\n"
        "The inter-broker throttle limit was set to 1000000 B/s\n"
        "Successfully started partition reassignments for orders-0,orders-1\n"
    )
    three.until_assigned("orders", (2, 1), (0, 2))
    wait_for(
        "no moves",
        lambda: reassign(three, "--list").stdout,
        until=lambda reported: reported == "No partition reassignments found.\n",
    )
    done = reassign(three, "--verify", "--reassignment-json-file", there)
    assert done.stdout == (
        "Status of partition reassignment:\n"
        "Reassignment of partition orders-0 is completed.\n"
        "Reassignment of partition orders-1 is completed.\n\n" + CLEARED
    )
    elsewhere = reassign(three, "--verify", "--reassignment-json-file", back)
    assert (
        "There is no active reassignment of partition orders-0, "
        "but replica set is 2,1 rather than 0,1." in elsewhere.stdout
    )
    idle = reassign(three, "--cancel", "--reassignment-json-file", back)
    assert idle.stdout == (
        "None of the specified partition reassignments are active.\n"
        "None of the specified partition moves are active.\n" + CLEARED
    )
    reassign(three, "--execute", "--reassignment-json-file", back)
    three.until_assigned("orders", (0, 1), (1, 2))


def test_replicas_are_proposed(three: Three, tmp_path: Path) -> None:
    """The current ones, then the proposed ones, each on a line."""
    path = tmp_path / "topics.json"
    path.write_text('{"version": 1, "topics": [{"topic": "orders"}]}')
    options = ("--generate", "--topics-to-move-json-file", path)
    lines = reassign(three, *options, "--broker-list", "0,2").stdout.splitlines()
    assert lines[0] == "Current partition replica assignment"
    assert lines[2:4] == ["", "Proposed partition reassignment configuration"]
    proposed = json.loads(lines[4])["partitions"]
    assert [sorted(each["replicas"]) for each in proposed] == [[0, 2], [0, 2]]
    wrong = reassign(three, *options, "--broker-list", "0,0,7,x", fails=True)
    assert wrong.stdout.splitlines() == [
        "Error: --broker-list takes broker ids, not 'x'",
        "Error: Broker list contains duplicate entries: [0]",
        "Error: Unknown broker id 7",
    ]
    path.write_text('{"topics": [{"topic": "gone"}]}')
    assert "Error: Topic gone not found." in (
        reassign(three, *options, "--broker-list", "0", fails=True).stdout
    )


def test_missing_brokers_and_partitions_are_reported_together(three: Three, tmp_path: Path) -> None:
    """Brokers and partitions, all of them, before anything is moved."""
    path = written(tmp_path / "plan.json", [0, 8], [1, 9], [1])
    failed = reassign(three, "--execute", "--reassignment-json-file", path, fails=True)
    assert failed.stdout.splitlines() == [
        "Error: Unknown broker id 8",
        "Error: Unknown broker id 9",
        "Error: Unable to find partition: orders-2",
    ]


def test_all_mistakes_of_a_file(three: Three, tmp_path: Path) -> None:
    """An empty list, fields that are not known, brokers named twice: a line for each."""
    path = tmp_path / "plan.json"
    path.write_text('{"version": 1, "partitions": []}')
    empty = reassign(three, "--verify", "--reassignment-json-file", path, fails=True)
    assert "partitions: it names no partition" in empty.stderr
    path.write_text('{"partitions": [{"topic": "t", "partition": 0, "replica": [1], '
                    '"replicas": [1, 1]}]}')  # fmt: skip
    wrong = reassign(three, "--execute", "--reassignment-json-file", path, fails=True).stderr
    assert "partitions[0].replica: there is no such field; did you mean replicas?" in wrong
    assert "partitions[0].replicas: [1, 1] names a broker twice" in wrong


def test_one_action_and_its_options(three: Three, tmp_path: Path) -> None:
    """Everything that does not go with the action is named."""
    for actions in ([], ["--list", "--execute"]):
        reported = reassign(three, *actions, fails=True).stderr
        assert (
            "Command must include exactly one action: --generate, --execute, --verify, " in reported
        )
    reported = reassign(three, "--verify", "--broker-list", "1", "--additional", fails=True).stderr
    assert 'Option "[broker-list]" can\'t be used with action "[verify]"' in reported
    assert 'Option "[additional]" can\'t be used with action "[verify]"' in reported
    assert 'Missing required argument "[reassignment-json-file]"' in reported


def test_elections(three: Three, tmp_path: Path) -> None:
    """By name, of a file, or all that need one."""
    assert elect(three, "--election-type", "preferred", "--all-topic-partitions").stdout == ""
    led = elect(three, "--election-type", "PREFERRED", "--topic", "orders", "--partition", "1")
    assert led.stdout == "Valid replica already elected for partitions orders-1\n"
    path = tmp_path / "elections.json"
    path.write_text('{"partitions": [{"topic": "orders", "partition": 9}]}')
    failed = elect(three, "--election-type", "unclean", "--path-to-json-file", path, fails=True)
    assert failed.stdout == (
        "Error completing leader election (UNCLEAN) for partition: orders-9: "
        "org.apache.kafka.common.errors.UnknownTopicOrPartitionException: "
        "The partition does not exist.\n"
    )
    assert "1 replica(s) could not be elected" in failed.stderr


@pytest.mark.parametrize(
    ("args", "reported"),
    [
        (["--topic", "orders"], "Missing required option(s): partition"),
        (["--all-topic-partitions", "--topic", "orders"], "One and only one of the following"),
        ([], "required: topic, all-topic-partitions, path-to-json-file"),
        (["--all-topic-partitions", "--partition", "1"], "only allowed if topic is used"),
    ],
)
def test_elections_of_nothing_in_particular(three: Three, args: list[str], reported: str) -> None:
    """It must be said which partitions."""
    assert reported in elect(three, "--election-type", "preferred", *args, fails=True).stderr


def test_replicas_move_between_log_directories(
    kafka_broker_factory: Callable[..., Broker], tmp_path: Path
) -> None:
    """A file that names directories has them moved; verify tells when they are there."""
    here, there = str(tmp_path / "here"), str(tmp_path / "there")
    broker = kafka_broker_factory({"log.dirs": f"{here},{there}", "broker.id": "3"})
    where = ("--bootstrap-server", broker.bootstrap_servers)
    broker.create_topic("t", partitions=1)
    (row,) = run_command(
        "log-dirs", "describe", "--topic", "t", "--output", "json",
        bootstrap=broker.bootstrap_servers,
    ).json()  # fmt: skip
    target = there if row["directory"] == here else here
    path = tmp_path / "plan.json"
    entry = {"topic": "t", "partition": 0, "replicas": [3], "log_dirs": [target]}
    path.write_text(json.dumps({"version": 1, "partitions": [entry]}))
    file = ("--reassignment-json-file", str(path))
    before = run("reassign_partitions", *where, "--verify", *file).stdout
    assert (
        f"Partition t-0 on broker 3 is not being moved from log dir {row['directory']} "
        f"to {target}.\n" in before
    )
    begun = run("reassign_partitions", *where, "--execute", *file,
                "--replica-alter-log-dirs-throttle", "1000000").stdout  # fmt: skip
    assert "The replica-alter-dir throttle limit was set to 1000000 B/s\n" in begun
    assert begun.endswith(
        f"Successfully started moving log directory to {target} for replica t-0 with broker 3 \n"
    )
    wait_for(
        "the replica in its new directory",
        lambda: run("reassign_partitions", *where, "--verify", *file).stdout,
        until=lambda reported: (
            "Reassignment of replica t-0-3 completed successfully.\n" in reported
        ),
    )
    idle = run("reassign_partitions", *where, "--cancel", *file).stdout
    assert "None of the specified partition moves are active.\n" in idle
    entry["log_dirs"] = [str(tmp_path / "nowhere")]
    path.write_text(json.dumps({"partitions": [entry]}))
    failed = run("reassign_partitions", *where, "--execute", *file, fails=True).stdout
    assert "Error: Failed to alter dir for t-0-3: LOG_DIR_NOT_FOUND\n" in failed
