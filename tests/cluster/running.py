"""A ZooKeeper and several broker processes, started together and on the same ports for good."""

from __future__ import annotations

import json
import os
import signal
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from time import monotonic
from types import TracebackType
from typing import Any, Final, Self

from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import AdminClient, ClusterMetadata, NewTopic, PartitionMetadata
from kazoo.client import KazooClient
from kazoo.exceptions import KazooException, NoNodeError
from kazoo.retry import KazooRetry

from tests.clients.brokers import Barnabas
from tests.cluster.ensemble import Ensemble
from tests.faults.disk import FaultyDisk
from tests.oracle.apache import free_port

DEADLINE_S: Final = 120
ANSWER_S: Final = 90
"""For what an AdminClient is to answer: it gives up after 60 s itself, and says why."""

SESSION_MS: Final = "6000"

SETTINGS: Final = {
    "zookeeper.session.timeout.ms": SESSION_MS,
    "replica.lag.time.max.ms": "4000",
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
"""Three brokers for production, but for times that would make tests wait."""

STEADY: Final = {"zookeeper.session.timeout.ms": "40000", "replica.lag.time.max.ms": "60000"}
"""For brokers that nobody is to take for dead or behind because the machine is slow.

They are to be `--supervised`, so that others hear at once of one that was killed.
"""


class Cluster:
    """Brokers 0, 1, ... on one ZooKeeper. Use as a context."""

    def __init__(
        self,
        directory: Path,
        brokers: int = 3,
        settings: Mapping[str, str] | None = None,
        racks: Sequence[str] = (),
        options: Sequence[str] = (),
        *,
        disks: Sequence[FaultyDisk] = (),
        listeners: Sequence[str] = ("PLAINTEXT",),
        members: int = 1,
    ) -> None:
        """With `disks` each broker has a second log directory, on one that fails on demand.

        Clients use the first of the `listeners`. `members`: how many the ensemble has.
        """
        self.zookeeper = Ensemble(directory / "zookeeper", members)
        self.brokers = {
            broker: Barnabas(
                home := directory / f"broker-{broker}",
                {
                    **SETTINGS,
                    "broker.id": str(broker),
                    "listeners": ",".join(f"{it}://127.0.0.1:{free_port()}" for it in listeners),
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

    def start(self, *brokers: int) -> None:
        """Start some, at the same time."""
        with ThreadPoolExecutor(len(brokers)) as threads:
            list(threads.map(lambda broker: self.brokers[broker].start(), brokers))

    def start_missing(self) -> None:
        """Start whoever does not run, and wait until each broker tells of all of them again."""
        missing = [number for number, it in self.brokers.items() if it.exit_code is not None]
        if missing:
            self.start(*missing)
        self.until(self._agreed)

    def stop(self) -> None:
        """End everything; brokers that are asked to go all at once need not go gently."""
        for broker in self.brokers.values():
            broker.kill()
        self.zookeeper.kill()

    @contextmanager
    def frozen(self, broker: int) -> Iterator[None]:
        """A broker that is stopped in its tracks, and goes on afterwards (SIGSTOP)."""
        pid = self.brokers[broker].pid
        os.kill(pid, signal.SIGSTOP)
        try:
            yield
        finally:
            os.kill(pid, signal.SIGCONT)

    def controller(self) -> int | None:
        """Who is the controller, once every broker says the same."""
        named = {each.controller_id for each in self._told()}
        return named.pop() if len(named) == 1 else None

    def known_controller(self) -> int:
        """The controller, as soon as every broker says the same."""
        named: list[int] = []

        def known() -> bool:
            found = self.controller()
            named[:] = [each for each in self.brokers if each == found]
            return bool(named)

        self.until(known)
        return named[0]

    def _agreed(self) -> bool:
        """Whether every broker has heard of all brokers, and of the same controller among them."""
        told = self._told()
        named = {each.controller_id for each in told}
        return len(named) == 1 and all(named | {*self.brokers} <= {*each.brokers} for each in told)

    def _told(self) -> list[ClusterMetadata]:
        return [self.admin(it.bootstrap).list_topics(timeout=30) for it in self.brokers.values()]

    def admin(self, bootstrap: str | None = None) -> AdminClient:
        """A client that begins with any broker, or with this one."""
        return AdminClient({"bootstrap.servers": bootstrap or self.bootstrap, "log_level": 0})

    def informed_admin(self, bootstrap: str | None = None) -> AdminClient:
        """The same, for requests that change something: it knows who the controller is, and where.

        The library asks for the controller only once by itself, and then waits in vain where the
        broker it has asked did not know it yet, or told of one that is gone. It also drops the
        nameless handles it began with when it learns who the brokers are, and whatever they were
        waiting for with them. Requests end with their client: it is to be kept.
        """
        admin = self.admin(bootstrap)

        def informed() -> bool:
            told = admin.list_topics(timeout=5)
            return told.controller_id in told.brokers

        self.until(informed)
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
        give_up_at = monotonic() + DEADLINE_S
        while True:
            admin = self.informed_admin(bootstrap)
            try:
                for answer in order(admin).values():
                    answer.result(ANSWER_S)
            except KafkaException as error:
                refusal = error.args[0].code()
                if refusal != KafkaError.NOT_CONTROLLER or monotonic() > give_up_at:
                    raise
            else:
                return

    def create(self, topic: str, partitions: int = 1, replicas: int = 3, **config: str) -> None:
        """Create a topic; all brokers that run have heard then that its replicas are in sync."""
        settings = {name.replace("_", "."): value for name, value in config.items()}
        new = NewTopic(topic, partitions, replicas, config=settings)
        self.change(lambda admin: admin.create_topics([new]))
        running = [it.bootstrap for it in self.brokers.values() if it.exit_code is None]

        def heard(bootstrap: str) -> bool:
            told = self.leadership(topic, bootstrap)
            return [len(isr) for _, isr in told] == [replicas] * partitions

        self.until(lambda: all(map(heard, running)))

    def leadership(
        self, topic: str, bootstrap: str | None = None
    ) -> list[tuple[int, tuple[int, ...]]]:
        """Leader and in-sync replicas of each partition, as any broker tells that has heard of it.

        Or as this one does.
        """
        found: dict[int, PartitionMetadata] = {}

        def told() -> bool:
            metadata = self.admin(bootstrap).list_topics(topic, timeout=30)
            found.update(metadata.topics[topic].partitions)
            return bool(found)

        self.until(told)
        return [(found[index].leader, tuple(sorted(found[index].isrs))) for index in sorted(found)]

    def until_whole(self, topic: str) -> None:
        """Wait until every replica of a topic is in sync."""
        replicas = len(self.brokers)
        self.until(lambda: all(len(isr) == replicas for _, isr in self.leadership(topic)))

    def lies(self, topic: str, *replicas: tuple[int, ...]) -> bool:
        """Whether its partitions have these replicas, all in sync and none on its way.

        All brokers that run tell so: a tool asks any of them, and they hear of it one by one.
        """
        wanted = [(each, tuple(sorted(each))) for each in replicas]
        for broker in self.brokers.values():
            if broker.exit_code is None:
                told = self.admin(broker.bootstrap).list_topics(topic, timeout=30).topics[topic]
                partitions = [told.partitions[number] for number in sorted(told.partitions)]
                found = [(tuple(it.replicas), tuple(sorted(it.isrs))) for it in partitions]
                if found != wanted:
                    return False
        return True

    def until_led_by_another(self, topic: str, broker: int) -> None:
        """Wait until partition 0 has a leader that is another than this broker."""
        self.until(lambda: self.leader(topic) not in (broker, -1))

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

    def until(self, condition: Callable[[], object], deadline_s: float = DEADLINE_S) -> None:
        """Wait until it is so; fails with the last words of the brokers after a long time."""
        give_up_at = monotonic() + deadline_s
        waiting = threading.Event()
        while True:
            try:
                if condition():
                    return
            except (
                KafkaException,
                KazooException,
                KeyError,
                IndexError,
                FileNotFoundError,
            ) as error:
                # Brokers come and go with their znodes and files, and do not know everything at
                # once: the deadline decides.
                last: object = error
            else:
                last = "it is not so"
            assert monotonic() < give_up_at, f"{last}\n{self.words()}"
            waiting.wait(0.05)

    def words(self) -> str:
        """What each broker said last."""
        return "\n".join(
            f"--- broker {number}\n{broker.tail()}" for number, broker in self.brokers.items()
        )


@contextmanager
def on_record(cluster: Cluster) -> Iterator[KazooClient]:
    """The znodes; `retry` of the client waits for an ensemble that has no leader.

    Its session is as long as an ensemble grants: who stands still for ten seconds is busy.
    """
    patient = KazooRetry(max_tries=-1, max_delay=1, deadline=DEADLINE_S)
    client = KazooClient(cluster.zookeeper.connect, timeout=DEADLINE_S, command_retry=patient)
    client.start(DEADLINE_S)
    try:
        yield client
    finally:
        client.stop()
        client.close()


def controlled_by(znodes: KazooClient, *brokers: int) -> bool:
    """Whether one of these is the controller; whoever else is, is taken out of office."""
    try:
        if json.loads(znodes.get("/controller")[0])["brokerid"] in brokers:
            return True
        znodes.delete("/controller")
    except NoNodeError:  # Between two controllers.
        pass
    return False


def _two_directories(home: Path, disk: FaultyDisk) -> str:
    return f"{home / 'kafka-logs'},{disk.prefix / 'kafka-logs'}"
