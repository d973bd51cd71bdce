"""An Apache Kafka broker in one cluster with ours: controlled by ours, and controlling them."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from functools import partial
from operator import methodcaller
from pathlib import Path

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import NewTopic
from kazoo.client import KazooClient

from tests.cluster.load import meet
from tests.cluster.running import DEADLINE_S, SETTINGS, Cluster, controlled_by, on_record
from tests.oracle.apache import DEFAULT_VERSION, ApacheKafka

APACHE = 2
SPOKEN = "inter.broker.protocol.version"
RECORDS = 200


class Mixed(Cluster):
    """Brokers 0 and 1 are ours, broker 2 is Apache's; a client sees no difference."""

    def __init__(self, directory: Path, release: str, settings: Mapping[str, str]) -> None:
        super().__init__(directory, brokers=2, settings=settings)
        self.apache = ApacheKafka(
            release,
            directory=directory / "apache",
            zookeeper=self.zookeeper.connect,
            overrides={**SETTINGS, **settings},
            heap="512M",
            broker_id=APACHE,
        )
        self._sent = 0

    @property
    def everybody(self) -> str:
        """The addresses of all three."""
        return f"{self.bootstrap},{self.apache.bootstrap}"

    def send(self, topic: str = "t", partitions: int = 3) -> None:
        """Records that are acknowledged by all in sync; those of `t` are counted."""
        producer = Producer(
            {"bootstrap.servers": self.everybody, "enable.idempotence": True, "log_level": 0}
        )
        for number in range(self._sent, self._sent + RECORDS):
            producer.produce(topic, str(number), partition=number % partitions)
            if number == self._sent + partitions - 1:
                meet(producer)
        assert producer.flush(DEADLINE_S) == 0
        if topic == "t":
            self._sent += RECORDS

    def all_read(self) -> bool:
        """Whether every record that was acknowledged is there, in order and once."""
        consumer = Consumer(
            {"bootstrap.servers": self.everybody, "group.id": "reader", "log_level": 0,
             "enable.auto.commit": False}
        )  # fmt: skip
        found: dict[int, list[int]] = {0: [], 1: [], 2: []}
        try:
            consumer.assign([TopicPartition("t", number, 0) for number in found])
            while missing := self._sent - sum(map(len, found.values())):
                messages = consumer.consume(missing, DEADLINE_S)
                if not messages:
                    return False
                for each in messages:
                    if each.error() is None:
                        found[each.partition() or 0].append(int(each.value() or b""))
        finally:
            consumer.close()
        return all(values == list(range(number, self._sent, 3)) for number, values in found.items())

    def whole(self, topic: str = "t") -> bool:
        """Whether all replicas are in sync."""
        return all(isr == (0, 1, 2) for _, isr in self.leadership(topic))

    def controlled_by_apache(self, znodes: KazooClient) -> bool:
        """Whether Apache's broker is the controller; it is contested again if not."""
        if not controlled_by(znodes, APACHE):
            return False
        return self.admin().list_topics(timeout=5).controller_id == APACHE


@contextmanager
def running(directory: Path, release: str, settings: Mapping[str, str]) -> Iterator[Mixed]:
    """All three with a topic that lies on all of them."""
    with ExitStack() as running:
        cluster = running.enter_context(Mixed(directory, release, settings))
        running.enter_context(cluster.apache)
        cluster.until(lambda: len(cluster.admin().list_topics(timeout=5).brokers) == 3)
        cluster.change(lambda admin: admin.create_topics([NewTopic("t", 3, 3)]))
        cluster.until(cluster.whole)
        yield cluster


@pytest.fixture
def mixed(tmp_path: Path) -> Iterator[Mixed]:
    """With the newest of Apache's brokers that has a ZooKeeper."""
    with running(tmp_path, DEFAULT_VERSION, {}) as cluster:
        yield cluster


