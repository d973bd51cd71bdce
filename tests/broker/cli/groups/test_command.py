"""`barnabas groups` against a real broker."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import Consumer, ConsumerGroupTopicPartitions, Producer, TopicPartition
from confluent_kafka.admin import AdminClient

from barnabas_broker.testing import Broker
from tests.broker.cli.conftest import Run
from tests.waiting import ANSWER, seconds

#: Records of 1970 would fall to retention whenever the broker looks.
THREE = pytest.mark.kafka_topic(partitions=3, config={"retention.ms": "-1"})


@pytest.fixture
def group(kafka_broker: Broker, kafka_topic: str) -> str:
    """A group at 1 of 4, 2 of 4 and nowhere; the records are of 1000, 2000, 3000 and 4000 ms."""
    producer = Producer({"bootstrap.servers": kafka_broker.bootstrap_servers})
    for partition in (0, 1):
        for number in range(4):
            timestamp = 1000 * (number + 1)
            producer.produce(kafka_topic, b"x", partition=partition, timestamp=timestamp)
    assert producer.flush(seconds(ANSWER)) == 0
    name = f"group-of-{kafka_topic}"
    commit(kafka_broker, name, {(kafka_topic, 0): 1, (kafka_topic, 1): 2})
    return name


def commit(broker: Broker, group: str, offsets: dict[tuple[str, int], int]) -> None:
    """Commit from outside."""
    admin = AdminClient({"bootstrap.servers": broker.bootstrap_servers})
    wanted = [TopicPartition(*each, offset) for each, offset in offsets.items()]
    asked = [ConsumerGroupTopicPartitions(group, wanted)]
    for future in admin.alter_consumer_group_offsets(asked).values():
        future.result(seconds(ANSWER))


@pytest.fixture
def member(kafka_broker: Broker, kafka_topic: str, group: str) -> Iterator[Consumer]:
    """Somebody in the group."""
    consumer = Consumer(
        {
            "bootstrap.servers": kafka_broker.bootstrap_servers,
            "group.id": group,
            "client.id": "reader",
            "enable.auto.commit": False,
            "auto.offset.reset": "earliest",
        }
    )
    consumer.subscribe([kafka_topic])
    assert consumer.poll(seconds(ANSWER)) is not None
    yield consumer
    consumer.close()


def committed(run: Run, group: str) -> list[int | None]:
    """Its offset in each partition that it has one in."""
    return [row["committed"] for row in run("groups", "describe", group, "--output=json").json()]


@THREE
def test_offsets_and_lag(run: Run, kafka_topic: str, group: str) -> None:
    """Of a group without members, which is told."""
    outcome = run("groups", "describe", group, "--output=json")
    assert "no members" in outcome.stderr
    assert [(row["partition"], row["committed"], row["end"], row["lag"]) for row in outcome.json()]\
        == [(0, 1, 4, 3), (1, 2, 4, 2)]  # fmt: skip
    assert {row["topic"] for row in outcome.json()} == {kafka_topic}
    assert "committed" in run("groups", "describe", group).stdout


@THREE
@pytest.mark.usefixtures("member")
def test_members_and_state(run: Run, kafka_topic: str, group: str) -> None:
    """Who reads what from where, and how that was decided."""
    (row,) = run("groups", "describe", group, "--members", "--output=json").json()
    assert row["client"] == "reader"
    assert row["host"].startswith("/")
    assert row["assignment"] == f"{kafka_topic}(0,1,2)"
    (row,) = run("groups", "describe", group, "--state", "--output=json").json()
    assert (row["state"], row["strategy"], row["members"]) == ("Stable", "range", 1)
    rows = run("groups", "describe", group, "--output=json").json()
    assert [row["client"] for row in rows] == ["reader"] * 3
    assert [row["lag"] for row in rows] == [3, 2, None]


@THREE
@pytest.mark.usefixtures("member")
def test_groups_by_state_and_type(
    run: Run, kafka_broker: Broker, kafka_topic: str, group: str
) -> None:
    """Several of each may be named."""
    commit(kafka_broker, f"empty-{group}", {(kafka_topic, 0): 0})
    found = run("groups", "list", "--state=stable,dead", "--output=json").json()
    assert {"group": group, "type": "Classic", "state": "Stable"} in found
    assert {row["state"] for row in found} == {"Stable"}
    assert run("groups", "list", "--type=consumer", "--output=json").json() == []


STRATEGIES = {
    "--to-earliest": [0, 0, 0],
    "--to-latest": [4, 4, 0],
    "--to-current": [1, 2, 0],
    "--to-offset=3": [3, 3, 0],
    "--to-offset=0": [0, 0, 0],
    "--to-datetime=1970-01-01T00:00:02.500": [2, 2, 0],
    "--by-duration=P1D": [4, 4, 0],
}


@THREE
@pytest.mark.parametrize("strategy", STRATEGIES)
def test_each_strategy(run: Run, kafka_topic: str, group: str, strategy: str) -> None:
    """What is shown is what is done, and nothing is done without being told to."""
    reset = ("groups", "reset-offsets", group, "--topic", kafka_topic, strategy)
    shown = run(*reset, "--output=json")
    assert [row["offset"] for row in shown.json()] == STRATEGIES[strategy]
    assert "nothing is changed" in shown.stderr
    assert committed(run, group) == [1, 2]
    run(*reset, "--execute")
    assert committed(run, group) == STRATEGIES[strategy]


@THREE
def test_scopes(run: Run, kafka_topic: str, group: str) -> None:
    """All topics of the group, whole topics, partitions of topics."""

    def changed(*scope: str) -> list[int]:
        command = ("groups", "reset-offsets", group, *scope, "--shift-by", "-1", "--output=json")
        return [row["partition"] for row in run(*command).json()]

    assert changed("--all-topics") == [0, 1]
    assert changed("--topic", f"{kafka_topic}:1") == [1]
    assert changed("--topic", f"{kafka_topic}:0,1") == [0, 1]
    failed = run("groups", "reset-offsets", group, "--topic", kafka_topic, "--shift-by=1", fails=1)
    assert f"{kafka_topic}-2" in failed.stderr


@THREE
def test_an_offset_out_of_range_is_clamped_and_reported(run: Run, group: str) -> None:
    """Above and below."""
    reset = ("groups", "reset-offsets", group, "--all-topics", "--execute")
    above = run(*reset, "--to-offset", "99")
    assert above.stderr.count("ends before 99: 4") == 2
    assert committed(run, group) == [4, 4]
    below = run(*reset, "--shift-by", "-5")
    assert below.stderr.count("begins after -1: 0") == 2
    assert committed(run, group) == [0, 0]


@THREE
def test_an_export_is_read_back(
    run: Run, kafka_broker: Broker, kafka_topic: str, group: str, tmp_path: Path
) -> None:
    """For one group and for several."""
    other = f"other-{group}"
    commit(kafka_broker, other, {(kafka_topic, 1): 3})
    reset = ("groups", "reset-offsets")
    for names in ([group], [group, other]):
        kept = {name: committed(run, name) for name in names}
        file = tmp_path / "plan.csv"
        file.write_text(run(*reset, *names, "--all-topics", "--to-current", "--export").stdout)
        assert file.read_text().startswith(kafka_topic if names == [group] else group)
        run(*reset, *names, "--all-topics", "--to-latest", "--execute")
        assert {name: committed(run, name) for name in names} != kept
        run(*reset, *names, "--from-file", str(file), "--execute")
        assert {name: committed(run, name) for name in names} == kept


@THREE
def test_nothing_is_set_while_members_are_active(
    run: Run, kafka_topic: str, group: str, member: Consumer
) -> None:
    """The state says why; so it is with deleting the group, or offsets that a member needs."""
    reset = ("groups", "reset-offsets", group, "--all-topics", "--to-latest", "--execute")
    assert "current state is Stable" in run(*reset, fails=1).stderr
    assert "not empty" in run("groups", "delete", group, fails=1).stderr
    forget = ("groups", "delete-offsets", group, "--topic", f"{kafka_topic}:0")
    assert "GROUP_SUBSCRIBED_TO_TOPIC" in run(*forget, fails=1).stderr
    member.close()
    assert committed(run, group) == [1, 2]
    run(*forget)
    assert committed(run, group) == [2]
    assert run("groups", "delete", group).stdout == f"Deleted group {group}.\n"
    assert "no group" in run("groups", "describe", group, fails=1).stderr


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        (["g", "--all-topics"], "one strategy"),
        (["g", "--all-topics", "--to-latest", "--to-earliest"], "one strategy"),
        (["g", "--to-latest"], "--topic or --all-topics"),
        (["--all-topics", "--to-latest"], "name groups"),
        (["g", "--all-groups", "--all-topics", "--to-latest"], "name groups"),
        (["g", "--all-topics", "--to-latest", "--execute", "--dry-run"], "exclude"),
    ],
)
def test_ambiguous_arguments_are_refused(run: Run, arguments: list[str], why: str) -> None:
    """Before anything is asked of a broker."""
    assert why in run("groups", "reset-offsets", *arguments, fails=2).stderr
