"""`barnabas reassign`: generate, plan, execute, verify, cancel and list moves of partitions."""

from __future__ import annotations

import secrets
import threading
import time
from pathlib import Path
from typing import Any

import click

from barnabas_broker.cli.client import Connection, connection_options
from barnabas_broker.cli.errors import Attempts, CommandError, InputError
from barnabas_broker.cli.json_files import read_json, write_json
from barnabas_broker.cli.output import counted, done, output_option, print_json, results_option
from barnabas_broker.cli.reassign.cluster import (
    CurrentAssignment,
    current_assignment,
    reassign,
    sizes,
    throttle,
    unthrottle,
)
from barnabas_broker.cli.reassign.generating import generated
from barnabas_broker.cli.reassign.options import (
    FILE,
    check_brokers,
    of_topics,
    parse_brokers,
    present,
    racks_of,
    refusals,
    result_options,
)
from barnabas_broker.cli.reassign.plans import plan
from barnabas_broker.cli.reassign.progress import POLL_S, wait
from barnabas_broker.cli.reassign.tables import show_plan, show_rows
from barnabas_kafka.ids import TopicPartition
from barnabas_kafka.reassignment.files import (
    Layout,
    read_reassignment,
    read_topics,
    write_reassignment,
)
from barnabas_kafka.reassignment.throttles import Move, moves

PRESERVE = click.option(
    "--preserve-throttles", is_flag=True, help="Leave throttles, which go otherwise."
)


@click.group(name="reassign")
def reassignment() -> None:
    """Move partitions to other brokers, and plan what to move."""


reassignment.add_command(plan)


@reassignment.command()
@click.option("--topics-file", "path", type=FILE, help="As Kafka's topics-to-move-json-file.")
@click.option("--topic", "topics", multiple=True, help="Or by name; may be repeated.")
@click.option("--brokers", "listed", required=True, metavar="ID,ID", help="Where they are to lie.")
@result_options
@connection_options
def generate(
    path: Path | None,
    topics: tuple[str, ...],
    listed: str,
    target: Path | None,
    output: str,
    no_racks: bool,
    connection: Connection,
) -> None:
    """Propose replicas as for new topics on these brokers, as Kafka's tool does.

    It begins at random and moves nearly everything; `plan` moves the least.
    """
    if (path is None) == (not topics):
        raise InputError("say which topics: --topics-file or --topic, one of them")
    brokers = parse_brokers(listed)
    names = read_json(path, read_topics) if path else topics
    there = current_assignment(connection)
    check_brokers(there, brokers)
    of_topics(there.layout, names)
    racks = racks_of(there, no_racks)
    with refusals():
        made = generated(there.origins, racks, names, brokers, secrets.randbelow)
    present(connection, there, made, target, output)


@reassignment.command()
@click.argument("path", type=FILE, metavar="FILE")
@click.option(
    "--throttle", "rate", type=click.IntRange(min=1), metavar="BYTES", help="A second, per broker."
)
@click.option("--rollback", type=FILE, help="Write how it is now to this file.")
@click.option("--override", is_flag=True, help="Though one of the partitions moves elsewhere.")
@click.option("--wait", "waits", is_flag=True, help="Until all is moved, with progress.")
@output_option(plain=("text",))
@connection_options
def execute(
    path: Path,
    rate: int | None,
    rollback: Path | None,
    override: bool,
    waits: bool,
    output: str,
    connection: Connection,
) -> None:
    """Begin the moves of a reassignment file.

    Throttles stay until `verify` or `cancel` finds that nothing moves any more; with --wait they
    go at the end. Executing it again with another --throttle changes the rate.
    """
    wanted = read_json(path, read_reassignment)
    there = current_assignment(connection)
    _check(there, wanted, override)
    current = {tp: there.origins[tp] for tp in wanted}
    if rollback is not None:
        write_json(rollback, write_reassignment(current))
    show_plan(current, wanted, sizes(connection, there.racks))
    if rate is not None:
        already = {tp: Move(it.origin, it.adding) for tp, it in there.moving.items()}
        throttle(connection, already | moves(there.origins, wanted), rate)
        click.echo(f"Brokers copy at most {rate} bytes a second.", err=True)
    fresh = {
        tp: replicas
        for tp, replicas in wanted.items()
        if tp not in there.moving or there.moving[tp].target != replicas
    }
    if fresh:
        reassign(connection, fresh)
    click.echo(f"Moving {counted(len(wanted), 'partition')}.", err=True)
    if waits:
        wait(connection, there, wanted)
        _verify(connection, wanted, output, preserve=False, timeout_s=connection.timeout_s)
    elif output == "json":
        print_json(_named(wanted))


