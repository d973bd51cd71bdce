"""`barnabas configs`: the settings of topics and brokers as the cluster sees them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import click

from barnabas_broker.cli.client import Connection, connection_options, failures
from barnabas_broker.cli.errors import Attempts, CommandError, InputError, similar
from barnabas_broker.cli.output import done, output_option, print_json, print_table, results_option
from barnabas_broker.cli.properties import parse_assignments

if TYPE_CHECKING:
    from confluent_kafka.admin import AdminClient, ClusterMetadata, ConfigEntry, ConfigResource

# What was set for these entities while the cluster ran, as opposed to a file, a default, or for a
# topic the settings of its broker.
OWN_SOURCES = {
    "topics": {"DYNAMIC_TOPIC"},
    "brokers": {"DYNAMIC_BROKER", "DYNAMIC_DEFAULT_BROKER"},
}


def entity_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options that say whose settings are meant."""
    kind = click.option(
        "--entity-type",
        type=click.Choice(["topics", "brokers"]),
        required=True,
        help="Whose settings.",
    )
    name = click.option("--entity-name", help="The topic's name or the broker's id.")
    return kind(name(command))


@click.group()
def configs() -> None:
    """Describe and alter settings of topics and brokers."""


@configs.command()
@entity_options
@click.option("--all", "everything", is_flag=True, help="Defaults and the file's settings too.")
@output_option
@connection_options
def describe(
    entity_type: str,
    entity_name: str | None,
    everything: bool,
    output: str,
    connection: Connection,
) -> None:
    """Show the settings of one topic or broker, or of all of them."""
    client, metadata = connection.admin()
    there = metadata.topics if entity_type == "topics" else metadata.brokers
    names = [entity_name] if entity_name is not None else sorted(map(str, there))
    if entity_name is not None:
        check_entity(metadata, (entity_type, entity_name))
    rows: list[dict[str, Any]] = []
    with Attempts() as attempts:
        for name in names:
            with attempts.one():
                described = describe_resource(connection, client, (entity_type, name))
                rows += [
                    row
                    for row in described
                    if everything or row["source"] in OWN_SOURCES[entity_type]
                ]
        if rows or not attempts.failed:
            _show(rows, (entity_type, entity_name), output)


def _show(rows: list[dict[str, Any]], entity: tuple[str, str | None], output: str) -> None:
    entity_type, entity_name = entity
    if output == "json":
        print_json(rows)
    elif rows:
        columns = ["name", "value", "source", "read_only", "default"]
        if entity_name is None:
            columns.insert(0, "entity")
        headings = [column.replace("_", " ") for column in columns]
        print_table(headings, [[row[column] for column in columns] for row in rows])
    else:
        scope = (
            f"{entity_type} {entity_name}"
            if entity_name is not None
            else f"any of the {entity_type}"
        )
        click.echo(f"Nothing is set dynamically for {scope}; --all shows what is in effect.")


@configs.command()
@entity_options
@click.option("--add", "additions", multiple=True, metavar="NAME=VALUE", help="Set it.")
@click.option("--delete", "removals", multiple=True, metavar="NAME", help="Return to the default.")
@click.option("--append", "appends", multiple=True, metavar="NAME=ITEM", help="Add to a list.")
@click.option(
    "--subtract", "subtracts", multiple=True, metavar="NAME=ITEM", help="Take off a list."
)
@click.option("--validate-only", is_flag=True, help="Have the broker check it, alter nothing.")
@results_option
@connection_options
def alter(
    entity_type: str,
    entity_name: str | None,
    additions: tuple[str, ...],
    removals: tuple[str, ...],
    appends: tuple[str, ...],
    subtracts: tuple[str, ...],
    validate_only: bool,
    connection: Connection,
) -> None:
    """Set and remove settings of one topic or broker while it runs."""
    if entity_name is None:
        raise InputError("--entity-name is needed to alter settings")
    if not (additions or removals or appends or subtracts):
        raise InputError("nothing to alter: give --add, --delete, --append or --subtract")
    client, metadata = connection.admin()
    check_entity(metadata, (entity_type, entity_name))
    check_settings(connection, client, (entity_type, entity_name), removals)
    alter_resource(
        connection,
        client,
        (entity_type, entity_name),
        parse_assignments(additions, "--add"),
        removals,
        appends=parse_assignments(appends, "--append"),
        subtracts=parse_assignments(subtracts, "--subtract"),
        validate_only=validate_only,
    )
    verb = "Could alter" if validate_only else "Altered"
    result = {"type": entity_type, "name": entity_name, "altered": not validate_only}
    done(f"{verb} the settings of {entity_type} {entity_name}.", result)


