"""`kafka-log-dirs`: which replicas the log directories of brokers hold, and how large they are."""

from __future__ import annotations

import json
from typing import Any

import click

from barnabas_broker.cli.client import Connection
from barnabas_broker.cli.errors import CommandError
from barnabas_broker.cli.kafka.tool import connected, tool
from barnabas_broker.cli.wire import Wire, broker_addresses
from barnabas_kafka.errors import ErrorCode
from barnabas_kafka.protocol.messages.describe_log_dirs import (
    DescribeLogDirsRequest,
    DescribeLogDirsResponse,
    DescribeLogDirsResult,
)


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
    there = broker_addresses(connection)
    try:
        brokers = [int(text) for text in broker_list.split(",")] if broker_list else sorted(there)
    except ValueError:
        raise click.UsageError(f"--broker-list takes broker ids, not {broker_list}") from None
    if missing := set(brokers) - set(there):
        text = ",".join(map(str, sorted(missing)))
        raise CommandError(f"The given brokers do not exist from --broker-list: {text}")
    topics = set(topic_list.split(",")) if topic_list else None
    click.echo("Querying brokers for log directories information")
    told = [_broker(broker, there[broker], topics, connection) for broker in brokers]
    click.echo(f"Received log directory information from brokers {','.join(map(str, brokers))}")
    click.echo(json.dumps({"brokers": told, "version": 1}, separators=(",", ":")))


def _broker(
    broker: int, address: tuple[str, int], topics: set[str] | None, connection: Connection
) -> dict[str, Any]:
    with Wire(address, connection.timeout_s) as wire:
        response = wire.ask(DescribeLogDirsRequest(topics=None), DescribeLogDirsResponse)
    if response.error_code != ErrorCode.NONE:
        raise CommandError(f"broker {broker} refuses: {ErrorCode(response.error_code).name}")
    return {"broker": broker, "logDirs": [_directory(each, topics) for each in response.results]}


def _directory(result: DescribeLogDirsResult, topics: set[str] | None) -> dict[str, Any]:
    """One directory in the shape of Kafka's tool, whose key order scripts may have come to know."""
    partitions = [
        {
            "partition": f"{topic.name}-{partition.partition_index}",
            "size": partition.partition_size,
            "offsetLag": partition.offset_lag,
            "isFuture": partition.is_future_key,
        }
        for topic in result.topics
        if topics is None or topic.name in topics
        for partition in topic.partitions
    ]
    error = None if result.error_code == ErrorCode.NONE else ErrorCode(result.error_code).name
    return {"partitions": partitions, "error": error, "logDir": result.log_dir}
