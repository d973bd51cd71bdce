"""Every background task of a broker among others fails once, while clients work: it goes on."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Final, TypeVar

import pytest
from confluent_kafka import Producer
from kazoo.client import KazooClient

from barnabas_broker.server.node.broker_server import BrokerServer
from barnabas_broker.server.process.supervised_tasks import Background, background
from tests.broker.server.process.test_supervised_tasks import ready, scrape
from tests.broker.server.running import loop_of, running_node
from tests.cluster.history import Outcome, anomalies
from tests.cluster.load import read_all, under_load
from tests.cluster.running import SETTINGS, Cluster, move_controller
from tests.gaps import LONGEST_GAP
from tests.waiting import ANSWER, RUN, seconds, wait_for

OWN: Final = 2
PARTITIONS: Final = 6
STRIKE_EVERY_S: Final = 0.005
ROUNDS: Final = 20
"""In so many rounds of the loop a task has come to where it waits."""
RECORDS: Final = 5
TRANSACTIONS: Final = 8
"""Ids of as many transactions: the broker coordinates some of them."""

KEPT: Final = frozenset(
    {
        "ISR expiration",
        "applying metadata",
        "bounding producers",
        "checkpoints",
        "control channel to broker 0",
        "control channel to broker 1",
        "fetcher 0 of broker 0",
        "fetcher 0 of broker 1",
        "giving memory back",
        "high watermark check",
        "high watermark checkpoints",
        "leader balance",
        "log cleaner",
        "looking for flushes",
        "looking for room",
        "recovery point checkpoints",
        "removing files",
        "retention",
        "watching clients",
    }
)
"""What goes on for as long as a broker among others runs and is controller."""

PASSING: Final = frozenset({"AlterPartition", "AlterPartition sender", "writing markers"})
"""What is over soon: for one change of an ISR, or one transaction."""

T = TypeVar("T")


class Saboteur:
    """Has what tasks of a broker wait for end, once for each name; from `begin` on, all there are.

    A task that was not cancelled itself meets that as an error like any other.
    """

    def __init__(self, node: BrokerServer) -> None:
        self._loop = loop_of(node)
        self._ended = False
        self.hit: set[str] = set()
        self.tasks: Background = self._do(self._look())
        self._do(self._begin())

    def end(self) -> None:
        """Strike no more."""
        self._ended = True

    def until_hit(self, names: frozenset[str]) -> None:
        """Wait until tasks of these names were struck."""
        wait_for("tasks not struck yet", lambda: names - self.hit, until=lambda left: not left)

    def _do(self, work: Coroutine[Any, Any, T]) -> T:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(seconds(ANSWER))

    async def _look(self) -> Background:
        return background()

    async def _begin(self) -> None:
        begin_once = self.tasks.once

        def once(name: str, work: Coroutine[Any, Any, Any]) -> asyncio.Task[Any]:
            task = begin_once(name, work)
            self._strike(task)
            return task

        self.tasks.once = once  # type: ignore[method-assign]
        self._strike_all()

    def _strike_all(self) -> None:
        for task in list(self.tasks.tasks):
            self._strike(task)
        if not self._ended:
            self._loop.call_later(STRIKE_EVERY_S, self._strike_all)

    def _strike(self, task: asyncio.Task[Any], rounds: int = ROUNDS) -> None:
        """Now, or in one of the next rounds of the loop, where it does not wait for anything."""
        name, waits_for = task.get_name(), task._fut_waiter  # type: ignore[attr-defined]
        if name in self.hit or self._ended or task.done():
            return
        if waits_for is not None and waits_for.cancel():
            self.hit.add(name)
        elif rounds:
            self._loop.call_soon(self._strike, task, rounds - 1)


@pytest.fixture(scope="module")
def three(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """Two brokers in processes; a test adds the third, in its own."""
    with Cluster(tmp_path_factory.mktemp("tasks"), brokers=2) as started:
        yield started


def transact(cluster: Cluster, topic: str) -> list[str]:
    """Records of several transactions that are committed, each in every partition."""
    sent: list[str] = []
    for number in range(TRANSACTIONS):
        producer = Producer(
            {
                "bootstrap.servers": cluster.bootstrap,
                "transactional.id": f"{topic}-{number}",
                "log_level": 0,
            }
        )
        producer.init_transactions(seconds(RUN))
        for _ in range(RECORDS):
            producer.begin_transaction()
            for partition in range(PARTITIONS):
                sent.append(f"{number}-{len(sent)}")
                producer.produce(topic, sent[-1].encode(), partition=partition)
            producer.commit_transaction(seconds(RUN))
    return sent


def test_each_task_of_a_broker_among_others_fails_once(
    cluster: Cluster,
    znodes: KazooClient,
    topic: str,
    tmp_path: Path,
    record_property: Callable[[str, object], None],
) -> None:
    """It is heard of and goes on: in-sync replicas come back, and every transaction is whole."""
    settings = {
        **SETTINGS,
        "broker.id": str(OWN),
        "zookeeper.connect": cluster.zookeeper.connect,
        "barnabas.admin.listener": "127.0.0.1:0",
    }
    transactions = f"{topic}-transactions"
    with ExitStack() as stack:
        node = stack.enter_context(running_node(tmp_path, settings))
        for name in (topic, transactions):
            cluster.create(name, PARTITIONS)
        move_controller(cluster, znodes, OWN)
        cluster.until_controlled_by(OWN)
        with under_load(cluster.bootstrap, topic, PARTITIONS) as load:
            saboteur = Saboteur(node)
            stack.callback(saboteur.end)
            saboteur.until_hit(KEPT)
            cluster.brokers[1].stop()
            cluster.start(1)
            sent = transact(cluster, transactions)
            saboteur.until_hit(KEPT | PASSING)
            wait_for(
                "all replicas in sync",
                lambda: [len(isr) for _, isr in cluster.leadership(topic)],
                until=lambda found: found == [3] * PARTITIONS,
            )
        tasks = saboteur.tasks
        wait_for("the errors", lambda: set(tasks.failures), until=lambda it: it >= KEPT | PASSING)
        wait_for("no task that is down", lambda: dict(tasks.down), until=lambda down: not down)
        wait_for("the probe's yes", lambda: ready(node), until=lambda it: it[0] == 200)
        reported = scrape(node)
        for name in KEPT | PASSING:
            assert f'barnabas_background_task_failures_total{{task="{name}"}} ' in reported
        found = read_all(cluster.bootstrap, transactions, PARTITIONS, expected=len(sent))
        read = [value for poll in found for _, value in poll.records]
        assert sorted(read) == sorted(sent)
    record_property(LONGEST_GAP, f"{load.gap_s:.1f} s: every task of a broker fails")
    assert anomalies(load.history) == []
    assert {send.outcome for send in load.history.sends} == {Outcome.OK}