def check_entity(metadata: ClusterMetadata, entity: tuple[str, str]) -> None:
    """CommandError for a broker that is not there: its settings are asked of itself, in vain."""
    kind, name = entity
    if kind != "brokers":
        return
    if not name.isdecimal():
        raise InputError(f"--entity-name {name}: the name of a broker is its id, a number")
    if int(name) not in metadata.brokers:
        live = ", ".join(map(str, sorted(metadata.brokers)))
        raise CommandError(f"there is no broker {name}, or it does not run; there are {live}")


def check_settings(
    connection: Connection, client: AdminClient, entity: tuple[str, str], names: Sequence[str]
) -> None:
    """CommandError for a name to remove that is no setting: brokers take any for removed."""
    known = [row["name"] for row in describe_resource(connection, client, entity)] if names else []
    for name in names:
        if name not in known:
            raise CommandError(f"{name}: not a setting of {entity[0]}{similar(name, known)}")


def alter_resource(
    connection: Connection,
    client: AdminClient,
    entity: tuple[str, str],
    additions: Mapping[str, str],
    removals: Sequence[str],
    *,
    appends: Mapping[str, str] | None = None,
    subtracts: Mapping[str, str] | None = None,
    validate_only: bool = False,
) -> None:
    """One incremental change to the settings of one entity (KIP-339): all of it or nothing."""
    from confluent_kafka.admin import AlterConfigOpType, ConfigEntry

    operations = [
        *((AlterConfigOpType.SET, name, value) for name, value in additions.items()),
        *((AlterConfigOpType.DELETE, name, None) for name in removals),
        *((AlterConfigOpType.APPEND, name, value) for name, value in (appends or {}).items()),
        *((AlterConfigOpType.SUBTRACT, name, value) for name, value in (subtracts or {}).items()),
    ]
    what = f"cannot alter the settings of {entity[0]} {entity[1]}"
    with failures(what):
        resource = _resource(entity)
        for operation, name, value in operations:
            resource.add_incremental_config(
                ConfigEntry(name, value, incremental_operation=operation)
            )
        futures = client.incremental_alter_configs(
            [resource], request_timeout=connection.timeout_s, validate_only=validate_only
        )
    for future in futures.values():
        connection.wait(what, future)


def describe_resource(
    connection: Connection, client: AdminClient, entity: tuple[str, str]
) -> list[dict[str, Any]]:
    """The settings of one entity as rows, by name."""
    what = f"cannot describe the settings of {entity[0]} {entity[1]}"
    with failures(what):
        resource = _resource(entity)
        futures = client.describe_configs([resource], request_timeout=connection.timeout_s)
    (future,) = futures.values()
    entries: dict[str, ConfigEntry] = connection.wait(what, future)
    return [{"entity": entity[1], **_row(entries[name])} for name in sorted(entries)]


def _row(entry: ConfigEntry) -> dict[str, Any]:
    return {
        "name": entry.name,
        "value": "(hidden)" if entry.is_sensitive else entry.value,
        "source": source_name(entry.source),
        "default": entry.is_default,
        "read_only": entry.is_read_only,
        "sensitive": entry.is_sensitive,
        "synonyms": [
            {
                "name": synonym.name,
                "value": synonym.value,
                "source": source_name(synonym.source),
            }
            for synonym in entry.synonyms.values()
        ],
    }


# The protocol's numbers; librdkafka knows those up to 6.
SOURCES = (
    "UNKNOWN", "DYNAMIC_TOPIC", "DYNAMIC_BROKER", "DYNAMIC_DEFAULT_BROKER", "STATIC_BROKER",
    "DEFAULT", "DYNAMIC_BROKER_LOGGER", "CLIENT_METRICS", "GROUP",
)  # fmt: skip


def source_name(source: Any) -> str:
    """Kafka's name of a config source; the library leaves it a number."""
    number = int(getattr(source, "value", source))
    return SOURCES[number] if 0 <= number < len(SOURCES) else SOURCES[0]


def _resource(entity: tuple[str, str]) -> ConfigResource:
    from confluent_kafka.admin import ConfigResource, ResourceType

    kind = ResourceType.TOPIC if entity[0] == "topics" else ResourceType.BROKER
    return ConfigResource(kind, entity[1])
