"""`kafka-configs`: describe and alter settings, of topics and brokers, and quotas of clients."""

from __future__ import annotations

import re
from itertools import zip_longest
from pathlib import Path
from typing import Any, NamedTuple

import click

from barnabas_broker.cli.admin import AdminSession
from barnabas_broker.cli.client import Connection
from barnabas_broker.cli.configs import (
    alter_resource,
    check_entity,
    describe_resource,
    source_name,
)
from barnabas_broker.cli.errors import CommandError
from barnabas_broker.cli.kafka.answers import reported_as
from barnabas_broker.cli.kafka.tool import Tool, connected, refused, tool
from barnabas_broker.cli.properties import parse_assignments
from barnabas_kafka.client import OneBroker
from barnabas_kafka.errors import ErrorCode
from barnabas_kafka.protocol.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
    DescribeConfigsResourceResult,
    DescribeConfigsResponse,
)
from barnabas_kafka.protocol.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)

DEFAULT = ""
SET, DELETE = 0, 1


class Kind(NamedTuple):
    """What one entity is called, its number in the protocol, and the source of its own settings."""

    singular: str
    number: int
    source: str


KINDS = {
    "topics": Kind("topic", 2, "DYNAMIC_TOPIC"),
    "brokers": Kind("broker", 4, "DYNAMIC_BROKER"),
    "broker-loggers": Kind("broker-logger", 8, "DYNAMIC_BROKER_LOGGER"),
}
# The source of what was set for all brokers.
FOR_ALL = "DYNAMIC_DEFAULT_BROKER"
USERS = "users"
QUOTA_TYPES = (USERS, "clients", "ips")
REFUSED_TYPES = ("client-metrics", "groups")
#: Options that name an entity, and those that mean the default of a type.
NAMING = {
    "topic": "topics", "client": "clients", "user": USERS, "broker": "brokers",
    "broker_logger": "broker-loggers", "ip": "ips",
}  # fmt: skip
DEFAULTS = {
    "client_defaults": "clients", "user_defaults": USERS, "broker_defaults": "brokers",
    "ip_defaults": "ips",
}  # fmt: skip


class _Configs(Tool):
    """`--entity-name` and `--entity-default` belong to the types in the order they are given."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Read a default as an empty name."""
        is_default = ("--entity-default", "-entity-default")
        return super().parse_args(
            ctx, [f"--entity-name={DEFAULT}" if word in is_default else word for word in args]
        )


