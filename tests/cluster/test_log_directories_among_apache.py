"""Log directories that fail with an Apache Kafka broker in the cluster, which controls or obeys."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Final

import pytest
from confluent_kafka.admin import NewTopic
from kazoo.client import KazooClient

from tests.cluster.history import Outcome
from tests.cluster.load import PER_SECOND, Writer, read_all
from tests.cluster.running import SETTINGS, Cluster, move_controller, on_record
from tests.faults.disk import FaultyDisk
from tests.faults.volumes import ext4_volume, shut_down
from tests.oracle.apache import ApacheKafka

APACHE: Final = 2
PARTITIONS: Final = 6


class Mixed(Cluster):
    """Brokers 0 and 1 are ours, broker 2 is Apache's; each has a second log directory to lose."""

    def __init__(self, directory: Path, disks: list[FaultyDisk], volume: Path) -> None:
        super().__init__(directory, 2, {"barnabas.log.dirs.min.free.bytes": "0"}, disks=disks)
        self.disks = disks
        self.volume = volume
        directories = f"{directory / 'apache-logs'},{volume / 'apache-logs'}"
        self.apache = ApacheKafka(
            directory=directory / "apache",
            zookeeper=self.zookeeper.connect,
            overrides={**SETTINGS, "log.dirs": directories, "log.index.size.max.bytes": "4096"},
            heap="512M",
            broker_id=APACHE,
        )

    @property
    def everybody(self) -> str:
        """The addresses of all three."""
        return f"{self.bootstrap},{self.apache.bootstrap}"

    def inside(self, broker: int) -> list[int]:
        """The partitions in a broker's second directory."""
        server = self.apache if broker == APACHE else self.brokers[broker]
        found = server.log_dirs[1].glob("t-*")
        return sorted(int(path.name.rpartition("-")[2]) for path in found)

    def until_yielded(self, broker: int, inside: list[int]) -> None:
        """Wait until others lead, and are in sync without it, in those partitions."""
        self.wait_for_leadership(
            f"leaders and in-sync replicas other than broker {broker} of partitions {inside}",
            "t",
            lambda found: all(
                found[it][0] not in (broker, -1) and broker not in found[it][1] for it in inside
            ),
        )


@pytest.fixture
def mixed(tmp_path: Path) -> Iterator[Mixed]:
    """All three with a topic that lies on all of them, in both directories of each."""
    with ExitStack() as running:
        disks = []
        for broker in range(2):
            prefix = tmp_path / f"disk-{broker}"
            prefix.mkdir()
            disks.append(running.enter_context(FaultyDisk(prefix)))
        volume = running.enter_context(ext4_volume(tmp_path / "volume"))
        cluster = running.enter_context(Mixed(tmp_path, disks, volume))
        running.enter_context(cluster.apache)
        cluster.wait_for(
            "three brokers", lambda: cluster.metadata().brokers, until=lambda it: len(it) == 3
        )
        new = NewTopic("t", PARTITIONS, 3, config={"min.insync.replicas": "1"})
        cluster.change(lambda admin: admin.create_topics([new]))
        cluster.wait_for_leadership(
            "three in-sync replicas",
            "t",
            lambda found: all(isr == (0, 1, 2) for _, isr in found),
        )
        yield cluster


@pytest.fixture
def znodes(mixed: Mixed) -> Iterator[KazooClient]:
    """What is on record."""
    with on_record(mixed) as client:
        yield client


def test_log_directory_failures_are_handled_by_both_controllers(
    mixed: Mixed, znodes: KazooClient
) -> None:
    """Apache's disk fails under our controller, ours fills up under Apache's; nothing is lost."""
    with Writer(mixed.everybody, "writer", "t", PARTITIONS) as writer:
        writer.wait_for_more(PER_SECOND)
        lost = mixed.inside(APACHE)
        assert lost
        shut_down(mixed.volume)
        mixed.until_yielded(APACHE, lost)
        writer.wait_for_more(PER_SECOND)

        move_controller(mixed, znodes, APACHE)
        mixed.until_controlled_by(APACHE)
        full = mixed.inside(0)
        mixed.disks[0].fill()
        mixed.until_yielded(0, full)
        writer.wait_for_more(PER_SECOND)
        mixed.disks[0].heal()
        mixed.wait_for_leadership(
            "broker 0 in sync", "t", lambda found: all(0 in isr for _, isr in found)
        )
        mixed.wait_for(
            "no child of /log_dir_event_notification",
            lambda: znodes.get_children("/log_dir_event_notification"),
            until=lambda children: children == [],
        )
    sends = writer.finish()
    assert {send.outcome for send in sends} == {Outcome.OK}
    polls = read_all(mixed.everybody, "t", PARTITIONS, expected=len(sends))
    assert {send.value for send in sends} <= {value for poll in polls for _, value in poll.records}
