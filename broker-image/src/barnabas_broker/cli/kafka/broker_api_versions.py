"""`kafka-broker-api-versions`: which requests each broker answers, in which versions."""

from __future__ import annotations

import click

from barnabas_broker.cli.admin import AdminSession, api_versions_request
from barnabas_broker.cli.client import Connection
from barnabas_broker.cli.errors import CommandError
from barnabas_broker.cli.kafka.tool import connected, tool
from barnabas_kafka.client import OneBroker
from barnabas_kafka.protocol import registry
from barnabas_kafka.protocol.messages.api_versions import ApiVersionsResponse
from barnabas_kafka.protocol.registry import ApiKey


@tool("kafka-broker-api-versions")
@connected()
def main(connection: Connection) -> None:
    """Print the versions every broker supports, and those that this program would use."""
    with AdminSession(connection) as session:
        for broker in session.brokers().values():
            rack = broker.rack or "null"
            named = f"{broker.host}:{broker.port} (id: {broker.id} rack: {rack})"
            try:
                found = session.ask(
                    OneBroker(broker.id), api_versions_request(), ApiVersionsResponse
                ).api_keys
            except CommandError as error:
                click.echo(f"{named} -> ERROR: {error.message}")
                continue
            lines = [
                _line(each.api_key, each.min_version, each.max_version)
                for each in sorted(found, key=lambda each: each.api_key)
            ]
            click.echo(f"{named} -> (")
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
