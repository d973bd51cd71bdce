"""`barnabas reassign` against three brokers in three racks; tests/cluster stops some of them."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from barnabas_broker.cli.output import human
from barnabas_broker.cli.reassign.generating import generated
from barnabas_kafka.errors import KafkaError
from barnabas_kafka.ids import TopicPartition
from barnabas_kafka.reassignment.files import Layout, read_reassignment, write_reassignment
from tests.broker.cli.cluster import Three, are_whole, three_brokers
from tests.broker.cli.conftest import Outcome, run_command
from tests.waiting import wait_for

HOME = ((0, 1), (1, 2), (2, 0))
LINES = b"a line\n" * 100


@pytest.fixture(scope="module")
def three(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Three]:
    with three_brokers(tmp_path_factory.mktemp("three")) as running:
        run_command(
            "topics", "create", "orders", "--replica-assignment", "0:1,1:2,2:0",
            bootstrap=running.bootstrap,
        )  # fmt: skip
        running.until_assigned("orders", *HOME)
        for partition in ("0", "1", "2"):
            run_command(
                "produce", "orders", "--partition", partition,
                bootstrap=running.bootstrap, stdin=LINES,
            )  # fmt: skip
        yield running


def reassign(three: Three, *args: str | Path, fails: int = 0) -> Outcome:
    """Run `barnabas reassign`."""
    return run_command("reassign", *map(str, args), bootstrap=three.bootstrap, fails=fails)


def throttles(three: Three) -> set[str]:
    """The names of throttles that are set, anywhere."""
    found = set()
    for kind in ("topics", "brokers"):
        printed = run_command(
            "configs", "describe", "--entity-type", kind, "--output", "json",
            bootstrap=three.bootstrap,
        )  # fmt: skip
        found |= {row["name"] for row in printed.json() if "throttled" in row["name"]}
    return found


def write(path: Path, *replicas: tuple[int, ...]) -> Path:
    """A reassignment file of the topic."""
    layout: Layout = {TopicPartition("orders", number): it for number, it in enumerate(replicas)}
    path.write_text(write_reassignment(layout))
    return path


def test_a_broker_is_drained_and_filled_again(three: Three, tmp_path: Path) -> None:
    """Plan, execute with throttle, wait; the file of how it was leads back."""
    plan, back = tmp_path / "drain.json", tmp_path / "back.json"
    planned = reassign(three, "plan", "drain", "2", "--to", plan)
    assert "2 partitions change: 2 replicas to copy" in planned.stderr
    assert f"Written to {plan}." in planned.stderr
    assert read_reassignment(plan.read_text()) == {
        TopicPartition("orders", 1): (1, 0),
        TopicPartition("orders", 2): (1, 0),
    }
    limited = ("--throttle", "100000000")
    done = reassign(three, "execute", plan, "--rollback", back, *limited, "--wait")
    assert "No throttles are left." in done.stderr
    assert "100 % copied, 2 of 2 partitions done" in done.stderr
    assert done.stdout.count("complete") == 2
    three.until_assigned("orders", (0, 1), (1, 0), (1, 0))
    wait_for("no throttles", lambda: throttles(three), until=lambda set_: not set_)
    rows = reassign(three, "verify", plan, "--output", "json").json()
    assert [row["state"] for row in rows] == ["complete", "complete"]
    assert "2 of 2 partitions are not where" in reassign(three, "verify", back, fails=1).stderr
    reassign(three, "execute", back, "--wait")
    three.until_assigned("orders", *HOME)
    assert reassign(three, "list").stdout == "No partition is being moved.\n"
    assert reassign(three, "cancel", back).stdout == "Cancelled the moves of 0 partitions.\n"


def test_throttles_stay_until_they_are_taken_off(three: Three, tmp_path: Path) -> None:
    """Without --wait, it is verify or cancel that does it, unless they shall stay."""
    path = write(tmp_path / "same.json", *HOME)
    reassign(three, "execute", path, "--throttle", "1000")
    wait_for("three throttles", lambda: throttles(three), until=lambda set_: len(set_) == 3)
    assert throttles(three) == {
        "leader.replication.throttled.replicas",
        "leader.replication.throttled.rate",
        "follower.replication.throttled.rate",
    }
    reassign(three, "verify", path, "--preserve-throttles")
    assert throttles(three)
    reassign(three, "cancel", "--all", "--preserve-throttles")
    assert throttles(three)
    assert "No throttles are left." in reassign(three, "verify", path).stderr
    wait_for("no throttles", lambda: throttles(three), until=lambda set_: not set_)


def test_plans(three: Three, tmp_path: Path) -> None:
    """Nothing to do is said; a document is what the file would be."""
    target = tmp_path / "plan.json"
    idle = reassign(three, "plan", "balance", "--to", target)
    assert idle.stdout == "Nothing has to move.\n"
    assert not target.exists()
    assert reassign(three, "plan", "add", "2").stdout == "Nothing has to move.\n"
    grown = reassign(three, "plan", "factor", "3", "--topic", "orders", "--output", "json")
    assert read_reassignment(grown.stdout) == {
        TopicPartition("orders", number): (*HOME[number], (2, 0, 1)[number]) for number in range(3)
    }
    table = reassign(three, "plan", "factor", "1", "--topic", "orders").stdout.splitlines()
    assert table[0].split() == ["topic", "partition", "replicas", "wanted", "to", "copy"]
    assert table[1].split() == ["orders", "0", "0,1", "0", "0", "B"]


def test_generated_layouts(three: Three, tmp_path: Path) -> None:
    """On the brokers that are named, as many replicas as before; the file is Kafka's."""
    names = tmp_path / "topics.json"
    names.write_text('{"topics": [{"topic": "orders"}], "version": 1}')
    made = reassign(
        three, "generate", "--topics-file", names, "--brokers", "0,2", "--output", "json"
    )
    layout = read_reassignment(made.stdout)
    assert all(sorted(replicas) == [0, 2] for replicas in layout.values())
    document = json.loads(made.stdout)
    assert document["version"] == 1
    assert document["partitions"][0]["log_dirs"] == ["any", "any"]
    shown = reassign(three, "generate", "--topic", "orders", "--brokers", "0,1,2", "--no-racks")
    assert "to copy" in shown.stdout


