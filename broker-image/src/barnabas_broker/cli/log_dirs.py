"""`barnabas log-dirs`: what lies on which disk of a broker, and moves between them."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import click

from barnabas_broker.cli.admin import AdminSession
from barnabas_broker.cli.client import Connection, connection_options
from barnabas_broker.cli.errors import Attempts, CommandError, InputError
from barnabas_broker.cli.offsets import parse_partitions
from barnabas_broker.cli.output import (
    counted,
    done,
    human,
    output_option,
    print_json,
    print_table,
    results_option,
)
from barnabas_kafka.client import ClientError, LogDir, OneBroker, describe_log_dirs
from barnabas_kafka.errors import ErrorCode
from barnabas_kafka.ids import TopicPartition
from barnabas_kafka.protocol.messages.alter_replica_log_dirs import (
    AlterReplicaLogDir,
    AlterReplicaLogDirsRequest,
    AlterReplicaLogDirsResponse,
    AlterReplicaLogDirTopic,
)

POLL_S = 0.5
SIZES = frozenset({"free", "total", "size"})

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
    with AdminSession(connection) as session:
        described = session.call(describe_log_dirs(_brokers(session, broker)))
    with Attempts() as attempts:
        for each, error in described.errors.items():
            with attempts.one():
                raise _not_described(each, error)
        if described.values:
            _show(described.values, topics, output, all_partitions=all_partitions)


def _show(
    described: Mapping[int, tuple[LogDir, ...]],
    topics: Sequence[str],
    output: str,
    *,
    all_partitions: bool,
) -> None:
    directories: list[dict[str, Any]] = []
    replicas: list[Replica] = []
    for each, found in sorted(described.items()):
        for directory in found:
            here = _replicas(each, directory)
            directories.append(_directory_row(each, directory, here))
            replicas += here
    wanted = [it for it in replicas if all_partitions or it.tp.topic in topics]
    rows = [it.row() for it in sorted(wanted, key=lambda it: (it.tp, it.future))]
    if not (topics or all_partitions):
        rows = directories
    if output == "json":
        print_json(rows)
    elif rows:
        print_table(list(rows[0]), [_cells(row) for row in rows])


@log_dirs.command(context_settings={"ignore_unknown_options": True})
@click.argument("selections", nargs=-1, required=True, metavar="TOPIC:PARTITIONS...")
@click.option("--to", "directory", required=True, metavar="DIR", help="As in the broker's log.dirs")
@click.option("--broker", type=int, metavar="ID", help="Needed where there are several.")
@click.option("--wait", is_flag=True, help="Until all have arrived, with progress.")
@results_option
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
    with AdminSession(connection) as session:
        brokers = _brokers(session, broker)
        if len(brokers) > 1:
            raise InputError("there are several brokers: say which one with --broker")
        (number,) = brokers
        _move(session, number, directory, wanted)
        rows = [{"topic": tp.topic, "partition": tp.partition, "to": directory} for tp in wanted]
        done(f"Moving {counted(len(wanted), 'partition')} to {directory}.", *rows, err=True)
        if wait:
            _wait(session, number, directory, wanted)


def _parse(selection: str) -> list[TopicPartition]:
    topic, colon, numbers = selection.rpartition(":")
    if not colon:
        raise InputError(f"{selection} names no partitions: {selection}:0,2-4 does")
    return [TopicPartition(topic, number) for number in sorted(parse_partitions(numbers))]


def _brokers(session: AdminSession, only: int | None) -> list[int]:
    """The broker that the command names, or all."""
    live = list(session.brokers())
    if only is None:
        return live
    if only not in live:
        raise CommandError(f"there is no broker {only}")
    return [only]


def _describe(session: AdminSession, brokers: Sequence[int]) -> Mapping[int, tuple[LogDir, ...]]:
    """The directories of each broker; CommandError where one does not describe them."""
    found = session.call(describe_log_dirs(brokers))
    for broker, error in found.errors.items():
        raise _not_described(broker, error)
    return found.values


def _not_described(broker: int, error: ClientError) -> CommandError:
    return CommandError(f"broker {broker} does not describe its log directories: {error}")


def _replicas(broker: int, directory: LogDir) -> list[Replica]:
    return [
        Replica(broker, directory.path, tp, it.size, it.offset_lag, it.future)
        for tp, it in directory.replicas.items()
    ]


def _cells(row: Mapping[str, Any]) -> list[Any]:
    """A row for people: sizes with their units."""
    return [
        human(value) if name in SIZES and value is not None else value
        for name, value in row.items()
    ]


def _directory_row(broker: int, directory: LogDir, replicas: list[Replica]) -> dict[str, Any]:
    offline = directory.error is not None
    known = not offline and directory.total_bytes >= 0
    return {
        "broker": broker,
        "directory": directory.path,
        "state": "offline" if offline else "online",
        "free": directory.usable_bytes if known else None,
        "total": directory.total_bytes if known else None,
        "partitions": sum(not it.future for it in replicas),
        "size": sum(it.size for it in replicas),
        "future": sum(it.future for it in replicas),
    }


def _move(session: AdminSession, broker: int, directory: str, wanted: list[TopicPartition]) -> None:
    topics: dict[str, AlterReplicaLogDirTopic] = {}
    for tp in wanted:
        topics.setdefault(tp.topic, AlterReplicaLogDirTopic(name=tp.topic)).partitions.append(
            tp.partition
        )
    entry = AlterReplicaLogDir(path=directory, topics=list(topics.values()))
    request = AlterReplicaLogDirsRequest(dirs=[entry])
    response = session.ask(OneBroker(broker), request, AlterReplicaLogDirsResponse)
    with Attempts() as attempts:
        for topic in response.results:
            for it in topic.partitions:
                with attempts.one():
                    if it.error_code:
                        code = ErrorCode(it.error_code).name
                        name = f"{topic.topic_name}:{it.partition_index}"
                        raise CommandError(f"cannot move {name} to {directory}: {code}")


def _wait(session: AdminSession, broker: int, directory: str, wanted: list[TopicPartition]) -> None:
    """Until every partition has arrived; prints the lag of those under way as it changes."""
    reported = None
    while True:
        described = _describe(session, [broker])[broker]
        copies = [it for each in described for it in _replicas(broker, each)]
        lags = {it.tp: it.lag for it in copies if it.future and it.tp in wanted}
        if lags != reported:
            reported = lags
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
