"""A ZooKeeper and several broker processes, started together and on the same ports for good."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self, TypeVar
from zlib import crc32

from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import AdminClient, ClusterMetadata, NewTopic
from kazoo.client import KazooClient
from kazoo.exceptions import KazooException, NoNodeError
from kazoo.retry import KazooRetry

from tests.clients.brokers import Barnabas
from tests.cluster.ensemble import Ensemble
from tests.cluster.network import Network
from tests.faults.disk import FaultyDisk
from tests.oracle.apache import free_port
from tests.waiting import ANSWER, ATTEMPT_S, SETTLE, START, forget, seconds, wait_for, watch

Fact = TypeVar("Fact")
Leadership = list[tuple[int, tuple[int, ...]]]
"""Leader and in-sync replicas of each partition, in the order of the partitions."""

SETTINGS: Final = {
    "zookeeper.session.timeout.ms": "40000",
    "replica.lag.time.max.ms": "60000",
    "replica.fetch.backoff.ms": "200",
    "default.replication.factor": "3",
    "min.insync.replicas": "2",
    "offsets.topic.replication.factor": "3",
    "offsets.topic.num.partitions": "4",
    "transaction.state.log.replication.factor": "3",
    "transaction.state.log.min.isr": "2",
    "transaction.state.log.num.partitions": "4",
    "group.initial.rebalance.delay.ms": "0",
    "controlled.shutdown.retry.backoff.ms": "500",
    "controlled.shutdown.max.retries": "60",
    "log.retention.check.interval.ms": "1000",
}
"""Three brokers for production, but for times that would make tests wait.