def test_generated_as_kafka_does() -> None:
    """KIP-36's example: six brokers in three racks, from the first broker on and without shift."""
    racks = {0: "rack1", 1: "rack3", 2: "rack3", 3: "rack2", 4: "rack2", 5: "rack1"}
    layout = {TopicPartition("t", number): (9, 8, 7) for number in range(7)}
    made = generated(layout, racks, ["t"], list(racks), lambda _: 0)
    assert list(made.values()) == [
        (0, 3, 1), (3, 1, 5), (1, 5, 4), (5, 4, 2), (4, 2, 0), (2, 0, 3), (0, 4, 2),
    ]  # fmt: skip
    with pytest.raises(KafkaError, match="larger than available brokers"):
        generated(layout, racks, ["t"], [0, 1], lambda _: 0)


@pytest.mark.parametrize(
    ("replicas", "printed"),
    [
        ([(0, 9)], "orders-0: there is no broker 9, or it does not run"),
        ([*HOME, (0,)], "there is no partition orders-3"),
    ],
)
def test_an_invalid_plan_is_refused_before_anything_moves(
    three: Three, tmp_path: Path, replicas: list[tuple[int, ...]], printed: str
) -> None:
    """It is told before anything moves."""
    path = write(tmp_path / "wrong.json", *replicas)
    assert printed in reassign(three, "execute", path, fails=1).stderr
    assert are_whole(three.states("orders", 3), HOME)


@pytest.mark.parametrize(
    ("args", "printed", "code"),
    [
        (("plan", "drain", "9"), "there is no broker 9", 1),
        (("plan", "drain", "1", "2"), "brokers for them: 1", 1),
        (("plan", "add", "9"), "there is no broker 9", 1),
        (("plan", "factor", "4", "--topic", "orders"), "brokers for them: 3", 1),
        (("plan", "balance", "--topic", "none"), "there is no topic none", 1),
        (("generate", "--topic", "orders", "--brokers", "0"), "larger than available brokers", 1),
        (("generate", "--topic", "orders", "--brokers", "0,9"), "there is no broker 9", 1),
        (("generate", "--topic", "orders", "--brokers", "0,x"), "separated by commas", 2),
        (("generate", "--topic", "orders", "--brokers", "0,0"), "named twice", 2),
        (("generate", "--brokers", "0"), "say which topics", 2),
        (("execute", "/no/file"), "/no/file: No such file or directory", 2),
        (("cancel",), "say which moves", 2),
    ],
)
def test_invalid_arguments_are_refused(
    three: Three, args: tuple[str, ...], printed: str, code: int
) -> None:
    """One line that says why; 2 where the command line is wrong."""
    assert printed in reassign(three, *args, fails=code).stderr


def test_a_file_that_is_wrong(three: Three, tmp_path: Path) -> None:
    """File and place."""
    path = tmp_path / "broken.json"
    path.write_text('{"version": 1,\n "partitions": [}')
    failed = reassign(three, "verify", path, fails=2)
    assert f"{path}: line 2, column 17: it is no JSON" in failed.stderr


@pytest.mark.parametrize(
    ("size", "text"),
    [(0, "0 B"), (999, "999 B"), (1024, "1 KiB"), (5_500_000, "5.25 MiB"), (3 << 50, "3 PiB")],
)
def test_bytes_as_people_say_them(size: int, text: str) -> None:
    """Three figures and a unit."""
    assert human(size) == text
