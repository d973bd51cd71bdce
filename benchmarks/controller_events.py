"""``python -m benchmarks.controller_events``: what events cost the controller, by what there is.

Three controllers on one znode tree in this process, without sockets, disks or logs, so that what is
measured is the controller's own work: its thread's (the transition, the writes as they are made,
the next image) and the event loop's (what each of the other brokers is to be told). The figures are
of processor time, the median of all rounds, in milliseconds.
"""

from __future__ import annotations

import gc
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from statistics import median
from typing import Final

import click

from barnabas_broker.controller.controller import Controller
from barnabas_broker.controller.events import ControlledShutdown
from barnabas_broker.controller.isr_changes import InSyncChange, IsrRequest
from barnabas_broker.controller.target_state import Sender, TargetState, orders, own_stops
from barnabas_broker.controller.topics import NewTopic
from barnabas_broker.security.principals import ANONYMOUS
from barnabas_kafka.errors import ErrorCode
from barnabas_kafka.ids import TopicPartition
from tests.broker.controller.ensemble import NOW_MS, Cluster

BROKERS: Final = 3
TOPICS_PER_REQUEST: Final = 200
SHAPES: Final = ((10, 10), (1, 1_000), (1_000, 1), (1, 10_000), (100, 100), (10_000, 1))
BAR_MS: Final = 2.0
"""Of one ISR change among 10,000 partitions, thread and loop together."""


@dataclass(frozen=True, slots=True)
class Cost:
    """Milliseconds of the controller's thread and of its event loop."""

    thread_ms: float
    loop_ms: float

    @property
    def total_ms(self) -> float:
        """Both."""
        return self.thread_ms + self.loop_ms


@dataclass(frozen=True, slots=True)
class Row:
    """What was measured with so many topics of so many partitions each."""

    topics: int
    partitions: int
    isr_change: Cost
    shutdown: Cost
    failover_ms: float


def made(topics: int, partitions: int) -> Cluster:
    """A cluster with that many, three replicas each."""
    cluster = Cluster(BROKERS)
    for first in range(0, topics, TOPICS_PER_REQUEST):
        new = [
            NewTopic(name=f"t{number}", num_partitions=partitions, replication_factor=BROKERS)
            for number in range(first, min(topics, first + TOPICS_PER_REQUEST))
        ]
        cluster.active_controller.create_topics(new, principal=ANONYMOUS, now_ms=NOW_MS)
    cluster.settle()
    return cluster


def cost_of(controller: Controller, work: Callable[[], object]) -> Cost:
    """What it costs to do it, and to work out what the others are to be told."""
    before = controller.view
    began = time.process_time()
    work()
    after = controller.view
    done = time.process_time()
    assert before is not None
    assert after is not None
    _send(controller, before, after)
    return Cost((done - began) * 1000, (time.process_time() - done) * 1000)


def _send(controller: Controller, before: TargetState, after: TargetState) -> None:
    own = controller.image.controller_id
    sender = Sender(own, controller.epoch, "PLAINTEXT")
    for broker, registration in after.image.brokers.items():
        if broker != own:
            orders(registration, before, after, sender)
    own_stops(own, before, after)


def isr_change(cluster: Cluster, number: int) -> Cost:
    """A follower leaves an ISR, or comes back into it."""
    controller = cluster.active_controller
    names = list(controller.image.topics)
    name = names[number % len(names)]
    partition = number // len(names) % len(controller.image.topics[name].partitions)
    state = controller.image.topics[name].partitions[partition]
    isr = state.isr[:-1] if len(state.isr) == BROKERS else state.replicas
    isr = isr if state.leader in isr else (state.leader, *isr[1:])
    change = InSyncChange(name, partition, state.leader_epoch, state.partition_epoch, isr)
    epoch = controller.image.brokers[state.leader].epoch
    request = IsrRequest(state.leader, epoch, [change], version=3)
    errors: list[ErrorCode] = []
    cost = cost_of(
        controller,
        lambda: errors.extend(
            it.error for it in controller.alter_partitions(request, now_ms=NOW_MS)
        ),
    )
    assert errors == [ErrorCode.NONE], errors
    return cost


def shutdown(cluster: Cluster) -> Cost:
    """A broker that leads a third of everything hands it over."""
    controller = cluster.active_controller
    event = ControlledShutdown(BROKERS, controller.image.brokers[BROKERS].epoch)
    left: list[TopicPartition] = []
    cost = cost_of(controller, lambda: left.extend(controller.active.process(event, now_ms=NOW_MS)))
    assert left == []
    return cost


def failover(cluster: Cluster) -> float:
    """The controller dies: what its successor's thread does until everything is published."""
    cluster.stores.pop(1).close()
    del cluster.controllers[1]
    successor = cluster.controllers[2]
    began = time.process_time()
    assert successor.contest(now_ms=NOW_MS)
    return (time.process_time() - began) * 1000


def measured(topics: int, partitions: int, rounds: int) -> Row:
    """A row of the table."""
    cluster = made(topics, partitions)
    gc.collect()
    gc.freeze()
    changes = [isr_change(cluster, number) for number in range(rounds)]
    cost = Cost(
        median(each.thread_ms for each in changes), median(each.loop_ms for each in changes)
    )
    row = Row(topics, partitions, cost, shutdown(cluster), failover(cluster))
    gc.unfreeze()
    return row


def table(rows: list[Row]) -> str:
    """As documents have it."""
    lines = [
        "| Topics × partitions | ISR change | … orders | Controlled shutdown | Failover |",
        "|---|---|---|---|---|",
    ]
    lines += [
        f"| {row.topics:,} × {row.partitions:,} | {row.isr_change.thread_ms:.2f} | "
        f"{row.isr_change.loop_ms:.2f} | {row.shutdown.total_ms:,.0f} | {row.failover_ms:,.0f} |"
        for row in rows
    ]
    return "\n".join(lines)


@click.command()
@click.option("--rounds", default=50, show_default=True, help="ISR changes of each row.")
def main(rounds: int) -> None:
    """Measure, print the table, and fail above the bar."""
    rows = []
    for topics, partitions in SHAPES:
        rows.append(measured(topics, partitions, rounds))
        click.echo(table(rows[-1:]).splitlines()[-1], err=True)
    click.echo(table(rows))
    slow = [
        row
        for row in rows
        if row.topics * row.partitions == 10_000 and row.isr_change.total_ms > BAR_MS
    ]
    if slow:
        click.echo(f"above {BAR_MS} ms: {slow}", err=True)
        sys.exit(1)


if __name__ == "__main__":
    main()