Sessions and the permitted lag are so long that a busy machine does not make a broker look dead or
behind. `SUPERVISED` brokers need no short ones: their sessions end with their processes.
"""

SUPERVISED: Final = ("--supervised",)

LONGEST_SESSION_S: Final = 40.0
"""What an ensemble grants at most: 20 ticks."""

NOT_YET: Final = (KafkaException, KazooException, KeyError, IndexError, FileNotFoundError)
"""Brokers come and go with their znodes and files, and do not know everything at once."""


class Cluster:
    """Brokers 0, 1, ... on one ZooKeeper. Use as a context."""

    def __init__(
        self,
        directory: Path,
        brokers: int = 3,
        settings: Mapping[str, str] | None = None,
        racks: Sequence[str] = (),
        options: Sequence[str] = SUPERVISED,
        *,
        disks: Sequence[FaultyDisk] = (),
        listeners: Sequence[str] = ("PLAINTEXT",),
        members: int = 1,
        client: Mapping[str, str] | None = None,
        network: Network | None = None,
    ) -> None:
        """With `disks` each broker has a second log directory, on one that fails on demand.

        Clients use the first of the `listeners`, with the properties of `client`. `members`: how
        many the ensemble has. Each broker and member is a host of the `network`, if there is one.
        """
        self.client = dict(client or {})
        self.zookeeper = Ensemble(directory / "zookeeper", members, network)
        hosts = [
            "127.0.0.1" if network is None else network.address(broker_host(broker))
            for broker in range(brokers)
        ]
        self.brokers = {
            broker: Barnabas(
                home := directory / f"broker-{broker}",
                {
                    **SETTINGS,
                    "broker.id": str(broker),
                    "listeners": ",".join(
                        f"{it}://{hosts[broker]}:{free_port()}" for it in listeners
                    ),
                    "zookeeper.connect": self.zookeeper.connect,
                    **({"broker.rack": racks[broker]} if racks else {}),
                    **(settings or {}),
                    **({"log.dirs": _two_directories(home, disks[broker])} if disks else {}),
                },
                disks[broker].environment if disks else None,
                options=options,
            )
            for broker in range(brokers)
        }
        if network is not None:
            for broker, process in self.brokers.items():
                process.launcher = network.launcher(broker_host(broker))

    @property
    def bootstrap(self) -> str:
        """All brokers, whether they run or not."""
        return ",".join(self.address(broker) for broker in self.brokers)

    def address(self, broker: int, listener: int = 0) -> str:
        """Where a broker is reached through one of its listeners, whether it runs or not."""
        return self.brokers[broker].settings["listeners"].split(",")[listener].partition("://")[2]

    def __enter__(self) -> Self:
        try:
            self.zookeeper.start()
            self.prepare()
            self.start(*self.brokers)
            self.start_missing()
        except BaseException:
            self.stop()
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.stop()

    def prepare(self) -> None:
        """Do what has to be done before the first broker starts."""

    def start(self, *brokers: int) -> None:
        """Start some, at the same time."""
        with ThreadPoolExecutor(len(brokers)) as threads:
            list(threads.map(lambda broker: self.brokers[broker].start(), brokers))

    def start_missing(self) -> None:
        """Start the brokers that do not run, and wait until all brokers have the same metadata."""
        missing = [number for number, it in self.brokers.items() if it.exit_code is not None]
        if missing:
            self.start(*missing)
        self.wait_for(
            "the same controller and all brokers in every broker's metadata",
            lambda: [(it.controller_id, sorted(it.brokers)) for it in self._metadata()],
            until=lambda found: (
                len({*map(str, found)}) == 1 and {found[0][0], *self.brokers} <= {*found[0][1]}
            ),
        )

    def stop(self) -> None:
        """End everything; brokers that are asked to go all at once need not go gently."""
        for broker in self.brokers.values():
            broker.kill()
        self.zookeeper.kill()

    @contextmanager
    def frozen(self, broker: int) -> Iterator[None]:
        """A broker that is stopped in its tracks, and goes on afterwards (SIGSTOP)."""
        pid = self.brokers[broker].pid
        forget(pid)  # That it does nothing explains no wait.
        os.kill(pid, signal.SIGSTOP)
        try:
            yield
        finally:
            if self.brokers[broker].exit_code is None:
                os.kill(pid, signal.SIGCONT)
                log_file = self.brokers[broker].log_file
                watch(self.brokers[broker].directory.name, pid, log_file, dumps=True)

    def controllers(self) -> set[int]:
        """The controller in each broker's metadata."""
        return {each.controller_id for each in self._metadata()}

    def known_controller(self) -> int:
        """The controller, as soon as every broker's metadata has the same."""
        (controller,) = self.wait_for(
            "one controller in every broker's metadata",
            self.controllers,
            until=lambda found: len(found) == 1 and found <= {*self.brokers},
        )
        return controller

    def _metadata(self) -> list[ClusterMetadata]:
        return [self.metadata(bootstrap=it.bootstrap) for it in self.brokers.values()]

    def metadata(self, topic: str | None = None, bootstrap: str | None = None) -> ClusterMetadata:
        """What any broker, or this one, answers to one Metadata request."""
        admin = self.admin(bootstrap)
        if topic is None:
            return admin.list_topics(timeout=ATTEMPT_S)
        return admin.list_topics(topic, timeout=ATTEMPT_S)

    def admin(self, bootstrap: str | None = None) -> AdminClient:
        """A client that begins with any broker, or with this one."""
        servers = {"bootstrap.servers": bootstrap or self.bootstrap}
        return AdminClient({**servers, "log_level": 0, **self.client})

    def informed_admin(self, bootstrap: str | None = None) -> AdminClient:
        """The same, for requests that change something: it knows who the controller is, and where.

        The library asks for the controller only once by itself, and then waits in vain where the
        broker it has asked did not know it yet, or told of one that is gone. It also drops the
        nameless handles it began with when it learns who the brokers are, and whatever they were
        waiting for with them. Requests end with their client: it is to be kept.
        """
        admin = self.admin(bootstrap)
        self.wait_for(
            "a controller among the brokers in a client's metadata",
            lambda: admin.list_topics(timeout=ATTEMPT_S),
            until=lambda found: found.controller_id in found.brokers,
        )
        return admin

    def change(
        self,
        order: Callable[[AdminClient], Mapping[Any, Future[Any]]],
        bootstrap: str | None = None,
    ) -> None:
        """Have the controller change something.

        A broker that has not heard of a new controller yet sends clients to the old one, which
        refuses. Kafka's own AdminClient then looks for the controller again, the library here
        does not. Nothing else is repeated.
        """

        def refusal() -> KafkaError | None:
            admin = self.informed_admin(bootstrap)
            try:
                for answer in order(admin).values():
                    answer.result(seconds(ANSWER))
            except KafkaException as error:
                refused: KafkaError = error.args[0]
                if refused.code() == KafkaError.NOT_CONTROLLER:
                    return refused
                raise
            return None

        wait_for("a controller that takes the request", refusal, until=lambda it: it is None)

    def create(self, topic: str, partitions: int = 1, replicas: int = 3, **config: str) -> None:
        """Create a topic; all brokers that run have heard then that its replicas are in sync."""
        settings = {name.replace("_", "."): value for name, value in config.items()}
        new = NewTopic(topic, partitions, replicas, config=settings)
        self.change(lambda admin: admin.create_topics([new]))
        running = [it.bootstrap for it in self.brokers.values() if it.exit_code is None]
        for bootstrap in running:
            self.wait_for_leadership(
                f"all replicas of {topic} in sync in the metadata of {bootstrap}",
                topic,
                lambda found: [len(isr) for _, isr in found] == [replicas] * partitions,
                bootstrap,
            )

    def read_leadership(self, topic: str, bootstrap: str | None = None) -> Leadership:
        """Leader and in-sync replicas as any broker, or this one, answers now.

        Raises one of `NOT_YET` where that broker does not know the topic.
        """
        found = self.metadata(topic, bootstrap).topics[topic].partitions
        if not found:
            raise KeyError(topic)
        return [(found[index].leader, tuple(sorted(found[index].isrs))) for index in sorted(found)]

    def wait_for_leadership(
        self,
        what: str,
        topic: str,
        until: Callable[[Leadership], object],
        bootstrap: str | None = None,
        within: float = SETTLE,
    ) -> Leadership:
        """Leader and in-sync replicas of each partition, once `until` holds for them."""
        return self.wait_for(
            what, lambda: self.read_leadership(topic, bootstrap), until=until, within=within
        )

    def leadership(self, topic: str, bootstrap: str | None = None) -> Leadership:
        """Leader and in-sync replicas as any broker, or this one, answers that knows the topic."""
        return self.wait_for_leadership(f"metadata of {topic}", topic, bool, bootstrap)

    def until_whole(self, topic: str) -> None:
        """Wait until every replica of a topic is in sync."""
        replicas = len(self.brokers)
        self.wait_for_leadership(
            f"every replica of {topic} in sync",
            topic,
            lambda found: all(len(isr) == replicas for _, isr in found),
        )

    def until_placed(self, topic: str, *replicas: tuple[int, ...]) -> None:
        """Wait until its partitions have these replicas, all in sync and none on its way.

        All brokers that run answer so: a tool asks any of them, and they learn of it one by one.
        """
        wanted = [(each, tuple(sorted(each))) for each in replicas]
        for broker in self.brokers.values():
            if broker.exit_code is None:
                self.wait_for(
                    f"replicas {replicas} of {topic} in the metadata of {broker.bootstrap}",
                    partial(self._placement, topic, broker.bootstrap),
                    until=lambda found: found == wanted,
                )

    def _placement(
        self, topic: str, bootstrap: str
    ) -> list[tuple[tuple[int, ...], tuple[int, ...]]]:
        found = self.metadata(topic, bootstrap).topics[topic].partitions
        partitions = [found[number] for number in sorted(found)]
        return [(tuple(it.replicas), tuple(sorted(it.isrs))) for it in partitions]

    def until_led_by_another(self, topic: str, broker: int) -> None:
        """Wait until partition 0 has a leader that is another than this broker."""
        self.wait_for_leadership(
            f"a leader of {topic}-0 other than broker {broker}",
            topic,
            lambda found: found[0][0] not in (broker, -1),
        )

    def until_led_by(self, topic: str, broker: int, partition: int = 0) -> None:
        """Wait until this broker leads a partition; -1 is none."""
        self.wait_for_leadership(
            f"broker {broker} as the leader of {topic}-{partition}",
            topic,
            lambda found: found[partition][0] == broker,
        )

    def until_in_sync(self, topic: str, *isr: int) -> None:
        """Wait until partition 0 has these in-sync replicas."""
        self.wait_for_leadership(
            f"in-sync replicas {isr} of {topic}-0",
            topic,
            lambda found: found[0][1] == tuple(sorted(isr)),
        )

    def until_controlled_by(self, *brokers: int) -> None:
        """Wait until any broker's metadata has one of these as the controller."""
        self.wait_for(
            f"one of the brokers {brokers} as the controller",
            lambda: self.metadata().controller_id,
            until=lambda found: found in brokers,
        )

    def leader(self, topic: str, partition: int = 0) -> int:
        """Who leads a partition; -1 for nobody."""
        return self.leadership(topic)[partition][0]

    def isr(self, topic: str, partition: int = 0) -> tuple[int, ...]:
        """Who is in sync, in the order of their numbers."""
        return self.leadership(topic)[partition][1]

    def content(self, broker: int, topic: str, partition: int = 0) -> bytes:
        """All bytes of a partition in the first log directory of a broker."""
        files = (self.brokers[broker].log_dirs[0] / f"{topic}-{partition}").glob("*.log")
        return b"".join(path.read_bytes() for path in sorted(files))

    def until_same_logs(self, topic: str, partition: int = 0) -> None:
        """Wait until all brokers have the same bytes of a partition."""
        self.wait_for(
            f"one length and CRC of the logs of {topic}-{partition}",
            lambda: {
                (len(content), crc32(content))
                for content in (self.content(it, topic, partition) for it in self.brokers)
            },
            until=lambda found: len(found) == 1,
        )

    def wait_for(
        self,
        what: str,
        read: Callable[[], Fact],
        *,
        until: Callable[[Fact], object] = bool,
        within: float = SETTLE,
    ) -> Fact:
        """`wait_for` of a fact that brokers, znodes or files do not have yet."""
        return wait_for(what, read, until=until, within=within, retry=NOT_YET)


