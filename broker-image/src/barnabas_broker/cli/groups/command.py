"""`barnabas groups`: list, describe, delete, and set where groups go on."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import click

from barnabas_broker.cli.client import Connection, connection_options
from barnabas_broker.cli.completion import group_names
from barnabas_broker.cli.errors import Attempts, CommandError
from barnabas_broker.cli.groups import reset_plan
from barnabas_broker.cli.groups.cluster import Described, Groups
from barnabas_broker.cli.groups.downgrading import (
    GROUPS_TOPIC,
    NEWEST_CLASSIC_KEY,
    downgrade,
    remaining,
)
from barnabas_broker.cli.groups.lag import by_topic, concerned, positions
from barnabas_broker.cli.groups.planning import plan
from barnabas_broker.cli.groups.resetting import RUNS, SCOPES, STRATEGIES, Reset, options, plans
from barnabas_broker.cli.groups.resetting import scope as partitions_of
from barnabas_broker.cli.output import done, output_option, print_json, print_table, results_option
from barnabas_broker.printable import printable
from barnabas_kafka.errors import ErrorCode


@click.group()
def groups() -> None:
    """Describe consumer groups, and set where they go on."""


groups.add_command(plan)


@groups.command("list")
@click.option("--state", "states", multiple=True, metavar="STATE[,STATE]", help="stable, empty, …")
@click.option("--type", "types", multiple=True, metavar="TYPE[,TYPE]", help="classic, consumer")
@output_option
@connection_options
def list_(
    states: tuple[str, ...], types: tuple[str, ...], output: str, connection: Connection
) -> None:
    """List groups, all or those in some states and of some types."""
    with Attempts() as attempts:
        found = Groups.of(connection).list(words(states), words(types), attempts)
        if output == "json":
            rows = [{"group": each.name, "type": each.type, "state": each.state} for each in found]
            print_json(rows)
        else:
            print_table(
                ["group", "type", "state"], [[each.name, each.type, each.state] for each in found]
            )


@groups.command()
@click.argument("names", nargs=-1, metavar="[GROUP]...", shell_complete=group_names)
@click.option("--offsets", "view", flag_value="offsets", default=True, help="Offsets and lag.")
@click.option("--members", "view", flag_value="members", help="Who is in the group.")
@click.option("--state", "view", flag_value="state", help="State, strategy and coordinator.")
@click.option("--verbose", is_flag=True, help="With --members: what each one reads.")
@output_option
@connection_options
def describe(
    names: tuple[str, ...], view: str, verbose: bool, output: str, connection: Connection
) -> None:
    """Describe groups, all unless some are named: how far they are, who is in them."""
    cluster = Groups.of(connection)
    rows: list[dict[str, Any]] = []
    try:
        with Attempts() as attempts:
            for name in names or [each.name for each in cluster.list(attempts=attempts)]:
                with attempts.one():
                    found = cluster.describe(name)
                    if found is None:
                        raise CommandError(f"there is no group {name}")
                    _warn(found)
                    detailed = verbose or output == "json"
                    rows += _rows(cluster, found, view, attempts, verbose=detailed)
    finally:
        if output == "json":
            print_json(rows)
        elif rows:
            print_table(list(rows[0]), [list(row.values()) for row in rows])


def _warn(group: Described) -> None:
    if group.state == "Empty":
        click.echo(f"Note: group {printable(group.name)} has no members", err=True)
    elif "Rebalance" in group.state:
        click.echo(f"Note: group {printable(group.name)} is rebalancing", err=True)


def _rows(
    cluster: Groups, group: Described, view: str, attempts: Attempts, *, verbose: bool
) -> list[dict[str, Any]]:
    if view == "members":
        return _member_rows(group, verbose=verbose)
    return [_state_row(group)] if view == "state" else _offset_rows(cluster, group, attempts)


def _offset_rows(cluster: Groups, group: Described, attempts: Attempts) -> list[dict[str, Any]]:
    committed = cluster.committed(group.name)
    ends = cluster.ends(concerned(group, committed), attempts)
    return [
        {
            "group": group.name,
            "topic": each.partition[0],
            "partition": each.partition[1],
            "committed": each.committed,
            "end": each.end,
            "lag": each.lag,
            "member": each.member and each.member.id,
            "host": each.member and each.member.host,
            "client": each.member and each.member.client_id,
        }
        for each in positions(group, committed, ends)
    ]


def _member_rows(group: Described, *, verbose: bool) -> list[dict[str, Any]]:
    rows = []
    for each in group.members:
        row = {
            "group": group.name,
            "member": each.id,
            "instance": each.instance_id,
            "host": each.host,
            "client": each.client_id,
            "partitions": len(each.partitions),
        }
        if verbose:
            row["assignment"] = by_topic(each.partitions)
            row["target"] = None if each.target is None else by_topic(each.target)
        rows.append(row)
    return rows


def _state_row(group: Described) -> dict[str, Any]:
    return {
        "group": group.name,
        "type": group.type,
        "state": group.state,
        "strategy": group.strategy or None,
        "coordinator": group.coordinator,
        "members": len(group.members),
    }


@groups.command()
@click.argument("names", nargs=-1, required=True, metavar="GROUP...", shell_complete=group_names)
@click.option("--if-exists", is_flag=True, help="A group that does not exist is no error.")
@results_option
@connection_options
def delete(names: tuple[str, ...], if_exists: bool, connection: Connection) -> None:
    """Delete groups that have no members, with their offsets."""
    cluster = Groups.of(connection)
    forgive = ErrorCode.GROUP_ID_NOT_FOUND if if_exists else None
    with Attempts() as attempts:
        for name in names:
            with attempts.one(forgive=forgive):
                try:
                    cluster.delete(name)
                except CommandError as error:
                    text = f"cannot delete group {name}: {error.message}"
                    raise CommandError(text, code=error.code) from None
                done(f"Deleted group {name}.", {"group": name, "deleted": True})


@groups.command("delete-offsets")
@click.argument("name", metavar="GROUP", shell_complete=group_names)
@click.option("--topic", "topics", multiple=True, required=True, metavar="TOPIC[:PARTITIONS]")
@results_option
@connection_options
def delete_offsets(name: str, topics: tuple[str, ...], connection: Connection) -> None:
    """Forget the offsets of topics that no member of the group reads."""
    cluster = Groups.of(connection)
    codes = cluster.delete_offsets(name, partitions_of(cluster, topics))
    with Attempts() as attempts:
        for (topic, number), code in codes.items():
            with attempts.one():
                if code:
                    raise CommandError(f"{topic}-{number}: {code.message} ({code.name})", code=code)
                result = {"group": name, "topic": topic, "partition": number, "deleted": True}
                done(f"Deleted the offset of {topic}-{number}.", result)


@groups.command("reset-offsets", context_settings={"ignore_unknown_options": True})
@click.argument("names", nargs=-1, metavar="[GROUP]...", shell_complete=group_names)
@click.option("--all-groups", is_flag=True, help="Every group there is.")
@options(*SCOPES, *STRATEGIES, *RUNS)
@output_option
@connection_options
def reset_offsets(
    names: tuple[str, ...], all_groups: bool, output: str, connection: Connection, **given: Any
) -> None:
    """Set where groups without members go on.

    Nothing is changed without --execute. An offset that a partition does not have becomes the
    nearest it has, which is printed. A group with members is refused, for they would go on where
    they are and commit over what was set.
    """
    if bool(names) == all_groups:
        raise click.UsageError("name groups, or give --all-groups")
    reset = Reset.of(given)
    cluster = Groups.of(connection)
    names = names or tuple(each.name for each in cluster.list())
    planned, refused = plans(cluster, names, reset, lambda text: click.echo(text, err=True))
    rows: list[tuple[Any, ...]] = [
        (name, *each, offset)
        for name, offsets in planned.items()
        for each, offset in offsets.items()
    ]
    columns = ["group", "topic", "partition", "offset"]
    if given["export"]:
        click.echo(reset_plan.written(planned, alone=len(names) == 1), nl=False)
    elif output == "json":
        print_json([dict(zip(columns, row, strict=True)) for row in rows])
    elif rows:
        print_table(columns, rows)
    if rows and not (given["execute"] or given["dry_run"] or given["export"]):
        click.echo("Note: nothing is changed without --execute", err=True)
    with Attempts() as attempts:
        for error in refused:
            with attempts.one():
                raise error


@groups.command("downgrade")
@click.argument("names", nargs=-1, metavar="[GROUP]...", shell_complete=group_names)
@click.option("--all-groups", is_flag=True, help="Every group of the consumer protocol.")
@results_option
@connection_options
def downgrade_(names: tuple[str, ...], all_groups: bool, connection: Connection) -> None:
    """Rewrite groups of the consumer protocol to the classic form, offsets kept.

    Then no record that a Kafka 3 broker cannot read is left of them, which is counted and printed.
    Groups with members are refused.
    """
    if bool(names) == all_groups:
        raise click.UsageError("name groups, or give --all-groups")
    cluster = Groups.of(connection)
    modern = [each.name for each in cluster.list(types=("consumer",))]
    with Attempts() as attempts:
        for name in names or modern:
            with attempts.one():
                if name not in modern:
                    raise CommandError(f"there is no group {name} of the consumer protocol")
                downgrade(cluster, name)
                done(f"Downgraded group {name}.", {"group": name, "downgraded": True})
        with attempts.one():
            found = remaining(connection, cluster.topics.get(GROUPS_TOPIC, []))
            newer = sum(count for key, count in found.items() if key > NEWEST_CLASSIC_KEY)
            older = sum(found.values()) - newer
            done(
                f"{GROUPS_TOPIC} has {newer} records of key versions above {NEWEST_CLASSIC_KEY}, "
                f"and {older} of others.",
                {"topic": GROUPS_TOPIC, "newer_records": newer, "other_records": older},
            )
            if newer:
                raise CommandError("some groups are still of the consumer protocol")


def words(texts: Iterable[str]) -> frozenset[str]:
    """`stable,empty` and repeated options as single words, in small letters."""
    return frozenset(word.strip().lower() for text in texts for word in text.split(","))
