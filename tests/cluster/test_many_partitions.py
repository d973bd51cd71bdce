"""A cluster of 12,000 partitions with three replicas: created, without a broker, and rolled.

`pytest -m soak tests/cluster/test_many_partitions.py -s` prints how long each step took.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from time import monotonic
from typing import Final

import pytest
from confluent_kafka import Producer

from tests.cluster.running import Cluster
from tests.waiting import RUN, seconds

pytestmark = pytest.mark.soak

TOPICS: Final = tuple(f"wide-{number}" for number in range(12))
PARTITIONS: Final = 1_000
SOME: Final = range(0, PARTITIONS, 50)


@contextmanager
def step(cluster: Cluster, what: str) -> Iterator[None]:
    """Report how long something took, and how much memory each broker has then."""
    began = monotonic()
    yield
    running = [it for it in cluster.brokers.values() if it.exit_code is None]
    memory = [_resident_mebibytes(it.pid) for it in running]
    print(f"{what}: {monotonic() - began:.1f} s, brokers have {memory} MiB", flush=True)


def _resident_mebibytes(pid: int) -> int:
    """Of a process and what it supervises."""
    pids = [pid, *map(int, Path(f"/proc/{pid}/task/{pid}/children").read_text().split())]
    statuses = [Path(f"/proc/{each}/status").read_text() for each in pids]
    return sum(int(it.partition("VmRSS:")[2].split()[0]) for it in statuses) >> 10


def until_in_sync(cluster: Cluster, replicas: int) -> None:
    """Wait until every broker that runs knows of a leader and so many in-sync replicas of each."""
    for broker in cluster.brokers.values():
        if broker.exit_code is None:
            for topic in TOPICS:
                cluster.wait_for_leadership(
                    f"{replicas} in-sync replicas of {topic} at {broker.bootstrap}",
                    topic,
                    lambda found: (
                        len(found) == PARTITIONS
                        and all(leader >= 0 and len(isr) >= replicas for leader, isr in found)
                    ),
                    broker.bootstrap,
                    within=RUN,
                )


def produce(cluster: Cluster) -> None:
    """A record with acks=all to some partitions of each topic."""
    failed: list[str] = []
    producer = Producer({"bootstrap.servers": cluster.bootstrap, "acks": "all", "log_level": 0})
    for topic in TOPICS:
        for partition in SOME:
            producer.produce(
                topic, b"x", partition=partition,
                on_delivery=lambda error, _: failed.append(str(error)) if error else None,
            )  # fmt: skip
    assert (producer.flush(seconds(RUN)), failed) == (0, [])


def test_twelve_thousand_partitions(tmp_path: Path) -> None:
    """Nothing leaves its ISR while nothing fails, and every partition comes back."""
    with Cluster(tmp_path, settings={"log.retention.check.interval.ms": "300000"}) as cluster:
        with step(cluster, "creation"):
            for topic in TOPICS:
                cluster.create(topic, PARTITIONS)
        with step(cluster, "all in sync"):
            until_in_sync(cluster, 3)
        with step(cluster, "records"):
            produce(cluster)
        controller = cluster.known_controller()
        with step(cluster, "leaders without the controller's broker, killed"):
            cluster.brokers[controller].kill()
            cluster.until_controlled_by(*cluster.brokers.keys() - {controller})
            until_in_sync(cluster, 2)
        with step(cluster, "records without it"):
            produce(cluster)
        with step(cluster, "its restart"):
            cluster.start_missing()
            until_in_sync(cluster, 3)
        rolled = cluster.brokers[(controller + 1) % 3]
        with step(cluster, "a clean stop"):
            rolled.stop(within=RUN)
        with step(cluster, "a clean start"):
            cluster.start_missing()
            until_in_sync(cluster, 3)
        with step(cluster, "records at the end"):
            produce(cluster)
        for broker in cluster.brokers.values():
            assert "Traceback" not in broker.log_file.read_text(errors="replace")
