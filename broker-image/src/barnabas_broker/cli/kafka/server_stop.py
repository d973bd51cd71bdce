"""`kafka-server-stop`: end the brokers that `kafka-server-start` started."""

from __future__ import annotations

import click

from barnabas_broker.cli.errors import FAILED
from barnabas_broker.cli.kafka import processes
from barnabas_broker.cli.kafka.server_start import KIND
from barnabas_broker.cli.kafka.tool import refused, tool


@tool("kafka-server-stop")
@click.option("--node-id", "--broker-id", "broker", help="Only the broker of this id.")
@refused("--process-role", why="every process is a broker")
def main(broker: str | None) -> None:
    """Ask this user's brokers to end, as Kafka's script does, and return at once."""
    found = [each for each in processes.running(KIND) if broker is None or each.name == broker]
    if not found:
        click.echo("No kafka server to stop")
        raise SystemExit(FAILED)
    for server in found:
        processes.stop(server)
