"""Resetting offsets: which partitions, to where, and whether it is done or only shown."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

from barnabas_broker.cli.errors import CommandError
from barnabas_broker.cli.groups import reset_plan
from barnabas_broker.cli.groups.cluster import Described, Groups
from barnabas_broker.cli.groups.strategies import (
    Bounds,
    Partition,
    clamped,
    moved,
    parse_datetime,
    parse_duration,
    shifted,
)
from barnabas_broker.cli.offsets import EARLIEST, LATEST, parse_partitions

Report = Callable[[str], None]
Command = Callable[..., Any]

STRATEGIES = (
    click.option("--to-earliest", is_flag=True, help="The first offset there is."),
    click.option("--to-latest", is_flag=True, help="The end: only what is written from now on."),
    click.option("--to-current", is_flag=True, help="Where the group is; the end where nowhere."),
    click.option("--to-offset", type=int, metavar="OFFSET", help="One offset for all partitions."),
    click.option("--shift-by", type=int, metavar="N", help="So many records on; back if below 0."),
    click.option(
        "--to-datetime",
        metavar="YYYY-MM-DDTHH:mm:SS.sss",
        help="The first record as late as that; UTC unless it names a zone.",
    ),
    click.option("--by-duration", metavar="PnDTnHnMnS", help="The same, so long before now."),
    click.option(
        "--from-file",
        type=click.Path(exists=True, dir_okay=False, path_type=Path),
        help="The offsets of a CSV file, as --export prints them.",
    ),
)
NAMES = (
    "to_earliest", "to_latest", "to_current", "to_offset", "shift_by", "to_datetime", "by_duration",
    "from_file",
)  # fmt: skip
RUNS = (
    click.option("--execute", is_flag=True, help="Do it; otherwise it is only shown."),
    click.option("--dry-run", is_flag=True, help="Only show it, as without --execute."),
    click.option("--export", is_flag=True, help="Print CSV for --from-file."),
)
SCOPES = (
    click.option(
        "--topic",
        "topics",
        multiple=True,
        metavar="TOPIC[:PARTITIONS]",
        help="A topic, or some partitions of it: orders, orders:0,1,2. Several times for several.",
    ),
    click.option("--all-topics", is_flag=True, help="All topics the group has offsets of."),
)


def options(*several: Callable[[Command], Command]) -> Callable[[Command], Command]:
    """Add options in the order they are named."""

    def decorate(command: Command) -> Command:
        for option in reversed(several):
            command = option(command)
        return command

    return decorate


@dataclass(frozen=True, slots=True)
class Reset:
    """What was asked for."""

    strategy: str
    value: Any
    topics: Sequence[str]
    all_topics: bool
    execute: bool

    @classmethod
    def of(cls, given: Mapping[str, Any]) -> Reset:
        """From a command's options; click.UsageError where they contradict each other."""
        # By identity, for 0 is an offset and equals False.
        strategies = [
            each for each in NAMES if given[each] is not None and given[each] is not False
        ]
        if len(strategies) != 1:
            words = ", ".join(f"--{each.replace('_', '-')}" for each in NAMES)
            raise click.UsageError(f"one strategy is needed to reset offsets: {words}")
        if given["topics"] and given["all_topics"]:
            raise click.UsageError("--topic and --all-topics exclude each other")
        if not (given["topics"] or given["all_topics"] or given["from_file"]):
            raise click.UsageError("which offsets to reset: --topic or --all-topics")
        if given["execute"] and given["dry_run"]:
            raise click.UsageError("--execute and --dry-run exclude each other")
        (strategy,) = strategies
        return cls(
            strategy, given[strategy], given["topics"], given["all_topics"], given["execute"]
        )


def plans(
    groups: Groups, names: Iterable[str], reset: Reset, report: Report
) -> tuple[dict[str, dict[Partition, int]], list[CommandError]]:
    """What each group's offsets become, and are if it is to be executed; with what was refused.

    Everything is planned before the first offset is set.
    """
    planned: dict[str, dict[Partition, int]] = {}
    refused = []
    for name in names:
        try:
            planned[name] = _planned(groups, name, reset, tuple(names), report)
        except (CommandError, ValueError) as error:
            refused.append(error if isinstance(error, CommandError) else CommandError(str(error)))
    if reset.execute:
        for name, offsets in list(planned.items()):
            try:
                if offsets:
                    groups.commit(name, offsets)
            except CommandError as error:
                refused.append(CommandError(f"group {name}: {error.message}"))
                del planned[name]
    return planned, refused


