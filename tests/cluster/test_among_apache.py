"""An Apache Kafka broker in one cluster with ours: controlled by ours, and controlling them."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from functools import partial
from operator import methodcaller
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import NewTopic
from kazoo.client import KazooClient

from tests.cluster.load import meet
from tests.cluster.running import SETTINGS, Cluster, move_controller, on_record
from tests.oracle.apache import DEFAULT_VERSION, ApacheKafka
from tests.waiting import SETTLE, seconds, wait_for

APACHE = 2
SPOKEN = "inter.broker.protocol.version"
RECORDS = 200


class Mixed(Cluster):
    """Brokers 0 and 1 are ours, broker 2 is Apache's; a client sees no difference."""

    def __init__(
        self, directory: Path, release: str, settings: Mapping[str, str], **more: Any
    ) -> None:
        super().__init__(directory, brokers=2, settings=settings, **more)
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
            {
                "bootstrap.servers": self.everybody,
                "enable.idempotence": True,
                "log_level": 0,
                **self.client,
            }
        )
        for number in range(self._sent, self._sent + RECORDS):
            producer.produce(topic, str(number), partition=number % partitions)
            if number == self._sent + partitions - 1:
                meet(producer)
        assert producer.flush(seconds(SETTLE)) == 0
        if topic == "t":
            self._sent += RECORDS

    def all_read(self) -> bool:
        """Whether every record that was acknowledged is there, in order and once."""
        consumer = Consumer(
            {"bootstrap.servers": self.everybody, "group.id": "reader", "log_level": 0,
             "enable.auto.commit": False, **self.client}
        )  # fmt: skip
        found: dict[int, list[int]] = {0: [], 1: [], 2: []}
        try:
            consumer.assign([TopicPartition("t", number, 0) for number in found])
            wait_for(
                f"{self._sent} records read",
                lambda: _consume(consumer, found),
                until=lambda count: count >= self._sent,
            )
        finally:
            consumer.close()
        return all(values == list(range(number, self._sent, 3)) for number, values in found.items())

    def until_all_in_sync(self, topic: str = "t") -> None:
        """Wait until all replicas, Apache's among them, are in sync."""
        self.wait_for_leadership(
            f"three in-sync replicas of {topic}",
            topic,
            lambda found: all(isr == (0, 1, 2) for _, isr in found),
        )

    def until_controlled_by_apache(self, znodes: KazooClient) -> None:
        """Resign for the controller until Apache's broker is it, and in the brokers' metadata."""
        move_controller(self, znodes, APACHE)
        self.until_controlled_by(APACHE)


def _consume(consumer: Consumer, found: dict[int, list[int]]) -> int:
    """Add the values that have come to those of their partitions; how many there are in all."""
    for each in consumer.consume(RECORDS, 0.1):
        if each.error() is None:
            found[each.partition() or 0].append(int(each.value() or b""))
    return sum(map(len, found.values()))


@contextmanager
def running(cluster: Mixed) -> Iterator[None]:
    """All three with a topic that lies on all of them."""
    with ExitStack() as running:
        running.enter_context(cluster)
        running.enter_context(cluster.apache)
        cluster.wait_for(
            "three brokers", lambda: cluster.metadata().brokers, until=lambda it: len(it) == 3
        )
        cluster.change(lambda admin: admin.create_topics([NewTopic("t", 3, 3)]))
        cluster.until_all_in_sync()
        yield


@pytest.fixture
def mixed(tmp_path: Path) -> Iterator[Mixed]:
    """With the newest of Apache's brokers that has a ZooKeeper."""
    cluster = Mixed(tmp_path, DEFAULT_VERSION, {})
    with running(cluster):
        yield cluster


@pytest.fixture
def old(tmp_path: Path) -> Iterator[Mixed]:
    """With the oldest that ours is made for, in which leaders write the ISR.

    A follower that hangs leaves the ISR because it lags, before its session expires.
    """
    settings = {SPOKEN: "2.6", "replica.lag.time.max.ms": "8000"}
    cluster = Mixed(tmp_path, "2.8.2", settings)
    with running(cluster):
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
        mixed.wait_for_leadership(
            "a leader of every partition", "t", lambda found: all(it != -1 for it, _ in found)
        )
        mixed.send()
        mixed.start(broker)
        mixed.until_all_in_sync()

    mixed.until_controlled_by_apache(znodes)
    mixed.change(lambda admin: admin.create_topics([NewTopic("apaches", 2, 3)]))
    mixed.until_all_in_sync("apaches")
    mixed.brokers[0].kill()
    mixed.send()
    mixed.start(0)
    mixed.until_all_in_sync()
    mixed.brokers[1].stop()
    assert "Controlled shutdown succeeded" in mixed.brokers[1].tail(60)
    mixed.start(1)
    mixed.until_all_in_sync()
    mixed.change(lambda admin: admin.delete_topics(["apaches"]))
    mixed.wait_for(
        "the end of /brokers/topics/apaches",
        lambda: znodes.exists("/brokers/topics/apaches"),
        until=lambda stat: stat is None,
    )
    assert not list(mixed.brokers[0].log_dirs[0].glob("apaches-[0-9]"))
    mixed.apache.stop()
    mixed.until_controlled_by(*mixed.brokers)
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
            old.until_all_in_sync(topic)
            with old.frozen(frozen):
                # Acknowledged once the leaders, one of each kind, have left it out.
                old.send(topic, 2)
                assert all(frozen not in isr for isr in in_sync(znodes, topic, 2))
                # A busy machine may have made the other one lag, too.
                old.wait_for(
                    f"in-sync replicas {other} and {APACHE} of {topic}",
                    partial(in_sync, znodes, topic, 2),
                    until=partial(are_all, {other, APACHE}),
                )
            # All brokers hear of it once the leaders have notified the controller.
            old.until_all_in_sync(topic)
            old.wait_for(
                "no child of /isr_change_notification",
                lambda: znodes.get_children("/isr_change_notification"),
                until=lambda children: not children,
            )
            old.until_controlled_by_apache(znodes)
        old.send()
        for broker, spoken in ((0, "2.8"), (1, "3.9"), (0, "3.9")):
            old.brokers[broker].stop()
            old.send()
            old.brokers[broker].settings[SPOKEN] = spoken
            old.start(broker)
            old.wait_for(
                "all three in sync with each leader",
                partial(in_sync, znodes),
                until=partial(are_all, {0, 1, 2}),
            )
        old.apache.stop()
        old.until_controlled_by(*old.brokers)
        old.send()
    assert old.all_read()


def are_all(expected: set[int], isrs: list[set[int]]) -> bool:
    """Whether all partitions have these in-sync replicas."""
    return all(isr == expected for isr in isrs)


def in_sync(znodes: KazooClient, topic: str = "t", partitions: int = 3) -> list[set[int]]:
    """Who is in sync with each leader, as it is on record."""
    paths = [f"/brokers/topics/{topic}/partitions/{each}/state" for each in range(partitions)]
    return [set(json.loads(znodes.get(path)[0])["isr"]) for path in paths]
