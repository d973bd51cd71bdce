"""`zookeeper-server-stop`: end the servers that `zookeeper-server-start` started."""

from __future__ import annotations

import click

from barnabas_broker.cli.errors import FAILED
from barnabas_broker.cli.kafka import processes
from barnabas_broker.cli.kafka.tool import tool
from barnabas_broker.cli.kafka.zookeeper_start import KIND


@tool("zookeeper-server-stop")
def main() -> None:
    """Ask this user's ZooKeeper servers to end, and return at once."""
    found = processes.running(KIND)
    if not found:
        click.echo("No zookeeper server to stop")
        raise SystemExit(FAILED)
    for server in found:
        processes.stop(server)
