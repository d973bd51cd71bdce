"""`kafka-topics`: create, list, describe, alter and delete topics."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import click

from barnabas_broker.cli.client import Connection, failures
from barnabas_broker.cli.errors import CommandError
from barnabas_broker.cli.kafka.answers import reported_as
from barnabas_broker.cli.kafka.tool import connected, ignored_words, refused, tool
from barnabas_broker.cli.properties import parse_assignments
from barnabas_broker.cli.topics import (
    PARTITIONS,
    REPLICAS,
    add_partitions,
    describe_topics,
    parse_assignment,
    topic_configs,
)

if TYPE_CHECKING:
    from confluent_kafka.admin import AdminClient

ACTIONS = ("create", "list", "describe", "alter", "delete")
COLLISIONS = (
    "WARNING: Due to limitations in metric names, topics with a period ('.') or underscore ('_') "
    "could collide. To avoid issues it is best to use either, but not both."
)
GROWING = (
    "WARNING: If partitions are increased for a topic that has a key, the partition logic or "
    "ordering of the messages will be affected\nAdding partitions succeeded!"
)
ALTERING = (
    "WARNING: Altering topic configuration from this script has been deprecated and may be "
    "removed in future releases.\n"
    "         Going forward, please use kafka-configs.sh for this functionality"
)
MARKED = (
    "Topic {} is marked for deletion.\n"
    "Note: This will have no impact if delete.topic.enable is not set to true."
)


@tool("kafka-topics")
@click.argument("words", nargs=-1)
@click.option("--create", is_flag=True, help="Create a topic.")
@click.option("--list", "list_", is_flag=True, help="List the names of all topics.")
@click.option("--describe", is_flag=True, help="Show partitions and settings.")
@click.option("--alter", is_flag=True, help="Add partitions; with --zookeeper settings too.")
@click.option("--delete", is_flag=True, help="Delete a topic and everything in it.")
@click.option("--topic", help="The name; a regular expression but for --create.")
@click.option("--partitions", type=click.IntRange(max=PARTITIONS.max))
@click.option("--replication-factor", type=int)
@click.option("--replica-assignment", metavar="B:B,B:B,...")
@click.option("--config", "configs", multiple=True, metavar="NAME=VALUE")
@click.option("--delete-config", "removals", multiple=True, metavar="NAME")
@click.option("--if-exists", is_flag=True)
@click.option("--if-not-exists", is_flag=True)
@click.option("--exclude-internal", is_flag=True, help="Leave out the brokers' own topics.")
@click.option("--under-replicated-partitions", is_flag=True)
@click.option("--unavailable-partitions", is_flag=True)
@click.option(
    "--topics-with-overrides", is_flag=True, help="Only topics with settings of their own."
)
@click.option("--disable-rack-aware", is_flag=True, hidden=True)
@click.option("--force", is_flag=True, hidden=True)
@refused(
    "--at-min-isr-partitions", "--under-min-isr-partitions",
    why="--under-replicated-partitions and --unavailable-partitions are",
)  # fmt: skip
@refused("--topic-id", why="name the topic with --topic")
@refused("--partition-size-limit-per-response", why="answers are not paged")
@connected(zookeeper=True)
def main(
    words: tuple[str, ...], connection: Connection, zookeeper: str | None, **options: Any
) -> None:
    """Create, list, describe, alter and delete topics."""
    ignored_words(words)
    options["list"] = options.pop("list_")
    chosen = [action for action in ACTIONS if options[action]]
    if len(chosen) != 1:
        raise click.UsageError(
            "Command must include exactly one action: --list, --describe, --create, --alter or "
            "--delete"
        )
    if chosen[0] in ("create", "alter", "delete") and not options["topic"]:
        raise click.UsageError('Missing required argument "[topic]"')
    if chosen[0] == "alter" and (options["configs"] or options["removals"]) and not zookeeper:
        raise click.UsageError(
            "--config and --delete-config cannot be used with --alter: type kafka-configs "
            "--bootstrap-server host:port --entity-type topics --entity-name "
            f"{options['topic']} --alter --add-config NAME=VALUE"
        )
    options["zookeeper"] = bool(zookeeper)
    with reported_as("Error while executing topic command : "):
        client, metadata = connection.admin()
        if chosen[0] == "create":
            _create(connection, client, options)
            return
        names = _matching(options, sorted(metadata.topics))
        _ON_NAMES[chosen[0]](connection, client, names, options)


def _create(connection: Connection, client: AdminClient, options: dict[str, Any]) -> None:
    from confluent_kafka import KafkaError
    from confluent_kafka.admin import NewTopic

    name = options["topic"]
    if "." in name or "_" in name:
        click.echo(COLLISIONS)
    count, factor = options["partitions"], options["replication_factor"]
    if factor is not None and not 1 <= factor <= REPLICAS.max:
        text = f"The replication factor must be between 1 and {REPLICAS.max} inclusive"
        raise CommandError(text)
    if count is not None and count < 1:
        raise CommandError("The partitions must be greater than 0")
    shape: dict[str, Any] = {
        "num_partitions": -1 if count is None else count,
        "replication_factor": -1 if factor is None else factor,
    }
    if options["replica_assignment"]:
        assignment = parse_assignment(options["replica_assignment"])
        shape = {"num_partitions": len(assignment), "replica_assignment": assignment}
    with failures("the topic is refused"):
        wanted = [NewTopic(name, config=parse_assignments(options["configs"], "--config"), **shape)]
        futures = connection.order(
            client,
            [name],
            lambda _: client.create_topics(wanted, request_timeout=connection.timeout_s),
        )
    try:
        connection.answer(futures[name])
    except CommandError as error:
        if not (options["if_not_exists"] and error.code == KafkaError.TOPIC_ALREADY_EXISTS):
            raise
    else:
        click.echo(f"Created topic {name}.")


def _matching(options: dict[str, Any], there: Sequence[str]) -> list[str]:
    """The topics that are meant; at least one unless all are, or --if-exists."""
    pattern = options["topic"]
    if pattern is None:
        found = list(there)
    else:
        # Commas are alternatives; spaces and quotes around are forgiven (Kafka's IncludeList).
        pattern = pattern.strip().replace(",", "|").replace(" ", "").strip("\"'")
        try:
            found = [name for name in there if re.fullmatch(pattern, name)]
        except re.error as error:
            raise CommandError(f"{pattern} is an invalid regex: {error}") from None
        if not found and not options["if_exists"] and not options["list"]:
            raise CommandError(f"Topic '{options['topic']}' does not exist as expected")
    if options["exclude_internal"]:
        found = [
            name for name in found if name not in ("__consumer_offsets", "__transaction_state")
        ]
    return found


def _list(_: Connection, __: AdminClient, names: list[str], ___: dict[str, Any]) -> None:
    for name in names:
        click.echo(name)


def _describe(
    connection: Connection, client: AdminClient, names: list[str], options: dict[str, Any]
) -> None:
    described = describe_topics(connection, client, names)
    configs = topic_configs(connection, client, names)
    selected = options["under_replicated_partitions"] or options["unavailable_partitions"]
    for topic in described:
        own = configs[topic["name"]]
        if options["topics_with_overrides"] and not own:
            continue
        if not selected:
            click.echo(_headline(topic, own))
        if not options["topics_with_overrides"]:
            for row in topic["partitions"]:
                if not selected or _selected(row, options):
                    click.echo(_partition(topic["name"], row, elr=not options["zookeeper"]))


def _selected(row: dict[str, Any], options: dict[str, Any]) -> bool:
    short = len(row["isr"]) < len(row["replicas"])
    return (options["under_replicated_partitions"] and short) or (
        options["unavailable_partitions"] and row["leader"] is None
    )


def _headline(topic: dict[str, Any], own: dict[str, str | None]) -> str:
    partitions = topic["partitions"]
    factor = len(partitions[0]["replicas"]) if partitions else 0
    settings = ",".join(f"{name}={value}" for name, value in sorted(own.items()))
    return (
        f"Topic: {topic['name']}\tTopicId: {topic['id']}\tPartitionCount: {len(partitions)}"
        f"\tReplicationFactor: {factor}\tConfigs: {settings}"
    )


def _partition(name: str, row: dict[str, Any], *, elr: bool) -> str:
    leader = "none" if row["leader"] is None else row["leader"]
    replicas, isr = (",".join(map(str, row[key])) for key in ("replicas", "isr"))
    line = (
        f"\tTopic: {name}\tPartition: {row['partition']}\tLeader: {leader}"
        f"\tReplicas: {replicas}\tIsr: {isr}"
    )
    return f"{line}\tElr: N/A\tLastKnownElr: N/A" if elr else line


def _alter(
    connection: Connection, client: AdminClient, names: list[str], options: dict[str, Any]
) -> None:
    from barnabas_broker.cli.configs import alter_resource

    additions = parse_assignments(options["configs"], "--config")
    for name in names:
        if additions or options["removals"]:
            click.echo(ALTERING)
            alter_resource(connection, client, ("topics", name), additions, options["removals"])
            click.echo(f"Updated config for topic {name}.")
        if options["partitions"] is not None:
            text = options["replica_assignment"]
            # Kafka's option names the brokers of all partitions, the request those of new ones.
            assignment = parse_assignment(text) if text else None
            if assignment:
                (topic,) = describe_topics(connection, client, [name])
                assignment = assignment[len(topic["partitions"]) :]
            add_partitions(connection, client, name, options["partitions"], assignment)
            if options["zookeeper"]:
                click.echo(GROWING)


def _delete(
    connection: Connection, client: AdminClient, names: list[str], options: dict[str, Any]
) -> None:
    if not names:
        return
    with failures("cannot delete"):
        futures = connection.order(
            client,
            names,
            lambda left: client.delete_topics(left, request_timeout=connection.timeout_s),
        )
    for name, future in futures.items():
        connection.answer(future)
        if options["zookeeper"]:
            click.echo(MARKED.format(name))


_ON_NAMES = {"list": _list, "describe": _describe, "alter": _alter, "delete": _delete}
