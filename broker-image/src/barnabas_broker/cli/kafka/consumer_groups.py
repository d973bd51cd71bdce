"""`kafka-consumer-groups`: groups, their members and offsets, in the words of Kafka's tool."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import click

from barnabas_broker.cli.client import Connection
from barnabas_broker.cli.errors import FAILED, CommandError
from barnabas_broker.cli.groups import reset_plan
from barnabas_broker.cli.groups.cluster import Described, Groups
from barnabas_broker.cli.groups.command import words
from barnabas_broker.cli.groups.lag import by_topic, concerned, positions
from barnabas_broker.cli.groups.resetting import RUNS, SCOPES, STRATEGIES, Reset, options, plans
from barnabas_broker.cli.groups.strategies import Partition
from barnabas_broker.cli.kafka.answers import reported_as
from barnabas_broker.cli.kafka.tool import connected, note, refused, tool
from barnabas_broker.cli.offsets import parse_partitions
from barnabas_kafka.errors import ErrorCode

ACTIONS = ("list", "describe", "delete", "reset_offsets", "delete_offsets")
STATES = ("preparingrebalance", "completingrebalance", "stable", "dead", "empty", "assigning",
          "reconciling")  # fmt: skip
TYPES = ("classic", "consumer")
OFFSET_COLUMNS = (
    "GROUP", "TOPIC", "PARTITION", "CURRENT-OFFSET", "LOG-END-OFFSET", "LAG", "CONSUMER-ID", "HOST",
    "CLIENT-ID",
)  # fmt: skip
OFFSET_WIDTHS = (15, 15, 10, 15, 15, 15, 15, 15, 0)
STATE_COLUMNS = ("GROUP", "COORDINATOR (ID)", "ASSIGNMENT-STRATEGY", "STATE", "#MEMBERS")
DELETED_COLUMNS = ("TOPIC", "PARTITION", "STATUS")


@tool("kafka-consumer-groups")
@click.option("--list", "list_", is_flag=True, help="List all groups.")
@click.option("--describe", is_flag=True, help="Show offsets and lag, members or states.")
@click.option("--delete", is_flag=True, help="Delete groups that have no members.")
@click.option("--reset-offsets", is_flag=True, help="Move the offsets of groups without members.")
@click.option(
    "--delete-offsets", is_flag=True, help="Delete offsets of topics that no member reads."
)
@click.option("--group", "groups", multiple=True)
@click.option("--all-groups", is_flag=True)
@click.option("--offsets", is_flag=True, help="With --describe: offsets, as by default.")
@click.option("--members", is_flag=True, help="With --describe: who is in the group.")
@click.option("--verbose", is_flag=True, help="With --members: which partitions each one reads.")
@click.option(
    "--state",
    is_flag=False,
    flag_value="",
    help="With --describe or --list: states; with --list also which ones.",
)
@click.option("--type", "type_", is_flag=False, flag_value="", help="With --list: types.")
@options(*SCOPES, *STRATEGIES, *RUNS)
@click.option("--timeout", type=int, hidden=True)
@refused("--validate-regex", why="subscriptions by pattern are checked where they are made")
@connected("--broker-list", zookeeper=True)
def main(connection: Connection, zookeeper: str | None, **given: Any) -> None:
    """List, describe and delete consumer groups, and move their offsets."""
    given["list"] = given.pop("list_")
    chosen = [action for action in ACTIONS if given[action]]
    if len(chosen) != 1:
        raise click.UsageError(
            "Command must include exactly one action: --list, --describe, --delete, "
            "--reset-offsets, --delete-offsets"
        )
    (action,) = chosen
    if action != "list" and not (given["groups"] or given["all_groups"]):
        raise click.UsageError("--group or --all-groups is needed.")
    reset = Reset.of(given) if action == "reset_offsets" else None
    groups = Groups.of(connection)
    if action == "list":
        _list(groups, given["state"], given["type_"])
        return
    names = [each.name for each in groups.list()] if given["all_groups"] else given["groups"]
    if action == "delete":
        _delete(groups, names)
    elif reset is not None:
        _reset(groups, names, reset, given)
    elif action == "delete_offsets":
        _delete_offsets(groups, names, given["topics"])
    else:
        with reported_as("\nError: "):
            for name in sorted(names):
                _describe(groups, name, given)


def _list(groups: Groups, state: str | None, type_: str | None) -> None:
    states, types = (words([text] if text else []) for text in (state, type_))
    for kind, found, known in (("state", states, STATES), ("types", types, TYPES)):
        if unknown := found - set(known):
            raise click.UsageError(f"Invalid {kind} list {', '.join(sorted(unknown))}")
    listed = groups.list(states, types)
    if state is None and type_ is None:
        for each in listed:
            click.echo(each.name)
        return
    width = max((15, *(len(each.name) for each in listed))) + 10
    columns = [("GROUP", "TYPE", "STATE"), *((each.name, each.type, each.state) for each in listed)]
    for name, its_type, its_state in columns:
        cells = [f"{its_type:20}"] * (type_ is not None) + [f"{its_state:20}"] * (state is not None)
        click.echo(" ".join([f"{name:{width}}", *cells]))


def _describe(groups: Groups, name: str, given: dict[str, Any]) -> None:
    found = groups.describe(name)
    if found is None:
        click.echo(f"\nError: Consumer group '{name}' does not exist.")
        return
    if found.state == "Empty":
        click.echo(f"\nConsumer group '{name}' has no active members.", err=True)
    elif found.state not in ("Stable", "Dead"):
        click.echo(f"\nWarning: Consumer group '{name}' is rebalancing.", err=True)
    if given["members"]:
        _members(found, verbose=given["verbose"])
    elif given["state"] is not None:
        row = (name, found.coordinator, found.strategy, found.state, len(found.members))
        _table(STATE_COLUMNS, (25, 25, 20, 15, 0), [row])
    elif rows := _offset_rows(groups, found):
        _table(OFFSET_COLUMNS, OFFSET_WIDTHS, rows)


def _members(group: Described, *, verbose: bool) -> None:
    if not group.members:
        return
    has_static = any(each.instance_id for each in group.members)
    columns = ["GROUP", "CONSUMER-ID", "HOST", "CLIENT-ID", "#PARTITIONS"]
    rows: list[list[Any]] = [
        [group.name, each.id, each.host, each.client_id, len(each.partitions)]
        for each in group.members
    ]
    widths = [15] * 5
    if has_static:
        for line, cell in zip(
            (columns, *rows),
            ("GROUP-INSTANCE-ID", *(each.instance_id or "" for each in group.members)),
            strict=True,
        ):
            line.insert(2, cell)
        widths.insert(2, 17)
    if verbose:
        columns.append("ASSIGNMENT")
        widths.append(0)
        for row, each in zip(rows, group.members, strict=True):
            row.append(by_topic(each.partitions) or "-")
    _table(columns, widths, rows)


def _offset_rows(groups: Groups, group: Described) -> list[tuple[Any, ...]]:
    committed = groups.committed(group.name)
    ends = groups.ends(concerned(group, committed))
    rows = []
    for each in positions(group, committed, ends):
        numbers = (each.committed, each.end, each.lag)
        who = each.member
        rows.append(
            (
                group.name,
                *each.partition,
                *("-" if number is None else number for number in numbers),
                *((who.id, who.host, who.client_id) if who else "---"),
            )
        )
    return rows


def _delete(groups: Groups, names: Sequence[str]) -> None:
    failed = {}
    for name in names:
        try:
            groups.delete(name)
        except CommandError as error:
            failed[name] = error.message
    if failed:
        click.echo("\nError: Deletion of some consumer groups failed:")
        for name, reason in failed.items():
            click.echo(f"* Group '{name}' could not be deleted due to: {reason}")
    deleted = ", ".join(f"'{name}'" for name in names if name not in failed)
    if deleted:
        also = "These consumer groups were deleted successfully:" if failed else ""
        text = f"Deletion of requested consumer groups ({deleted}) was successful."
        click.echo(f"\n{also} {deleted}" if failed else text)


def _delete_offsets(groups: Groups, names: Sequence[str], topics: Sequence[str]) -> None:
    if len(names) != 1 or not topics:
        raise click.UsageError("--delete-offsets takes one --group, and --topic")
    (name,) = names
    wanted: set[Partition] = set()
    rows: list[tuple[str, int | str, str]] = []
    for text in topics:
        topic, colon, numbers = text.partition(":")
        if not colon and topic not in groups.topics:
            rows.append((topic, "Not Provided", _status(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)))
            continue
        chosen = parse_partitions(numbers) if colon else groups.topics[topic]
        wanted |= {(topic, number) for number in chosen}
    with reported_as("\nError: "):
        done = groups.delete_offsets(name, sorted(wanted))
    rows += [(*each, _status(code)) for each, code in done.items()]
    is_refused = any(done.values())
    if is_refused:
        click.echo("\nError: Encounter some partition level error, see the follow-up details:")
    else:
        click.echo(
            f"Request succeed for deleting offsets with topic {', '.join(topics)} group {name}"
        )
    _table(DELETED_COLUMNS, (30, 15, 15), sorted(rows, key=str))
    if is_refused or len(rows) > len(done):
        raise SystemExit(FAILED)


def _status(code: ErrorCode) -> str:
    return f"Error: {code.message}" if code else "Successful"


def _reset(groups: Groups, names: Sequence[str], reset: Reset, given: dict[str, Any]) -> None:
    planned, failures = plans(groups, names, reset, note)
    if not (given["execute"] or given["dry_run"] or given["export"]):
        note("nothing is changed without --execute")
    for error in failures:
        click.echo(f"\nError: {error.message}")
    if given["export"]:
        click.echo(reset_plan.written(planned, alone=len(names) == 1), nl=False)
    else:
        rows = [
            (name, *each, offset)
            for name, offsets in planned.items()
            for each, offset in offsets.items()
        ]
        _table(("GROUP", "TOPIC", "PARTITION", "NEW-OFFSET"), (30, 30, 10, 15), rows)
    if failures:
        raise SystemExit(FAILED)


def _table(columns: Sequence[str], widths: Sequence[int], rows: Sequence[Sequence[Any]]) -> None:
    """Columns as wide as Kafka's tool makes them, or as the longest cell needs."""
    lines = [columns, *rows]
    wide = [
        max(width, *(len(str(line[index])) for line in lines)) for index, width in enumerate(widths)
    ]
    click.echo()
    for line in lines:
        cells = (f"{cell!s:{width}}" for cell, width in zip(line, wide, strict=True))
        click.echo(" ".join(cells).rstrip())
