"""`kafka-leader-election`: preferred and unclean elections, in the lines of Kafka's tool."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Final

import click

from barnabas_broker.cli.admin import AdminSession
from barnabas_broker.cli.client import Connection
from barnabas_broker.cli.errors import CommandError
from barnabas_broker.cli.json_files import read_json
from barnabas_broker.cli.kafka.tool import connected, tool
from barnabas_kafka.client import (
    BrokerError,
    DeadlineExceededError,
    ElectionType,
    elect_leaders,
)
from barnabas_kafka.errors import ErrorCode
from barnabas_kafka.ids import TopicPartition
from barnabas_kafka.reassignment.files import read_elections

WHICH: Final = ("topic", "all-topic-partitions", "path-to-json-file")
NOT_AUTHORIZED: Final = "Not authorized to perform leader election"
TIMED_OUT: Final = "Timeout waiting for election results"

#: Names of Java's exceptions that are not those of the error codes.
EXCEPTIONS: Final = {
    ErrorCode.REQUEST_TIMED_OUT: "Timeout",
    ErrorCode.TOPIC_AUTHORIZATION_FAILED: "TopicAuthorization",
    ErrorCode.CLUSTER_AUTHORIZATION_FAILED: "ClusterAuthorization",
}


@tool("kafka-leader-election")
@click.option(
    "--election-type",
    "kind",
    type=click.Choice(["preferred", "unclean"], case_sensitive=False),
    required=True,
    help="unclean: of a partition without leader, any replica that lives; it may lose records.",
)
@click.option("--topic", help="With --partition.")
@click.option("--partition", type=click.IntRange(min=0), help="Of --topic.")
@click.option("--all-topic-partitions", "everything", is_flag=True, help="All that need one.")
@click.option(
    "--path-to-json-file",
    "path",
    type=click.Path(path_type=Path),
    help='{"partitions": [{"topic": "a", "partition": 0}]}',
)
@connected(config="--admin.config")
def main(
    kind: str,
    topic: str | None,
    partition: int | None,
    everything: bool,
    path: Path | None,
    connection: Connection,
) -> None:
    """Elect leaders of partitions: the preferred replicas, or any where there is no leader."""
    if (topic is not None) + everything + (path is not None) != 1:
        raise click.UsageError(
            f"One and only one of the following options is required: {', '.join(WHICH)}"
        )
    if topic is not None and partition is None:
        raise click.UsageError("Missing required option(s): partition")
    if partition is not None and topic is None:
        raise click.UsageError("Option partition is only allowed if topic is used")
    wanted = None
    if path is not None:
        wanted = read_json(path, read_elections)
    elif topic is not None and partition is not None:
        wanted = [TopicPartition(topic, partition)]
    election = ElectionType[kind.upper()]
    _report(election, _elect(connection, wanted, election))


def _elect(
    connection: Connection, wanted: list[TopicPartition] | None, election: ElectionType
) -> Mapping[TopicPartition, BrokerError | None]:
    with AdminSession(connection) as session:
        try:
            return session.call(elect_leaders(wanted, election))
        except CommandError as error:
            if error.code == ErrorCode.CLUSTER_AUTHORIZATION_FAILED:
                click.echo(NOT_AUTHORIZED)
            elif isinstance(error.__cause__ or error.__context__, DeadlineExceededError):
                click.echo(TIMED_OUT)
            raise


def _report(election: ElectionType, answers: Mapping[TopicPartition, BrokerError | None]) -> None:
    done, needless = [], []
    failed: dict[TopicPartition, BrokerError] = {}
    for tp, error in sorted(answers.items()):
        if error is None:
            done.append(str(tp))
        elif error.code is ErrorCode.ELECTION_NOT_NEEDED:
            needless.append(str(tp))
        else:
            failed[tp] = error
    if done:
        click.echo(
            f"Successfully completed leader election ({election.name}) "
            f"for partitions {', '.join(done)}"
        )
    if needless:
        click.echo(f"Valid replica already elected for partitions {', '.join(needless)}")
    for tp, error in failed.items():
        click.echo(
            f"Error completing leader election ({election.name}) for partition: {tp}: "
            f"org.apache.kafka.common.errors.{_exception(error)}: {error.message}"
        )
    if failed:
        raise CommandError(f"{len(failed)} replica(s) could not be elected")


def _exception(error: BrokerError) -> str:
    """The class that Java clients raise for it, which scripts may look for."""
    name = EXCEPTIONS.get(error.code) or error.code.name.title().replace("_", "")
    return f"{name}Exception"
