"""`barnabas log-dirs`: what lies on which disk of a broker, and moves between them."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any

import click

from barnabas_broker.cli.client import Connection, connection_options
from barnabas_broker.cli.errors import Attempts, CommandError, InputError
from barnabas_broker.cli.offsets import parse_partitions
from barnabas_broker.cli.output import output_option, print_json, print_table
from barnabas_broker.cli.wire import Wire, broker_addresses
from barnabas_kafka.errors import ErrorCode
from barnabas_kafka.ids import TopicPartition
from barnabas_kafka.protocol.messages.alter_replica_log_dirs import (
    AlterReplicaLogDir,
    AlterReplicaLogDirsRequest,
    AlterReplicaLogDirsResponse,
    AlterReplicaLogDirTopic,
)
from barnabas_kafka.protocol.messages.describe_log_dirs import (
    DescribeLogDirsRequest,
    DescribeLogDirsResponse,
    DescribeLogDirsResult,
)

POLL_S = 0.5

BROKER = click.option("--broker", type=int, metavar="ID", help="All brokers otherwise.")


@dataclass(frozen=True, slots=True)
class Replica:
    """A copy of a partition in one directory."""

    broker: int
    directory: str
    tp: TopicPartition
    size: int
    lag: int
    future: bool

    def row(self) -> dict[str, Any]:
        """As it is printed."""
        return {
            "broker": self.broker,
            "directory": self.directory,
            "topic": self.tp.topic,
            "partition": self.tp.partition,
            "size": self.size,
            "lag": self.lag,
            "future": self.future,
        }


@click.group(name="log-dirs")
def log_dirs() -> None:
    """Describe log directories, and move partitions between them."""


@log_dirs.command()
@click.option("--topic", "topics", multiple=True, help="Its partitions too; may be repeated.")
@click.option("--partitions", "all_partitions", is_flag=True, help="The partitions of all topics.")
@BROKER
@output_option
@connection_options
def describe(
    topics: tuple[str, ...],
    all_partitions: bool,
    broker: int | None,
    output: str,
    connection: Connection,
) -> None:
    """Show directories, or with --topic or --partitions what lies in them.

    A future replica is one that is being moved there; its lag is what it has yet to copy, in
    offsets.
    """
    directories: list[dict[str, Any]] = []
    replicas: list[Replica] = []
    for each, wire in _brokers(connection, broker):
        with wire:
            for result in _describe(each, wire):
                here = _replicas(each, result)
                directories.append(_directory_row(each, result, here))
                replicas += here
    wanted = [it for it in replicas if all_partitions or it.tp.topic in topics]
    rows = [it.row() for it in sorted(wanted, key=lambda it: (it.tp, it.future))]
    if not (topics or all_partitions):
        rows = directories
    if output == "json":
        print_json(rows)
    elif rows:
        print_table(list(rows[0]), [list(row.values()) for row in rows])


@log_dirs.command(context_settings={"ignore_unknown_options": True})
@click.argument("selections", nargs=-1, required=True, metavar="TOPIC:PARTITIONS...")
@click.option("--to", "directory", required=True, metavar="DIR", help="As in the broker's log.dirs")
@click.option("--broker", type=int, metavar="ID", help="Needed where there are several.")
@click.option("--wait", is_flag=True, help="Until all have arrived, with progress.")
@connection_options
def move(
    selections: tuple[str, ...],
    directory: str,
    broker: int | None,
    wait: bool,
    connection: Connection,
) -> None:
    """Move partitions to another log directory of their broker.

    They are copied in the background, and served all the while. Moving one to where it lies cancels
    a move. PARTITIONS are numbers and ranges: orders:0,2,5-8.
    """
    wanted = [tp for selection in selections for tp in _parse(selection)]
    brokers = _brokers(connection, broker)
    with ExitStack() as stack:
        opened = [(each, stack.enter_context(wire)) for each, wire in brokers]
        if len(opened) > 1:
            raise InputError("there are several brokers: say which one with --broker")
        ((number, wire),) = opened
        _ask(wire, directory, wanted)
        if wait:
            _wait(number, wire, directory, wanted)


def _parse(selection: str) -> list[TopicPartition]:
    topic, colon, numbers = selection.rpartition(":")
    if not colon:
        raise InputError(f"{selection} names no partitions: {selection}:0,2-4 does")
    return [TopicPartition(topic, number) for number in sorted(parse_partitions(numbers))]


def _brokers(connection: Connection, only: int | None) -> Iterator[tuple[int, Wire]]:
    there = broker_addresses(connection)
    if only is not None and only not in there:
        raise CommandError(f"there is no broker {only}")
    for broker, address in sorted(there.items()):
        if only in (None, broker):
            yield broker, Wire(address, connection.timeout_s)


def _describe(broker: int, wire: Wire) -> list[DescribeLogDirsResult]:
    response = wire.ask(DescribeLogDirsRequest(topics=None), DescribeLogDirsResponse)
    if response.error_code:
        raise CommandError(f"broker {broker} refuses: {ErrorCode(response.error_code).name}")
    return response.results


def _replicas(broker: int, result: DescribeLogDirsResult) -> list[Replica]:
    return [
        Replica(
            broker,
            result.log_dir,
            TopicPartition(topic.name, it.partition_index),
            it.partition_size,
            it.offset_lag,
            it.is_future_key,
        )
        for topic in result.topics
        for it in topic.partitions
    ]


def _directory_row(
    broker: int, result: DescribeLogDirsResult, replicas: list[Replica]
) -> dict[str, Any]:
    offline = result.error_code != ErrorCode.NONE
    known = not offline and result.total_bytes >= 0
    return {
        "broker": broker,
        "directory": result.log_dir,
        "state": "offline" if offline else "online",
        "free": result.usable_bytes if known else None,
        "total": result.total_bytes if known else None,
        "partitions": sum(not it.future for it in replicas),
        "size": sum(it.size for it in replicas),
        "future": sum(it.future for it in replicas),
    }


def _ask(wire: Wire, directory: str, wanted: list[TopicPartition]) -> None:
    topics: dict[str, AlterReplicaLogDirTopic] = {}
    for tp in wanted:
        topics.setdefault(tp.topic, AlterReplicaLogDirTopic(name=tp.topic)).partitions.append(
            tp.partition
        )
    entry = AlterReplicaLogDir(path=directory, topics=list(topics.values()))
    response = wire.ask(AlterReplicaLogDirsRequest(dirs=[entry]), AlterReplicaLogDirsResponse)
    with Attempts() as attempts:
        for topic in response.results:
            for it in topic.partitions:
                with attempts.one():
                    if it.error_code:
                        code = ErrorCode(it.error_code).name
                        name = f"{topic.topic_name}:{it.partition_index}"
                        raise CommandError(f"cannot move {name} to {directory}: {code}")


def _wait(broker: int, wire: Wire, directory: str, wanted: list[TopicPartition]) -> None:
    """Until every partition has arrived; the lag of those under way is told as it changes."""
    told = None
    while True:
        copies = [it for result in _describe(broker, wire) for it in _replicas(broker, result)]
        lags = {it.tp: it.lag for it in copies if it.future and it.tp in wanted}
        if lags != told:
            told = lags
            left = ", ".join(f"{tp.topic}:{tp.partition} lacks {lag}" for tp, lag in lags.items())
            click.echo(left or "All copies are made.", err=True)
        if not lags:
            break
        time.sleep(POLL_S)
    arrived = {it.tp for it in copies if it.directory == directory}
    for tp in wanted:
        if tp not in arrived:
            message = "has not arrived: its move was cancelled or has failed"
            raise CommandError(f"{tp.topic}:{tp.partition} {message}, see the broker's log")
