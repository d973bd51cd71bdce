"""`barnabas cluster-id`: which cluster this is."""

from __future__ import annotations

import click

from barnabas_broker.cli.client import Connection, connection_options, failures
from barnabas_broker.cli.output import output_option, print_json


@click.command(name="cluster-id")
@output_option(plain=("text",))
@connection_options
def cluster_id(connection: Connection, output: str) -> None:
    """Print the id of the cluster."""
    client, _ = connection.admin()
    with failures("cannot describe the cluster"):
        future = client.describe_cluster(request_timeout=connection.timeout_s)
    found = connection.wait("cannot describe the cluster", future).cluster_id
    if output == "json":
        print_json({"cluster_id": found})
    else:
        click.echo(found)
