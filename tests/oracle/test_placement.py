"""Where Kafka and we place the replicas of hundreds of random topics, with and without racks."""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Final

import pytest

from barnabas_broker.cluster.image import BrokerRegistration
from barnabas_broker.controller.placement import Assignment, assign_replicas
from tests.oracle.apache import classpath
from tests.waiting import RUN, seconds

pytestmark = [pytest.mark.jvm, pytest.mark.timeout(240)]

PROGRAM: Final = Path(__file__).parent / "java" / "Placing.java"
TOPICS: Final = 500


@dataclass(frozen=True)
class Wanted:
    """A topic, or the partitions from `first` on that it is to grow by."""

    brokers: dict[int, str | None]
    partitions: int
    replicas: int
    start: int
    first: int


def some_topic(seed: int) -> Wanted:
    """Racks are of any sizes; half of the clusters have none."""
    chance = Random(seed)
    # In order, as Kafka's controller names them.
    ids = sorted(chance.sample(range(40), chance.randint(1, 12)))
    racks = [f"r{it}" for it in range(chance.randint(1, 5))] if seed % 2 else [None]
    return Wanted(
        brokers={broker: chance.choice(racks) for broker in ids},
        partitions=chance.randint(1, 40),
        replicas=chance.randint(1, len(ids)),
        start=chance.randrange(len(ids)),
        first=chance.choice((0, chance.randrange(30))),
    )


def by_java(topics: Sequence[Wanted]) -> list[Assignment]:
    """What the Java class places."""
    lines = [
        f"{it.partitions} {it.replicas} {it.start} {it.first} "
        + " ".join(f"{broker}:{rack or '-'}" for broker, rack in it.brokers.items())
        for it in topics
    ]
    done = subprocess.run(
        ["java", "-Xmx256m", "-cp", classpath(), str(PROGRAM)],
        input="\n".join(lines) + "\n",
        capture_output=True, text=True, timeout=seconds(RUN), check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return [_read(line) for line in done.stdout.splitlines()]


def _read(line: str) -> Assignment:
    pairs = (part.split(":") for part in line.split(" "))
    return {int(number): tuple(map(int, replicas.split(","))) for number, replicas in pairs}


def placed(wanted: Wanted) -> Assignment:
    """What we place."""
    brokers = [BrokerRegistration(it, (), rack) for it, rack in wanted.brokers.items()]
    return assign_replicas(
        brokers,
        partitions=wanted.partitions,
        replication_factor=wanted.replicas,
        start_index=wanted.start,
        shift=wanted.start,  # Where Kafka is told the first, it takes it for the second too.
        first_partition=wanted.first,
    )


def test_replicas_are_placed_alike() -> None:
    """Each partition's, in their order: the first one is the preferred leader."""
    topics = [some_topic(seed) for seed in range(TOPICS)]
    theirs = by_java(topics)
    assert len(theirs) == TOPICS
    for wanted, answer in zip(topics, theirs, strict=True):
        assert placed(wanted) == answer, wanted
