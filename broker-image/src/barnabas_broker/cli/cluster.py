"""`barnabas cluster`: what a cluster consists of, and whether all of it is well."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any, Final

import click

from barnabas_broker.cli.admin import AdminSession, api_versions_request
from barnabas_broker.cli.client import Connection, connection_options
from barnabas_broker.cli.errors import CommandError
from barnabas_broker.cli.output import output_option, print_json, print_table
from barnabas_kafka.client import ANY_BROKER, CONTROLLER, describe_cluster, send_to_brokers
from barnabas_kafka.protocol.messages.api_versions import ApiVersionsResponse
from barnabas_kafka.protocol.messages.metadata import MetadataRequest, MetadataResponse

SHOWN: Final = 20
"""How many partitions of a kind a table names; JSON has all."""

Fields = dict[str, Any]


@click.group()
def cluster() -> None:
    """Show what a cluster consists of, and whether it is healthy."""


@cluster.command()
@output_option
@connection_options
def info(output: str, connection: Connection) -> None:
    """Show the cluster's id, controller, brokers, and how many topics and partitions there are."""
    with AdminSession(connection) as session:
        metadata = _metadata(session)
    brokers = [
        {
            "broker": each.node_id,
            "address": f"{each.host}:{each.port}",
            "rack": each.rack or None,
            "controller": each.node_id == metadata.controller_id,
        }
        for each in sorted(metadata.brokers, key=lambda each: each.node_id)
    ]
    facts: Fields = {
        "cluster": metadata.cluster_id,
        "controller": metadata.controller_id if metadata.controller_id >= 0 else None,
        "topics": len(metadata.topics),
        "partitions": sum(len(topic.partitions) for topic in metadata.topics),
    }
    if output == "json":
        print_json({**facts, "brokers": brokers})
        return
    for name, fact in facts.items():
        click.echo(f"{name + ':':<12}{'-' if fact is None else fact}")
    click.echo()
    print_table(list(brokers[0]), [list(each.values()) for each in brokers])


@cluster.command()
@output_option
@connection_options
def health(output: str, connection: Connection) -> None:
    """Say whether every partition has a leader and all its replicas; exits with 0 if so.

    There must be a controller, too. Offline brokers are those that have replicas and are not
    registered; silent ones are registered and do not answer in time.
    """
    with AdminSession(connection) as session:
        silent = _silent(session)
        metadata = _metadata(session, silent)
    used: set[int] = set()
    leaderless, behind, offline = [], [], []
    for topic in metadata.topics:
        for each in topic.partitions:
            used.update(each.replica_nodes)
            name = f"{topic.name}-{each.partition_index}"
            if each.leader_id < 0:
                leaderless.append(name)
            if len(each.isr_nodes) < len(each.replica_nodes):
                behind.append(name)
            if each.offline_replicas:
                offline.append(name)
    facts: Fields = {
        "controller": metadata.controller_id if metadata.controller_id >= 0 else None,
        "silent_brokers": sorted(silent),
        "offline_brokers": sorted(used - {each.node_id for each in metadata.brokers}),
        "leaderless_partitions": sorted(leaderless),
        "under_replicated_partitions": sorted(behind),
        "partitions_with_offline_replicas": sorted(offline),
    }
    problems = _problems(facts)
    if output == "json":
        print_json({"healthy": not problems, **facts})
    else:
        for name, fact in facts.items():
            click.echo(f"{name.replace('_', ' ') + ':':<34}{_shown(fact)}")
    if problems:
        raise CommandError(f"the cluster is not healthy: {'; '.join(problems)}")
    if output != "json":
        click.echo("The cluster is healthy.")


def _metadata(session: AdminSession, silent: Collection[int] = ()) -> MetadataResponse:
    """What the controller has; other brokers learn of changes later, and are asked without it."""
    view = session.call(describe_cluster())
    unusable = view.controller_id not in view.brokers or view.controller_id in silent
    target = ANY_BROKER if unusable else CONTROLLER
    return session.ask(target, MetadataRequest(topics=None), MetadataResponse)


def _silent(session: AdminSession) -> list[int]:
    """The brokers that do not answer, each with its reason on standard error."""
    answers = session.call(send_to_brokers(api_versions_request(), ApiVersionsResponse))
    for broker, error in answers.errors.items():
        CommandError(f"broker {broker} does not answer: {error}").show()
    return list(answers.errors)


def _problems(facts: Fields) -> list[str]:
    problems = ["there is no controller"] if facts["controller"] is None else []
    for name, fact in facts.items():
        if isinstance(fact, list) and fact:
            problems.append(f"{len(fact)} {name.replace('_', ' ')}")
    return problems


def _shown(fact: Sequence[Any] | int | None) -> str:
    if fact is None:
        return "-"
    if isinstance(fact, int):
        return str(fact)
    more = f" and {len(fact) - SHOWN} more" if len(fact) > SHOWN else ""
    return ", ".join(map(str, fact[:SHOWN])) + more if fact else "none"
