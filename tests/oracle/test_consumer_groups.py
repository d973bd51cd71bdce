"""Consumer groups by our tools and by Apache's, on one broker: what one writes the other reads.

`barnabas groups` and `kafka-consumer-groups` are ours; `ConsumerGroupCommand` of 3.9.1 is theirs.
"""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from confluent_kafka import Consumer, ConsumerGroupTopicPartitions, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from tests.clients.brokers import Barnabas
from tests.oracle.apache import run_tool
from tests.waiting import ANSWER, RUN, seconds

pytestmark = pytest.mark.jvm

BIN = Path(sys.executable).parent
APACHES = "org.apache.kafka.tools.consumer.group.ConsumerGroupCommand"
LONG = "a-topic-with-quite-a-long-name"


@dataclass
class Place:
    """A broker with two topics of three partitions, four records in each of the first two."""

    bootstrap: str
    admin: AdminClient

    def commit(self, *groups: str, topics: tuple[str, ...] = ("alpha", LONG)) -> None:
        """Have groups at 1 in the first two partitions."""
        for group in groups:
            at = [TopicPartition(topic, number, 1) for topic in topics for number in (0, 1)]
            asked = [ConsumerGroupTopicPartitions(group, at)]
            for future in self.admin.alter_consumer_group_offsets(asked).values():
                future.result(seconds(ANSWER))

    def ours(self, *words: str, program: str = "kafka-consumer-groups.sh") -> str:
        """What ours prints; it must succeed."""
        command = [str(BIN / program), *words, "--bootstrap-server", self.bootstrap]
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=seconds(RUN), check=False
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    def theirs(self, *words: str) -> str:
        """What Apache's prints; it must succeed."""
        # Five seconds by default, which a busy machine may take.
        timeout = ("--timeout", f"{seconds(ANSWER) * 1000:.0f}")
        done = run_tool(APACHES, *words, "--bootstrap-server", self.bootstrap, *timeout)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    def described(self, group: str, *, by: str = "theirs") -> set[tuple[str, ...]]:
        """Topic, partition, offset, end and lag, as one of the tools tells them."""
        tell = self.theirs if by == "theirs" else self.ours
        lines = (line.split() for line in tell("--describe", "--group", group).splitlines())
        return {tuple(line[1:6]) for line in lines if line and line[0] == group}


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    """One for all tests, whose groups have names of their own."""
    settings = {"broker.id": "0", "group.initial.rebalance.delay.ms": "0"}
    with Barnabas(tmp_path_factory.mktemp("broker"), settings) as broker:
        admin = AdminClient({"bootstrap.servers": broker.bootstrap})
        for future in admin.create_topics([NewTopic(t, 3, 1) for t in ("alpha", LONG)]).values():
            future.result(seconds(ANSWER))
        producer = Producer({"bootstrap.servers": broker.bootstrap})
        for topic in ("alpha", LONG):
            for number in range(8):
                producer.produce(topic, b"x", partition=number % 2)
        assert producer.flush(seconds(ANSWER)) == 0
        yield Place(broker.bootstrap, admin)


def cells(text: str) -> list[list[str]]:
    """A table's rows; Apache's tool forgets the ends of some lines."""
    text = re.sub(r"(STATUS|NEW-OFFSET|Successful|\b\d+) +(?=alpha|a-topic)", r"\1\n", text)
    return sorted(line.split() for line in text.splitlines() if line.strip())


def test_offsets_reset_by_either_tool_are_described_by_the_other(place: Place) -> None:
    """A scope of one topic, one of partitions, and one of all topics; and the other way round."""
    place.commit("reset-by-us", "reset-by-them")
    for words in (
        ("--topic", "alpha:1", "--to-latest"),
        ("--topic", LONG, "--to-offset", "99"),
        ("--all-topics", "--shift-by", "-1"),
    ):
        place.ours("--reset-offsets", "--group", "reset-by-us", *words, "--execute")
        place.theirs("--reset-offsets", "--group", "reset-by-them", *words, "--execute")
    expected = {
        ("alpha", "0", "0", "4", "4"),
        ("alpha", "1", "3", "4", "1"),
        (LONG, "0", "3", "4", "1"),
        (LONG, "1", "3", "4", "1"),
        (LONG, "2", "0", "0", "0"),
    }
    assert place.described("reset-by-us") == expected
    assert place.described("reset-by-them", by="ours") == expected


def test_exports_are_read_by_the_other(place: Place, tmp_path: Path) -> None:
    """Ours by theirs, for one group; theirs by ours, for two."""
    place.commit("one", "two")
    back = place.described("one")
    reset = ("--reset-offsets", "--all-topics")
    file = tmp_path / "plan.csv"
    one, both = ("--group", "one"), ("--group", "one", "--group", "two")
    file.write_text(
        place.ours("groups", "reset-offsets", "one", "--all-topics", "--to-current", "--export",
                   program="barnabas")
    )  # fmt: skip
    place.ours(*reset, *one, "--to-latest", "--execute")
    assert place.described("one") != back
    place.theirs("--reset-offsets", *one, "--from-file", str(file), "--execute")
    assert place.described("one") == back

    file.write_text(place.theirs(*reset, *both, "--to-current", "--export", "--dry-run"))
    place.ours(*reset, *both, "--to-latest", "--execute")
    place.ours("--reset-offsets", *both, "--from-file", str(file), "--execute")
    assert place.described("one") == place.described("two") == back


def test_single_offsets_are_deleted(place: Place) -> None:
    """The same lines about it, and the same offsets left."""
    place.commit("forgets-by-us", "forgets-by-them")
    words = ("--delete-offsets", "--topic", "alpha:1", "--topic", LONG, "--group")
    mine = place.ours(*words, "forgets-by-us").replace("by-us", "by-them")
    assert cells(mine) == cells(place.theirs(*words, "forgets-by-them"))
    left = {("alpha", "0", "1", "4", "3")}
    assert place.described("forgets-by-us") == place.described("forgets-by-them") == left


def test_members_and_lists_are_described_alike(place: Place) -> None:
    """Static members too; what each reads only up to the topics, which theirs loses on the way."""
    place.commit("has-members", topics=("alpha",))
    consumer = Consumer(
        {
            "bootstrap.servers": place.bootstrap,
            "group.id": "has-members",
            "group.instance.id": "first",
            "client.id": "reader",
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
            # It is not polled while all these tools run, one after the other.
            "max.poll.interval.ms": 1_200_000,
            "session.timeout.ms": 240_000,
        }
    )
    consumer.subscribe(["alpha"])
    assert consumer.poll(seconds(ANSWER)) is not None
    describe = ("--describe", "--group", "has-members")
    for words in (
        ("--list", "--state", "--type"),
        ("--list", "--state", "Stable"),
        ("--list",),
        describe,
        (*describe, "--members"),
        (*describe, "--state"),
    ):
        assert cells(place.ours(*words)) == cells(place.theirs(*words))
    verbose = (*describe, "--members", "--verbose")
    assert cells(place.ours(*verbose).replace("alpha(", "(")) == cells(place.theirs(*verbose))
    refusal = place.theirs("--reset-offsets", *describe[1:], "--all-topics", "--to-latest")
    program = [str(BIN / "kafka-consumer-groups"), "--bootstrap-server", place.bootstrap]
    done = subprocess.run(
        [*program, "--reset-offsets", *describe[1:], "--all-topics", "--to-latest"],
        capture_output=True, text=True, timeout=seconds(RUN), check=False,
    )  # fmt: skip
    consumer.close()
    assert refusal.strip().splitlines()[0] in done.stdout
    assert done.returncode == 1