@pytest.fixture
def old(tmp_path: Path) -> Iterator[Mixed]:
    """With the oldest that ours is made for, in which leaders write who is in sync.

    Nobody dies here, so that sessions may last longer than a follower may lag.
    """
    settings = {SPOKEN: "2.6", "zookeeper.session.timeout.ms": "18000"}
    with running(tmp_path, "2.8.2", settings) as cluster:
        yield cluster


@pytest.fixture
def znodes(mixed: Mixed) -> Iterator[KazooClient]:
    """What is on record."""
    with on_record(mixed) as client:
        yield client


def test_an_apache_broker_among_ours(mixed: Mixed, znodes: KazooClient) -> None:
    """Each kind leads, follows and controls; nothing that was acknowledged is lost or doubled."""
    mixed.send()
    for broker in mixed.brokers:
        mixed.brokers[broker].stop()
        mixed.until(lambda: all(leader != -1 for leader, _ in mixed.leadership("t")))
        mixed.send()
        mixed.start(broker)
        mixed.until(mixed.whole)

    mixed.until(lambda: mixed.controlled_by_apache(znodes))
    mixed.change(lambda admin: admin.create_topics([NewTopic("apaches", 2, 3)]))
    mixed.until(lambda: all(isr == (0, 1, 2) for _, isr in mixed.leadership("apaches")))
    mixed.brokers[0].kill()
    mixed.send()
    mixed.start(0)
    mixed.until(mixed.whole)
    mixed.brokers[1].stop()
    assert "all that others can lead is handed over" in mixed.brokers[1].tail(60)
    mixed.start(1)
    mixed.until(mixed.whole)
    mixed.change(lambda admin: admin.delete_topics(["apaches"]))
    mixed.until(lambda: znodes.exists("/brokers/topics/apaches") is None)
    assert not list(mixed.brokers[0].log_dirs[0].glob("apaches-[0-9]"))
    mixed.apache.stop()
    mixed.until(lambda: mixed.admin().list_topics(timeout=5).controller_id in mixed.brokers)
    mixed.send()
    assert mixed.all_read()


def test_an_old_apache_broker_among_ours(old: Mixed) -> None:
    """Leaders write who is in sync, whoever controls; then ours are rolled to newer protocols."""
    with on_record(old) as znodes:
        for frozen, other in ((1, 0), (0, 1)):
            topic = f"lags-{frozen}"
            replicas = [[other, frozen, APACHE], [APACHE, frozen, other]]
            new = NewTopic(topic, 2, replica_assignment=replicas)
            old.change(methodcaller("create_topics", [new]))
            old.until(partial(old.whole, topic))
            with old.frozen(frozen):
                # Acknowledged once the leaders, one of each kind, have left it out.
                old.send(topic, 2)
                assert all(isr == {other, APACHE} for isr in in_sync(znodes, topic, 2))
            # All brokers hear of it once the leaders have notified the controller.
            old.until(partial(old.whole, topic))
            old.until(lambda: not znodes.get_children("/isr_change_notification"))
            old.until(lambda: old.controlled_by_apache(znodes))
        old.send()
        for broker, spoken in ((0, "2.8"), (1, "3.9"), (0, "3.9")):
            old.brokers[broker].stop()
            old.send()
            old.brokers[broker].settings[SPOKEN] = spoken
            old.start(broker)
            old.until(lambda: all(isr == {0, 1, 2} for isr in in_sync(znodes)))
        old.apache.stop()
        old.until(lambda: old.admin().list_topics(timeout=5).controller_id in old.brokers)
        old.send()
    assert old.all_read()


def in_sync(znodes: KazooClient, topic: str = "t", partitions: int = 3) -> list[set[int]]:
    """Who is in sync with each leader, as it is on record."""
    paths = [f"/brokers/topics/{topic}/partitions/{each}/state" for each in range(partitions)]
    return [set(json.loads(znodes.get(path)[0])["isr"]) for path in paths]
