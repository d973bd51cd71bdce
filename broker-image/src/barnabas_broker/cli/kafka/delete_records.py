"""`kafka-delete-records`: move the start of partitions up to given offsets."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from barnabas_broker.cli.client import Connection, failures
from barnabas_broker.cli.errors import CommandError
from barnabas_broker.cli.kafka.tool import connected, tool

if TYPE_CHECKING:
    from confluent_kafka import TopicPartition


@tool("kafka-delete-records")
@click.option(
    "--offset-json-file",
    "path",
    required=True,
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help='{"partitions": [{"topic": "a", "partition": 0, "offset": 10}], "version": 1}',
)
@connected()
def main(path: Path, connection: Connection) -> None:
    """Delete the records before given offsets, and say where the partitions begin then."""
    wanted = _read(path)
    client, _ = connection.admin()
    click.echo("Executing records delete operation")
    with failures("the request is refused"):
        futures = client.delete_records(wanted, request_timeout=connection.timeout_s)
    click.echo("Records delete operation completed:")
    for partition, future in futures.items():
        where = f"partition: {partition.topic}-{partition.partition}"
        try:
            deleted: Any = connection.answer(future)
        except CommandError as error:
            click.echo(f"{where}\terror: {error.message}")
        else:
            click.echo(f"{where}\tlow_watermark: {deleted.low_watermark}")


def _read(path: Path) -> list[TopicPartition]:
    from confluent_kafka import TopicPartition

    try:
        document = json.loads(path.read_text(encoding="utf-8"))
        if document.get("version", 1) != 1:
            raise CommandError(f"{path}: version {document['version']} is not known")
        wanted = [
            (str(entry["topic"]), int(entry["partition"]), int(entry["offset"]))
            for entry in document["partitions"]
        ]
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise CommandError(f"{path} is not what --offset-json-file takes: {error!r}") from None
    if len({entry[:2] for entry in wanted}) < len(wanted):
        raise CommandError(f"{path} names a partition twice")
    return [TopicPartition(*entry) for entry in wanted]