@contextmanager
def on_record(cluster: Cluster) -> Iterator[KazooClient]:
    """The znodes; `retry` of the client waits for an ensemble that has no leader.

    A client whose session has expired would fail the test: its session is the longest there is.
    """
    patient = KazooRetry(max_tries=-1, max_delay=1, deadline=seconds(SETTLE))
    connect = cluster.zookeeper.connect
    client = KazooClient(connect, timeout=LONGEST_SESSION_S, command_retry=patient)
    client.start(seconds(START))
    try:
        yield client
    finally:
        client.stop()
        client.close()


def move_controller(cluster: Cluster, znodes: KazooClient, *brokers: int) -> None:
    """Resign for the controller until one of these brokers is elected."""

    def controller() -> int | None:
        try:
            elected = int(json.loads(znodes.get("/controller")[0])["brokerid"])
            if elected not in brokers:
                znodes.delete("/controller")
        except NoNodeError:  # Between two controllers.
            return None
        return elected

    cluster.wait_for(
        f"one of the brokers {brokers} in /controller",
        controller,
        until=lambda elected: elected in brokers,
    )


def broker_host(broker: int) -> str:
    """The host of a broker in a network."""
    return f"broker-{broker}"


def _two_directories(home: Path, disk: FaultyDisk) -> str:
    return f"{home / 'kafka-logs'},{disk.prefix / 'kafka-logs'}"
