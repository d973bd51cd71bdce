"""`barnabas cluster-id`: which cluster this is."""

from __future__ import annotations

import click

from barnabas_broker.cli.client import Connection, connection_options, failures


@click.command(name="cluster-id")
@connection_options
def cluster_id(connection: Connection) -> None:
    """Print the id of the cluster."""
    client, _ = connection.admin()
    with failures("cannot describe the cluster"):
        future = client.describe_cluster(request_timeout=connection.timeout_s)
    click.echo(connection.wait("cannot describe the cluster", future).cluster_id)
