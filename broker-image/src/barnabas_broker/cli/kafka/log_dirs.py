"""`kafka-log-dirs`: which replicas the log directories of brokers hold, and how large they are."""

from __future__ import annotations

import json
from typing import Any

import click

from barnabas_broker.cli.admin import AdminSession
from barnabas_broker.cli.client import Connection
from barnabas_broker.cli.errors import CommandError
from barnabas_broker.cli.kafka.tool import connected, tool
from barnabas_kafka.client import LogDir, describe_log_dirs


@tool("kafka-log-dirs")
@click.option("--describe", is_flag=True, help="Always needed.")
@click.option("--topic-list", metavar="TOPIC,TOPIC", help="All topics otherwise.")
@click.option("--broker-list", metavar="ID,ID", help="All brokers otherwise.")
@connected()
def main(
    describe: bool, topic_list: str | None, broker_list: str | None, connection: Connection
) -> None:
    """Print the log directories of brokers as one line of JSON."""
    if not describe:
        raise click.UsageError('Missing required argument "[describe]"')
    with AdminSession(connection) as session:
        brokers = _selected(broker_list, list(session.brokers()))
        topics = set(topic_list.split(",")) if topic_list else None
        click.echo("Querying brokers for log directories information")
        found = session.call(describe_log_dirs(brokers))
    for broker, error in found.errors.items():
        raise CommandError(f"broker {broker} does not describe its log directories: {error}")
    described = [
        {"broker": broker, "logDirs": [_directory(each, topics) for each in found.values[broker]]}
        for broker in brokers
    ]
    click.echo(f"Received log directory information from brokers {','.join(map(str, brokers))}")
    click.echo(json.dumps({"brokers": described, "version": 1}, separators=(",", ":")))


def _selected(broker_list: str | None, live: list[int]) -> list[int]:
    """The brokers of --broker-list, or all; CommandError where one is not registered."""
    try:
        brokers = [int(text) for text in broker_list.split(",")] if broker_list else live
    except ValueError:
        raise click.UsageError(f"--broker-list takes broker ids, not {broker_list}") from None
    if missing := set(brokers) - set(live):
        text = ",".join(map(str, sorted(missing)))
        raise CommandError(f"The given brokers do not exist from --broker-list: {text}")
    return brokers


def _directory(found: LogDir, topics: set[str] | None) -> dict[str, Any]:
    """One directory in the shape of Kafka's tool; scripts may depend on its order of keys."""
    partitions = [
        {
            "partition": str(tp),
            "size": replica.size,
            "offsetLag": replica.offset_lag,
            "isFuture": replica.future,
        }
        for tp, replica in found.replicas.items()
        if topics is None or tp.topic in topics
    ]
    error = None if found.error is None else found.error.code.name
    return {"partitions": partitions, "error": error, "logDir": found.path}
