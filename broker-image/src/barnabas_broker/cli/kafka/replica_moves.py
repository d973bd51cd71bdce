"""Moves of replicas between log directories, for `kafka-reassign-partitions`.

A replica that is not on its broker yet cannot be assigned a directory; so a move is asked for again
until it is taken, as Kafka's tool does.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator, Mapping
from typing import Final, NamedTuple

import click

from barnabas_broker.cli.admin import AdminSession
from barnabas_broker.cli.client import Connection
from barnabas_broker.cli.errors import FAILED, CommandError
from barnabas_kafka.client import OneBroker, describe_log_dirs
from barnabas_kafka.errors import ErrorCode
from barnabas_kafka.ids import TopicPartition
from barnabas_kafka.protocol.messages.alter_replica_log_dirs import (
    AlterReplicaLogDir,
    AlterReplicaLogDirsRequest,
    AlterReplicaLogDirsResponse,
    AlterReplicaLogDirTopic,
)
from barnabas_kafka.reassignment.files import Directories

POLL_S: Final = 0.1


class Place(NamedTuple):
    """Where a replica lies, and where it is being moved; None where neither is known."""

    current: str | None
    future: str | None


Places = Mapping[tuple[TopicPartition, int], Place]


def begin(connection: Connection, wanted: Directories, timeout_ms: int) -> None:
    """Begin moves; CommandError where one is refused. Exits where one is not taken in time."""
    pending = dict(wanted)
    give_up_at = time.monotonic() + timeout_ms / 1000
    pause = threading.Event()
    with AdminSession(connection) as session:
        while True:
            taken = sorted(_ask(session, pending), key=_order)
            for tp, broker in taken:
                directory = pending.pop((tp, broker))
                click.echo(
                    f"Successfully started moving log directory to {directory} "
                    f"for replica {tp} with broker {broker} "
                )
            if not pending:
                return
            if time.monotonic() >= give_up_at:
                plural = "" if len(pending) == 1 else "s"
                names = ",".join(map(_name, sorted(pending, key=_order)))
                text = f"log directory move{plural} could be started for: {names}"
                click.echo(f"Timed out before {text}")
                raise SystemExit(FAILED)
            pause.wait(POLL_S)


def places(connection: Connection, wanted: Directories) -> Places:
    """Where the replicas are; one that its broker does not have is left out."""
    if not wanted:
        return {}
    with AdminSession(connection) as session:
        found = session.call(describe_log_dirs(sorted({broker for _, broker in wanted})))
    for broker, error in found.errors.items():
        raise CommandError(f"broker {broker} does not describe its log directories: {error}")
    there: dict[tuple[TopicPartition, int], Place] = {}
    for broker, directories in found.values.items():
        for directory in directories:
            for tp, replica in directory.replicas.items():
                current, future = there.get((tp, broker), Place(None, None))
                there[tp, broker] = (
                    Place(current, directory.path)
                    if replica.future
                    else Place(directory.path, future)
                )
    return {replica: there[replica] for replica in wanted if replica in there}


def progress(wanted: Directories, found: Places) -> Iterator[tuple[str, bool]]:
    """A line for each move, and whether it is under way."""
    for replica, directory in sorted(wanted.items(), key=lambda each: _order(each[0])):
        tp, broker = replica
        current, future = found.get(replica, Place(None, None))
        if current is None:
            yield (
                f"Partition {tp} cannot be found in any live log directory on broker {broker}.",
                False,
            )
        elif future == directory:
            yield f"Reassignment of replica {_name(replica)} is still in progress.", True
        elif future is not None:
            text = f"is being moved to log dir {future} instead of {directory}."
            yield f"Partition {tp} on broker {broker} {text}", True
        elif current == directory:
            yield f"Reassignment of replica {_name(replica)} completed successfully.", False
        else:
            text = f"is not being moved from log dir {current} to {directory}."
            yield f"Partition {tp} on broker {broker} {text}", False


def _ask(session: AdminSession, wanted: Directories) -> list[tuple[TopicPartition, int]]:
    """Ask every broker once; returns the moves that were taken."""
    by_broker: dict[int, dict[str, AlterReplicaLogDir]] = {}
    for (tp, broker), directory in sorted(wanted.items(), key=lambda each: _order(each[0])):
        entries = by_broker.setdefault(broker, {})
        entry = entries.setdefault(directory, AlterReplicaLogDir(path=directory, topics=[]))
        if not entry.topics or entry.topics[-1].name != tp.topic:
            entry.topics.append(AlterReplicaLogDirTopic(name=tp.topic, partitions=[]))
        entry.topics[-1].partitions.append(tp.partition)
    taken = []
    for broker, entries in by_broker.items():
        request = AlterReplicaLogDirsRequest(dirs=list(entries.values()))
        response = session.ask(OneBroker(broker), request, AlterReplicaLogDirsResponse)
        for topic in response.results:
            for each in topic.partitions:
                replica = TopicPartition(topic.topic_name, each.partition_index), broker
                if each.error_code == ErrorCode.NONE:
                    taken.append(replica)
                elif each.error_code != ErrorCode.REPLICA_NOT_AVAILABLE:
                    reason = ErrorCode(each.error_code).name
                    raise CommandError(f"Failed to alter dir for {_name(replica)}: {reason}")
    return taken


def _order(replica: tuple[TopicPartition, int]) -> tuple[int, TopicPartition]:
    return replica[1], replica[0]


def _name(replica: tuple[TopicPartition, int]) -> str:
    return f"{replica[0]}-{replica[1]}"