@reassignment.command()
@click.argument("path", type=FILE, metavar="FILE")
@PRESERVE
@output_option
@connection_options
def verify(path: Path, preserve_throttles: bool, output: str, connection: Connection) -> None:
    """Say how far the moves of a file are; exits with 0 when all are complete.

    Throttles are taken off when nothing in the cluster moves any more.
    """
    wanted = read_json(path, read_reassignment)
    _verify(connection, wanted, output, preserve=preserve_throttles)


@reassignment.command()
@click.argument("path", required=False, type=FILE, metavar="[FILE]")
@click.option("--all", "everything", is_flag=True, help="All moves that are under way.")
@PRESERVE
@results_option
@connection_options
def cancel(
    path: Path | None, everything: bool, preserve_throttles: bool, connection: Connection
) -> None:
    """End the moves of a file, or all: partitions stay on the replicas they had."""
    if (path is None) != everything:
        raise InputError("say which moves: FILE or --all, one of them")
    moving = current_assignment(connection).moving
    named = moving.keys() if path is None else read_json(path, read_reassignment).keys()
    ended = sorted(moving.keys() & named)
    if ended:
        reassign(connection, dict.fromkeys(ended))
    left = _named({tp: moving[tp].origin for tp in ended})
    done(f"Cancelled the moves of {counted(len(ended), 'partition')}.", *left)
    if not preserve_throttles:
        _unthrottle(connection, {tp.topic for tp in named})


@reassignment.command(name="list")
@output_option
@connection_options
def list_(output: str, connection: Connection) -> None:
    """Show what is being moved, and how much of it the new replicas have."""
    there = current_assignment(connection)
    known = sizes(connection, there.racks) if there.moving else {}
    rows: list[dict[str, Any]] = []
    for tp, each in sorted(there.moving.items()):
        size = max((known.get((broker, tp), 0) for broker in each.replicas), default=0)
        least = min((known.get((broker, tp), 0) for broker in each.adding), default=size)
        rows.append(
            {
                "topic": tp.topic,
                "partition": tp.partition,
                "replicas": each.replicas,
                "adding": each.adding,
                "removing": each.removing,
                "copied": f"{100 * least // size if size else 100} %",
            }
        )
    show_rows(rows, output, "No partition is being moved.")


def _named(layout: Layout) -> list[dict[str, Any]]:
    """The partitions of a layout as values."""
    return [
        {"topic": tp.topic, "partition": tp.partition, "replicas": list(replicas)}
        for tp, replicas in sorted(layout.items())
    ]


def _check(there: CurrentAssignment, wanted: Layout, override: bool) -> None:
    """Every partition and broker must be there, and none on its way elsewhere."""
    with Attempts() as attempts:
        for tp, replicas in wanted.items():
            with attempts.one():
                if tp not in there.layout:
                    raise CommandError(f"there is no partition {tp}")
                coming = set(replicas) - set(there.layout[tp])
                if missing := sorted(coming - there.racks.keys()):
                    raise CommandError(f"{tp}: there is no broker {missing[0]}, or it does not run")
                moving = there.moving.get(tp)
                if moving and moving.target != replicas and not override:
                    raise CommandError(
                        f"{tp} is being moved to {list(moving.target)} already: "
                        "wait for it, cancel it, or give --override"
                    )


def _verify(
    connection: Connection,
    wanted: Layout,
    output: str,
    *,
    preserve: bool,
    timeout_s: float = 0,
) -> None:
    """Show and tidy; for so long a broker may be late to learn that moves have ended."""
    give_up_at = time.monotonic() + timeout_s
    pause = threading.Event()
    while True:
        there = current_assignment(connection)
        rows = [_verdict(there, tp, replicas) for tp, replicas in sorted(wanted.items())]
        late = any(row["state"] == "different" for row in rows)
        if not late or time.monotonic() >= give_up_at:
            break
        pause.wait(POLL_S)
    show_rows(rows, output, "")
    if not there.moving and not preserve:
        _unthrottle(connection, {tp.topic for tp in wanted})
    open_ = [row for row in rows if row["state"] != "complete"]
    if open_:
        raise CommandError(f"{len(open_)} of {len(rows)} partitions are not where they should be")


def _verdict(
    there: CurrentAssignment, tp: TopicPartition, wanted: tuple[int, ...]
) -> dict[str, Any]:
    current = there.layout.get(tp)
    if current is None:
        state = "missing"
    elif tp in there.moving:
        state = "moving" if there.moving[tp].target == wanted else "moving elsewhere"
    else:
        state = "complete" if current == wanted else "different"
    return {
        "topic": tp.topic,
        "partition": tp.partition,
        "state": state,
        "replicas": current,
        "wanted": wanted,
    }


def _unthrottle(connection: Connection, topics: set[str]) -> None:
    unthrottle(connection, topics)
    click.echo("No throttles are left.", err=True)
