"""`kafka-cluster`: the id of the cluster."""

from __future__ import annotations

import click

from barnabas_broker.cli.admin import AdminSession
from barnabas_broker.cli.client import Connection
from barnabas_broker.cli.errors import CommandError
from barnabas_broker.cli.kafka.tool import connected, tool
from barnabas_kafka.client import describe_cluster

COMMANDS = ("cluster-id", "unregister")


@tool("kafka-cluster")
@click.argument("command", metavar="COMMAND")
@click.option("-i", "--id", "broker", type=int, metavar="ID", help="unregister: which broker.")
@connected("-b", config=("-c", "--config"))
def main(command: str, broker: int | None, connection: Connection) -> None:
    """Print the id of the cluster with COMMAND cluster-id.

    COMMAND unregister is refused: it is for clusters without ZooKeeper.
    """
    if command not in COMMANDS:
        raise click.UsageError(f"invalid choice: '{command}' (choose from {', '.join(COMMANDS)})")
    if command == "unregister":
        if broker is None:
            raise click.UsageError("argument --id/-i is required")
        click.echo("The target cluster does not support the broker unregistration API.")
        raise CommandError(
            f"broker {broker} stays as it is: a broker on ZooKeeper is registered for as long as"
            " its session lasts, and there is nothing to unregister once it has stopped"
        )
    if broker is not None:
        raise click.UsageError("unrecognized arguments: '--id'")
    with AdminSession(connection) as session:
        found = session.call(describe_cluster()).cluster_id
    if found is None:
        click.echo("No cluster ID found. The Kafka version is probably too old.")
    else:
        click.echo(f"Cluster ID: {found}")