def refuse_active(group: Described) -> None:
    """CommandError where members would go on as if nothing had happened."""
    if group.is_active:
        raise CommandError(
            f"Assignments can only be reset if the group '{group.name}' is inactive, but the "
            f"current state is {group.state}."
        )


def scope(groups: Groups, topics: Sequence[str]) -> list[Partition]:
    """`a` and `a:0,1` as partitions that exist; CommandError where one does not."""
    chosen = set()
    for text in topics:
        name, colon, numbers = text.partition(":")
        there = groups.topics.get(name)
        if there is None:
            raise CommandError(f"topic {name} does not exist")
        wanted = parse_partitions(numbers) if colon else set(there)
        if missing := wanted - set(there):
            raise CommandError(f"topic {name} has no partition {min(missing)}")
        chosen |= {(name, number) for number in wanted}
    return sorted(chosen)


def _planned(
    groups: Groups, name: str, reset: Reset, names: tuple[str, ...], report: Report
) -> dict[Partition, int]:
    found = groups.describe(name)
    if found is not None:
        refuse_active(found)
    committed = groups.committed(name) if found is not None else {}
    if reset.strategy == "from_file":
        return _from_file(groups, name, reset, names, report)
    partitions = sorted(committed) if reset.all_topics else scope(groups, reset.topics)
    gone = [each for each in partitions if each[1] not in groups.topics.get(each[0], ())]
    for topic, number in gone:
        report(f"{topic}-{number} does not exist any more: left as it is")
    partitions = [each for each in partitions if each not in gone]
    return _offsets(groups, reset, {each: committed.get(each) for each in partitions}, report)


def _from_file(
    groups: Groups, name: str, reset: Reset, names: tuple[str, ...], report: Report
) -> dict[Partition, int]:
    try:
        read = reset_plan.read(reset.value.read_text(), names)
    except (OSError, ValueError) as error:
        raise CommandError(f"{reset.value}: {error}") from None
    if name not in read:
        raise CommandError(f"{reset.value} has no offsets for group {name}")
    wanted = read[name]
    if reset.topics:
        chosen = set(scope(groups, reset.topics))
        wanted = {each: offset for each, offset in wanted.items() if each in chosen}
    targets = clamped(wanted, _bounds(groups, wanted))
    for sentence in moved(targets):
        report(sentence)
    return {each: target.offset for each, target in targets.items()}


def _offsets(
    groups: Groups, reset: Reset, where: Mapping[Partition, int | None], report: Report
) -> dict[Partition, int]:
    """The offset each partition gets; ValueError where the strategy cannot be followed."""
    if reset.strategy == "to_earliest":
        return groups.offsets(where, EARLIEST)
    current = {each: offset for each, offset in where.items() if offset is not None}
    if reset.strategy in ("shift_by", "to_offset"):
        bounds = _bounds(groups, where)
        targets = (
            shifted(current, reset.value, bounds)
            if reset.strategy == "shift_by"
            else clamped(dict.fromkeys(where, reset.value), bounds)
        )
        for sentence in moved(targets):
            report(sentence)
        return {each: target.offset for each, target in targets.items()}
    ends = groups.offsets(where, LATEST)
    if reset.strategy == "to_latest":
        return ends
    if reset.strategy == "to_current":
        return {each: current.get(each, end) for each, end in ends.items()}
    return _by_time(groups, _moment(reset), ends, report)


def _moment(reset: Reset) -> int:
    if reset.strategy == "to_datetime":
        return parse_datetime(reset.value)
    return int(time.time() * 1000) - parse_duration(reset.value)


def _by_time(
    groups: Groups, moment_ms: int, ends: Mapping[Partition, int], report: Report
) -> dict[Partition, int]:
    # A negative time asks for something else; no record is older than 1970.
    found = groups.offsets(ends, max(moment_ms, 0))
    for name, number in (each for each, offset in found.items() if offset < 0):
        report(f"{name}-{number} has no record as late as that: its end is taken")
    return {each: offset if offset >= 0 else ends[each] for each, offset in found.items()}


def _bounds(groups: Groups, partitions: Iterable[Partition]) -> dict[Partition, Bounds]:
    partitions = list(partitions)
    firsts, ends = (groups.offsets(partitions, when) for when in (EARLIEST, LATEST))
    return {each: Bounds(firsts[each], ends[each]) for each in partitions}
