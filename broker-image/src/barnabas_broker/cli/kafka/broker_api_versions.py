"""`kafka-broker-api-versions`: which requests each broker answers, in which versions."""

from __future__ import annotations

import click

from barnabas_broker.cli.client import Connection
from barnabas_broker.cli.kafka.tool import connected, tool
from barnabas_broker.cli.wire import Wire, broker_addresses
from barnabas_kafka.protocol import registry
from barnabas_kafka.protocol.registry import ApiKey


@tool("kafka-broker-api-versions")
@connected()
def main(connection: Connection) -> None:
    """Print the versions every broker supports, and which of them this program would use."""
    for broker, address in sorted(broker_addresses(connection).items()):
        with Wire(address, connection.timeout_s) as wire:
            lines = [_line(key, *versions) for key, versions in sorted(wire.versions.items())]
        click.echo(f"{address[0]}:{address[1]} (id: {broker} rack: null) -> (")
        click.echo("\t" + ",\n\t".join(lines))
        click.echo(")")


def _line(key: int, low: int, high: int) -> str:
    known = key in ApiKey.__members__.values()
    name = "".join(word.title() for word in ApiKey(key).name.split("_")) if known else "UNKNOWN"
    shown = str(low) if low == high else f"{low} to {high}"
    if not known:
        return f"{name}({key}): {shown}"
    usable = min(high, registry.api(key).request.versions.max)
    return f"{name}({key}): {shown} [usable: {usable if usable >= low else 'none'}]"
