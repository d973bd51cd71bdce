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
from tests.cluster.running import SETTINGS, Cluster, controlled_by, on_record
from tests.faults.disk import FaultyDisk
from tests.faults.volumes import ext4_volume, shut_down
from tests.oracle.apache import ApacheKafka

APACHE: Final = 2
PARTITIONS: Final = 6


class Mixed(Cluster):
    """Brokers 0 and 1 are ours, broker 2 is Apache's; each has a second log directory to lose."""

    def __init__(self, directory: Path, disks: list[FaultyDisk], volume: Path) -> None:
        super().__init__(directory, 2, {"barnabas.log.dirs.reserve.bytes": "0"}, disks=disks)
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

    def has_yielded(self, broker: int, inside: list[int]) -> bool:
        """Whether others lead, and are in sync without it, in those partitions."""
        told = self.leadership("t")
        return all(told[it][0] not in (broker, -1) and broker not in told[it][1] for it in inside)

    def go_on(self, writer: Writer) -> None:
        """Wait for a second's worth of acknowledged records."""
        before = writer.acknowledged
        self.until(lambda: writer.acknowledged > before + PER_SECOND)


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
        cluster.until(lambda: len(cluster.admin().list_topics(timeout=5).brokers) == 3)
        new = NewTopic("t", PARTITIONS, 3, config={"min.insync.replicas": "1"})
        cluster.change(lambda admin: admin.create_topics([new]))
        cluster.until(lambda: all(isr == (0, 1, 2) for _, isr in cluster.leadership("t")))
        yield cluster


@pytest.fixture
def znodes(mixed: Mixed) -> Iterator[KazooClient]:
    """What is on record."""
    with on_record(mixed) as client:
        yield client


def test_either_kind_tells_and_is_told(mixed: Mixed, znodes: KazooClient) -> None:
    """Apache's disk fails under our controller, ours fills up under Apache's; nothing is lost."""
    with Writer(mixed.everybody, "writer", "t", PARTITIONS) as writer:
        mixed.go_on(writer)
        lost = mixed.inside(APACHE)
        assert lost
        shut_down(mixed.volume)
        mixed.until(lambda: mixed.has_yielded(APACHE, lost))
        mixed.go_on(writer)

        mixed.until(lambda: controlled_by(znodes, APACHE))
        mixed.until(lambda: mixed.admin().list_topics(timeout=5).controller_id == APACHE)
        full = mixed.inside(0)
        mixed.disks[0].fill()
        mixed.until(lambda: mixed.has_yielded(0, full))
        mixed.go_on(writer)
        mixed.disks[0].heal()
        mixed.until(lambda: all(0 in isr for _, isr in mixed.leadership("t")))
        mixed.until(lambda: znodes.get_children("/log_dir_event_notification") == [])
    sends = writer.finish()
    assert {send.outcome for send in sends} == {Outcome.OK}
    polls = read_all(mixed.everybody, "t", PARTITIONS, expected=len(sends))
    assert {send.value for send in sends} <= {value for poll in polls for _, value in poll.records}
