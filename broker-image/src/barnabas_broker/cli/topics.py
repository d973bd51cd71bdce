"""`barnabas topics`: create, list, describe, alter, delete."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

import click

from barnabas_broker.cli.client import Connection, connection_options, failures
from barnabas_broker.cli.completion import topic_names
from barnabas_broker.cli.errors import Attempts, InputError, attempt
from barnabas_broker.cli.output import (
    cell_text,
    counted,
    done,
    output_option,
    print_json,
    print_table,
    results_option,
)
from barnabas_broker.cli.properties import parse_assignments
from barnabas_kafka.ids import id_as_shown

if TYPE_CHECKING:
    from confluent_kafka.admin import AdminClient, TopicDescription

CONFIG_OPTION = click.option(
    "--config", "configs", multiple=True, metavar="NAME=VALUE", help="A topic setting."
)

# An int32 and an int16 in CreateTopics.
PARTITIONS: Final = click.IntRange(1, (1 << 31) - 1)
REPLICAS: Final = click.IntRange(1, (1 << 15) - 1)


@click.group()
def topics() -> None:
    """Create, list, describe, alter and delete topics."""


@topics.command()
@click.argument("names", nargs=-1, required=True, metavar="TOPIC...")
@click.option("--partitions", type=PARTITIONS, help="How many; the broker's default if not given.")
@click.option(
    "--replication-factor", type=REPLICAS, help="How many copies; the broker's default too."
)
@click.option(
    "--replica-assignment",
    metavar="B:B,B:B,...",
    help="The brokers of each partition: colons between replicas, commas between partitions.",
)
@CONFIG_OPTION
@click.option("--if-not-exists", is_flag=True, help="A topic that exists already is no error.")
@click.option("--validate-only", is_flag=True, help="Have the broker check it, create nothing.")
@results_option
@connection_options
def create(
    names: tuple[str, ...],
    partitions: int | None,
    replication_factor: int | None,
    replica_assignment: str | None,
    configs: tuple[str, ...],
    if_not_exists: bool,
    validate_only: bool,
    connection: Connection,
) -> None:
    """Create topics."""
    from confluent_kafka import KafkaError
    from confluent_kafka.admin import NewTopic

    if replica_assignment and (partitions is not None or replication_factor is not None):
        raise InputError("--replica-assignment says the partitions and replicas already")
    shape: dict[str, Any] = {
        "num_partitions": -1 if partitions is None else partitions,
        "replication_factor": -1 if replication_factor is None else replication_factor,
    }
    if replica_assignment:
        assignment = parse_assignment(replica_assignment)
        shape = {"num_partitions": len(assignment), "replica_assignment": assignment}
    config = parse_assignments(configs, "--config")
    client, _ = connection.admin()
    with failures("cannot create"):
        futures = connection.order(
            client,
            names,
            lambda left: client.create_topics(
                [NewTopic(name, config=config, **shape) for name in left],
                request_timeout=connection.timeout_s,
                validate_only=validate_only,
            ),
        )
    forgive = KafkaError.TOPIC_ALREADY_EXISTS if if_not_exists else None
    with Attempts() as attempts:
        for name, future in futures.items():
            with attempts.one(forgive=forgive):
                connection.wait(f"cannot create topic {name}", future)
                verb = "Could create" if validate_only else "Created"
                done(f"{verb} topic {name}.", {"topic": name, "created": not validate_only})


@topics.command("list")
@click.option("--exclude-internal", is_flag=True, help="Leave out the brokers' own topics.")
@output_option
@connection_options
def list_(exclude_internal: bool, output: str, connection: Connection) -> None:
    """List the topics there are."""
    client, metadata = connection.admin()
    names = sorted(metadata.topics)
    if exclude_internal and names:
        names = [
            topic["name"]
            for topic in describe_topics(connection, client, names)
            if not topic["internal"]
        ]
    if output == "json":
        print_json(names)
    else:
        for name in names:
            click.echo(name)


@topics.command()
@click.argument("names", nargs=-1, metavar="[TOPIC]...", shell_complete=topic_names)
@click.option(
    "--under-replicated-partitions",
    "under_replicated",
    is_flag=True,
    help="Only partitions with a replica that is not in sync.",
)
@click.option(
    "--unavailable-partitions",
    "unavailable",
    is_flag=True,
    help="Only partitions without a leader.",
)
@output_option
@connection_options
def describe(
    names: tuple[str, ...],
    under_replicated: bool,
    unavailable: bool,
    output: str,
    connection: Connection,
) -> None:
    """Show partitions, replicas and settings of topics, of all if none is named.

    What the user may not see is left out and reported: settings need DescribeConfigs on the topic.
    """
    client, metadata = connection.admin()
    with Attempts() as attempts:
        there = list(names) or sorted(metadata.topics)
        described = describe_topics(connection, client, there, attempts)
        shown = [topic["name"] for topic in described]
        configs = topic_configs(connection, client, shown, attempts)
        for topic in described:
            topic["configs"] = configs.get(topic["name"])
            topic["partitions"] = [
                partition
                for partition in topic["partitions"]
                if (not under_replicated or len(partition["isr"]) < len(partition["replicas"]))
                and (not unavailable or partition["leader"] is None)
            ]
        if under_replicated or unavailable:
            described = [topic for topic in described if topic["partitions"]]
        _show(described, output)


def _show(described: Sequence[dict[str, Any]], output: str) -> None:
    if output == "json":
        print_json(described)
        return
    for index, topic in enumerate(described):
        click.echo(("\n" if index else "") + _headline(topic))
        columns = ("partition", "leader", "replicas", "isr")
        print_table(columns, [[row[name] for name in columns] for row in topic["partitions"]])


@topics.command()
@click.argument("name", metavar="TOPIC", shell_complete=topic_names)
@click.option(
    "--partitions", type=PARTITIONS, help="The new number of partitions; it can only grow."
)
@click.option(
    "--replica-assignment",
    metavar="B:B,B:B,...",
    help="The brokers of each new partition.",
)
@CONFIG_OPTION
@click.option(
    "--delete-config",
    "removals",
    multiple=True,
    metavar="NAME",
    help="A setting to return to the broker's default.",
)
@results_option
@connection_options
def alter(
    name: str,
    partitions: int | None,
    replica_assignment: str | None,
    configs: tuple[str, ...],
    removals: tuple[str, ...],
    connection: Connection,
) -> None:
    """Add partitions to a topic, or set and remove its settings."""
    from barnabas_broker.cli.configs import alter_resource, check_settings

    additions = parse_assignments(configs, "--config")
    if partitions is None and not additions and not removals:
        raise InputError("nothing to alter: give --partitions, --config or --delete-config")
    if replica_assignment and partitions is None:
        raise InputError("--replica-assignment needs --partitions, the new number in all")
    client, _ = connection.admin()
    if partitions is not None:
        assignment = parse_assignment(replica_assignment) if replica_assignment else None
        add_partitions(connection, client, name, partitions, assignment)
        result: dict[str, Any] = {"topic": name, "partitions": partitions}
        done(f"Topic {name} has {counted(partitions, 'partition')} now.", result)
    if additions or removals:
        check_settings(connection, client, ("topics", name), removals)
        alter_resource(connection, client, ("topics", name), additions, removals)
        result = {"topic": name, "set": additions, "deleted": list(removals)}
        done(f"Altered the settings of topic {name}.", result)


@topics.command()
@click.argument("names", nargs=-1, required=True, metavar="TOPIC...", shell_complete=topic_names)
@click.option("--if-exists", is_flag=True, help="A topic that does not exist is no error.")
@results_option
@connection_options
def delete(names: tuple[str, ...], if_exists: bool, connection: Connection) -> None:
    """Delete topics and everything in them."""
    from confluent_kafka import KafkaError

    client, _ = connection.admin()
    with failures("cannot delete"):
        futures = connection.order(
            client,
            names,
            lambda left: client.delete_topics(left, request_timeout=connection.timeout_s),
        )
    forgive = KafkaError.UNKNOWN_TOPIC_OR_PART if if_exists else None
    with Attempts() as attempts:
        for name, future in futures.items():
            with attempts.one(forgive=forgive):
                connection.wait(f"cannot delete topic {name}", future)
                done(f"Deleted topic {name}.", {"topic": name, "deleted": True})


def describe_topics(
    connection: Connection,
    client: AdminClient,
    names: Sequence[str],
    attempts: Attempts | None = None,
) -> list[dict[str, Any]]:
    """Topics as plain values, without those that `attempts` has the failure of.

    Without `attempts`: `CommandError` naming the first that is not there.
    """
    from confluent_kafka import TopicCollection

    if not names:
        return []
    with failures("cannot describe"):
        futures = client.describe_topics(
            TopicCollection(list(names)), request_timeout=connection.timeout_s
        )
    described = []
    for name, future in futures.items():
        with attempt(attempts):
            described.append(_as_values(connection.wait(f"cannot describe topic {name}", future)))
    return described


def _as_values(topic: TopicDescription) -> dict[str, Any]:
    return {
        "name": topic.name,
        "id": id_as_shown(str(topic.topic_id)),
        "internal": topic.is_internal,
        "partitions": [
            {
                "partition": partition.id,
                "leader": partition.leader.id if partition.leader else None,
                "replicas": [node.id for node in partition.replicas],
                "isr": [node.id for node in partition.isr],
            }
            for partition in topic.partitions
        ],
    }


def topic_configs(
    connection: Connection,
    client: AdminClient,
    names: Sequence[str],
    attempts: Attempts | None = None,
) -> dict[str, dict[str, str | None]]:
    """The settings each topic has of its own; as `describe_topics` where they are not shown."""
    from confluent_kafka.admin import ConfigResource, ConfigSource, ResourceType

    if not names:
        return {}
    resources = [ConfigResource(ResourceType.TOPIC, name) for name in names]
    with failures("cannot describe"):
        futures = client.describe_configs(resources, request_timeout=connection.timeout_s)
    configs = {}
    for resource, future in futures.items():
        with attempt(attempts):
            entries = connection.wait(f"cannot describe the settings of {resource.name}", future)
            configs[resource.name] = {
                entry.name: entry.value
                for entry in entries.values()
                if entry.source == ConfigSource.DYNAMIC_TOPIC_CONFIG.value
            }
    return configs


def _headline(topic: dict[str, Any]) -> str:
    """What is true of the topic as a whole, on one line."""
    partitions = topic["partitions"]
    parts = [f"topic {topic['name']}", f"id {topic['id']}", f"partitions {len(partitions)}"]
    if partitions:
        parts.append(f"replicas {max(len(partition['replicas']) for partition in partitions)}")
    if topic["configs"] is None:
        parts.append("settings unknown")
    elif topic["configs"]:
        pairs = (f"{name}={value}" for name, value in sorted(topic["configs"].items()))
        parts.append(f"settings {cell_text(list(pairs))}")
    return "  ".join(parts)


def add_partitions(
    connection: Connection,
    client: AdminClient,
    name: str,
    partitions: int,
    assignment: list[list[int]] | None,
) -> None:
    """Have the topic grow to `partitions` in all."""
    from confluent_kafka.admin import NewPartitions

    extra = {} if assignment is None else {"replica_assignment": assignment}
    what = f"cannot add partitions to topic {name}"
    with failures(what):
        wanted = [NewPartitions(name, partitions, **extra)]
        futures = connection.order(
            client,
            [name],
            lambda _: client.create_partitions(wanted, request_timeout=connection.timeout_s),
        )
    connection.wait(what, futures[name])


def parse_assignment(text: str) -> list[list[int]]:
    """`0:1,1:0` as the brokers of each partition."""
    try:
        return [[int(broker) for broker in part.split(":")] for part in text.split(",")]
    except ValueError:
        raise InputError(
            f"--replica-assignment takes broker ids like 0:1,1:0, not {text}"
        ) from None