@tool("kafka-configs", cls=_Configs)
@click.option("--describe", is_flag=True)
@click.option("--alter", is_flag=True)
@click.option("--all", "everything", is_flag=True, help="Defaults and the file's settings too.")
@click.option(
    "--entity-type",
    type=click.Choice([*KINDS, *QUOTA_TYPES, *REFUSED_TYPES]),
    multiple=True,
    help="Users and clients may be given together.",
)
@click.option("--entity-name", multiple=True, help="One for each type, in their order.")
@click.option(
    "--entity-default",
    is_flag=True,
    expose_value=False,
    help="In place of a name: what holds for all without settings of their own.",
)
@click.option("--topic", help="The same as --entity-type topics --entity-name.")
@click.option("--broker", help="The same as --entity-type brokers --entity-name.")
@click.option("--user", help="The same as --entity-type users --entity-name.")
@click.option("--client", help="The same as --entity-type clients --entity-name.")
@click.option("--ip", help="The same as --entity-type ips --entity-name.")
@click.option("--broker-defaults", is_flag=True)
@click.option("--user-defaults", is_flag=True)
@click.option("--client-defaults", is_flag=True)
@click.option("--ip-defaults", is_flag=True)
@click.option("--broker-logger", metavar="BROKER")
@click.option("--add-config", metavar="NAME=VALUE,NAME=[A,B]")
@click.option("--add-config-file", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option("--delete-config", metavar="NAME,NAME")
@click.option("--force", is_flag=True, hidden=True)
@refused("--group", "--client-metrics", "--bootstrap-controller",
         why="settings of topics, brokers, broker-loggers, users, clients and ips are")  # fmt: skip
@connected(zookeeper=True, without_brokers=lambda options: list(_entity(options)) == [USERS])
def main(
    connection: Connection | None,
    zookeeper: str | None,
    zookeeper_config: Path | None,
    **options: Any,
) -> None:
    """Describe and alter settings while brokers run; users with --zookeeper before they do."""
    if options["describe"] == options["alter"]:
        raise click.UsageError("Command must include exactly one action: --describe, --alter")
    entity = _entity(options)
    with reported_as("Error while executing config command with args: "):
        if connection is None:
            _users_in_zookeeper((zookeeper or "", zookeeper_config), entity[USERS], options)
        elif entity.keys() <= set(QUOTA_TYPES):
            _quotas(connection, entity, options)
        else:
            [(kind, name)] = entity.items()
            cluster = _Cluster(connection)
            if options["alter"]:
                if name is None:
                    raise click.UsageError("--alter needs --entity-name or --entity-default.")
                _alter(cluster, kind, name, options)
            else:
                _describe(cluster, kind, name, everything=options["everything"])


def _users_in_zookeeper(
    zookeeper: tuple[str, Path | None], name: str | None, options: dict[str, Any]
) -> None:
    from barnabas_broker.cli.kafka import user_scram

    if options["describe"]:
        user_scram.describe_in_zookeeper(*zookeeper, name)
        return
    if not name:
        raise click.UsageError("--alter needs --entity-name.")
    change = user_scram.read_change(name, *_changes(options))
    user_scram.alter_in_zookeeper(*zookeeper, change)


def _quotas(connection: Connection, entity: dict[str, str | None], options: dict[str, Any]) -> None:
    """Quotas of users, clients and addresses; and of users their SCRAM credentials."""
    from barnabas_broker.cli.kafka import client_quotas, user_scram

    user = entity.get(USERS)
    only_user = list(entity) == [USERS]
    if options["describe"]:
        client_quotas.describe(connection, entity)
        if only_user and user != DEFAULT:
            user_scram.describe_through_brokers(connection, user)
        return
    if None in entity.values():
        raise click.UsageError("--alter needs --entity-name or --entity-default for each type.")
    additions, removals = _changes(options)
    names = [*additions, *removals]
    are_quotas = [name in client_quotas.CLIENT_QUOTAS for name in names]
    if not only_user or all(are_quotas):
        client_quotas.alter(connection, entity, additions, removals)
    elif any(are_quotas):
        raise CommandError(
            "Cannot alter both quota and SCRAM credential configs simultaneously for 'users' using"
            " --bootstrap-server."
        )
    elif not user:
        raise CommandError(
            "The use of --entity-default or --user-defaults is not allowed with User SCRAM "
            "Credentials using --bootstrap-server."
        )
    else:
        change = user_scram.read_change(user, additions, removals)
        user_scram.alter_through_brokers(connection, change)


def _entity(options: dict[str, Any]) -> dict[str, str | None]:
    """Types with their names: None means all names, "" the default entity."""
    types, names = _given(options)
    if not types:
        raise click.UsageError("At least one of --entity-type, --topic, --broker is needed.")
    if unknown := [kind for kind in types if kind in REFUSED_TYPES]:
        known = ", ".join([*KINDS, *QUOTA_TYPES])
        raise click.UsageError(f"--entity-type {unknown[0]} is not supported: {known} are")
    if len(types) > 1 and sorted(types) != ["clients", USERS]:
        raise click.UsageError("Only 'users' and 'clients' entity types may be specified together")
    if len(names) > len(types):
        raise click.UsageError("More entity names specified than entity types")
    entity = dict(zip_longest(types, names))
    for kind, name in entity.items():
        if name == DEFAULT and kind not in ("brokers", *QUOTA_TYPES):
            raise click.UsageError(f"--entity-default is not supported for {kind}")
    return entity


def _given(options: dict[str, Any]) -> tuple[list[str], list[str]]:
    """All types that are given, and all names; of those that are given in one, both."""
    types, names = list(options["entity_type"]), list(options["entity_name"])
    in_one = [(kind, options[option]) for option, kind in NAMING.items()]
    in_one += [(kind, DEFAULT) for option, kind in DEFAULTS.items() if options[option]]
    for kind, name in in_one:
        if name is not None:
            types.append(kind)
            names.append(str(name))
    return types, names


class _Cluster:
    """Asks through librdkafka what it can ask, and through the admin client what it cannot."""

    def __init__(self, connection: Connection) -> None:
        self.connection = connection
        self.client, self.metadata = connection.admin()

    def describe(self, kind: str, name: str) -> list[dict[str, Any]]:
        """The settings of one entity in the rows of `barnabas configs describe`."""
        if kind != "broker-loggers" and name != DEFAULT:
            check_entity(self.metadata, (kind, name))
            return describe_resource(self.connection, self.client, (kind, name))
        resource = DescribeConfigsResource(
            resource_type=KINDS[kind].number, resource_name=name, configuration_keys=None
        )
        request = DescribeConfigsRequest(resources=[resource], include_synonyms=True)
        with AdminSession(self.connection) as session:
            response = session.ask(_broker(session, name), request, DescribeConfigsResponse)
        (result,) = response.results
        _succeeded(result.error_code, result.error_message)
        return [_row(config) for config in sorted(result.configs, key=lambda each: each.name)]

    def alter(self, kind: str, name: str, additions: dict[str, str], removals: list[str]) -> None:
        """One change, all of it or nothing."""
        if kind != "broker-loggers" and name != DEFAULT:
            check_entity(self.metadata, (kind, name))
            alter_resource(self.connection, self.client, (kind, name), additions, removals)
            return
        changes = [AlterableConfig(name=n, config_operation=SET, value=v)
                   for n, v in additions.items()]  # fmt: skip
        changes += [AlterableConfig(name=n, config_operation=DELETE, value=None) for n in removals]
        resource = AlterConfigsResource(
            resource_type=KINDS[kind].number, resource_name=name, configs=changes
        )
        request = IncrementalAlterConfigsRequest(resources=[resource])
        with AdminSession(self.connection) as session:
            response = session.ask(_broker(session, name), request, IncrementalAlterConfigsResponse)
        (result,) = response.responses
        _succeeded(result.error_code, result.error_message)


def _broker(session: AdminSession, name: str) -> OneBroker:
    """The broker of that name; the first one for settings that all brokers share."""
    live = session.brokers()
    broker = min(live) if name == DEFAULT else int(name) if name.isdigit() else -1
    if broker not in live:
        raise CommandError(f"there is no broker {name}")
    return OneBroker(broker)


def _describe(cluster: _Cluster, kind: str, name: str | None, *, everything: bool) -> None:
    if name is not None:
        names = [name]
    elif kind == "topics":
        names = sorted(cluster.metadata.topics)
    else:
        names = sorted(map(str, cluster.metadata.brokers)) + ([DEFAULT] * (kind == "brokers"))
    for each in names:
        source = FOR_ALL if each == DEFAULT else KINDS[kind].source
        rows = cluster.describe(kind, each)
        if each == DEFAULT:
            click.echo("Default configs for brokers in the cluster are:")
        else:
            scope = "All" if everything else "Dynamic"
            click.echo(f"{scope} configs for {KINDS[kind].singular} {each} are:")
        for row in rows:
            if row["source"] == source or (everything and each != DEFAULT):
                click.echo(_line(row))


def _line(row: dict[str, Any]) -> str:
    value = "null" if row["sensitive"] or row["value"] is None else row["value"]
    synonyms = ", ".join(
        f"{each['source']}_CONFIG:{each['name']}={'null' if row['sensitive'] else each['value']}"
        for each in row["synonyms"]
    )
    sensitive = str(row["sensitive"]).lower()
    return f"  {row['name']}={value} sensitive={sensitive} synonyms={{{synonyms}}}"


def _alter(cluster: _Cluster, kind: str, name: str, options: dict[str, Any]) -> None:
    cluster.alter(kind, name, *_changes(options))
    if name == DEFAULT:
        click.echo("Completed updating default config for brokers in the cluster.")
    else:
        click.echo(f"Completed updating config for {KINDS[kind].singular} {name}.")


def _changes(options: dict[str, Any]) -> tuple[dict[str, str], list[str]]:
    """What to set, and what to reset."""
    additions: dict[str, str] = {}
    if options["add_config_file"]:
        from barnabas_kafka.settings.properties import parse_properties

        path = options["add_config_file"]
        additions |= parse_properties(path.read_bytes(), origin=str(path))
    if options["add_config"]:
        additions |= parse_assignments(_split(options["add_config"]), "--add-config")
    removals = [each.strip() for each in (options["delete_config"] or "").split(",") if each]
    if not additions and not removals:
        raise click.UsageError(
            "At least one of --add-config, --add-config-file, --delete-config must be specified "
            "with --alter"
        )
    # Lists are written in square brackets, since commas separate the settings.
    additions = {key: re.sub(r"^\[(.*)\]$", r"\1", value) for key, value in additions.items()}
    return additions, removals


def _split(text: str) -> list[str]:
    """`a=1,b=[x,y]` at the commas outside of brackets."""
    return re.split(r",(?![^\[\]]*\])", text)


def _row(config: DescribeConfigsResourceResult) -> dict[str, Any]:
    return {
        "name": config.name,
        "value": config.value,
        "source": source_name(config.config_source),
        "sensitive": config.is_sensitive,
        "synonyms": [
            {"name": each.name, "value": each.value, "source": source_name(each.source)}
            for each in config.synonyms
        ],
    }


def _succeeded(code: int, message: str | None) -> None:
    if code != ErrorCode.NONE:
        raise CommandError(f"{message or ErrorCode(code).name}", code=code)
