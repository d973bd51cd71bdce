"""`kafka-reassign-partitions`: partitions to other brokers, in the lines of Kafka's tool."""

from __future__ import annotations

import secrets
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import click
from click.core import ParameterSource

from barnabas_broker.cli.admin import AdminSession, call
from barnabas_broker.cli.client import Connection
from barnabas_broker.cli.errors import FAILED, CommandError
from barnabas_broker.cli.json_files import read_json
from barnabas_broker.cli.kafka import replica_moves
from barnabas_broker.cli.kafka.tool import connected, refused, tool
from barnabas_broker.cli.reassign.cluster import (
    CurrentAssignment,
    current_assignment,
    limit_brokers,
    throttle,
    unthrottle,
)
from barnabas_broker.cli.reassign.generating import generated
from barnabas_kafka.client import BrokerError, alter_partition_reassignments
from barnabas_kafka.errors import KafkaError
from barnabas_kafka.ids import TopicPartition
from barnabas_kafka.reassignment.files import (
    Layout,
    read_moves,
    read_topics,
    write_reassignment,
)
from barnabas_kafka.reassignment.throttles import BROKER_SETTINGS, Move, moves

DIRECTORY_RATE: Final = "replica.alter.log.dirs.io.max.bytes.per.second"
BUSY: Final = (
    "Cannot execute because there is an existing partition assignment.  Use --additional to "
    "override this and create a new partition assignment in addition to the existing one. The "
    "--additional flag can also be used to change the throttle by resubmitting the current "
    "reassignment."
)
REMEMBER: Final = (
    "Warning: You must run --verify periodically, until the reassignment completes, to ensure the "
    "throttle is removed."
)
MIXED_RACKS: Final = (
    "Not all brokers have rack information. Add --disable-rack-aware in command line to make "
    "replica assignment without rack information."
)

Options = dict[str, Any]


@tool("kafka-reassign-partitions")
@click.option("--generate", is_flag=True, help="Propose replicas, and change nothing.")
@click.option("--execute", is_flag=True, help="Begin the moves of a file.")
@click.option("--verify", is_flag=True, help="Say how far they are; take throttles off at the end.")
@click.option("--cancel", is_flag=True, help="End moves that are under way.")
@click.option("--list", "list_", is_flag=True, help="Show the moves that are under way.")
@click.option("--reassignment-json-file", type=click.Path(path_type=Path), metavar="FILE")
@click.option("--topics-to-move-json-file", type=click.Path(path_type=Path), metavar="FILE")
@click.option("--broker-list", metavar="ID,ID", help="generate: where the replicas are to lie.")
@click.option("--disable-rack-aware", is_flag=True, help="generate: pay no heed to racks.")
@click.option("--additional", is_flag=True, help="execute: beside the moves that are under way.")
@click.option("--throttle", type=int, metavar="BYTES", help="execute: a second, for each broker.")
@click.option("--preserve-throttles", is_flag=True, help="verify, cancel: leave throttles.")
@click.option(
    "--replica-alter-log-dirs-throttle",
    type=int,
    metavar="BYTES",
    help="execute: a second, for copies between log directories of a broker.",
)
@click.option(
    "--timeout",
    "timeout_ms",
    type=click.IntRange(min=0),
    default=10000,
    metavar="MS",
    help="execute, cancel: how long a move between log directories may wait to begin.",
)
@refused("--bootstrap-controller", why="brokers are asked; there are no KRaft controllers")
@connected(zookeeper=True)
def main(connection: Connection, zookeeper: str | None, **options: Any) -> None:
    """Move partitions to other brokers."""
    run = _action(click.get_current_context(), options)
    for name in ("throttle", "replica_alter_log_dirs_throttle"):
        if options[name] is not None and options[name] < 0:
            options[name] = None  # Kafka's default of -1.
    run(connection, options)


def _generate(connection: Connection, options: Options) -> None:
    topics = read_json(options["topics_to_move_json_file"], read_topics)
    with _failures() as problems:
        brokers = _brokers(options["broker_list"], problems)
        there = current_assignment(connection)
        problems += [f"Unknown broker id {it}" for it in brokers if it not in there.racks]
        names = {tp.topic for tp in there.layout}
        problems += [f"Topic {topic} not found." for topic in topics if topic not in names]
        racks = {
            broker: None if options["disable_rack_aware"] else there.racks[broker]
            for broker in brokers
            if broker in there.racks
        }
        if len({rack is None for rack in racks.values()}) > 1:
            problems.append(MIXED_RACKS)
        _check(problems)
        current = {tp: it for tp, it in there.layout.items() if tp.topic in topics}
        try:
            proposed = generated(there.origins, racks, topics, brokers, secrets.randbelow)
        except KafkaError as error:
            raise CommandError(error.message) from None
    click.echo(f"Current partition replica assignment\n{write_reassignment(current)}\n")
    click.echo(f"Proposed partition reassignment configuration\n{write_reassignment(proposed)}")


def _execute(connection: Connection, options: Options) -> None:
    wanted, directories = read_json(options["reassignment_json_file"], read_moves)
    with _failures() as problems:
        there = current_assignment(connection)
        if there.moving and not options["additional"]:
            click.echo(BUSY)
            raise SystemExit(FAILED)
        _check_known(there, wanted, problems)
    current = {tp: there.layout[tp] for tp in wanted}
    click.echo(
        f"Current partition replica assignment\n\n{write_reassignment(current)}\n\n"
        "Save this to use as the --reassignment-json-file option during rollback"
    )
    rate, copying = options["throttle"], options["replica_alter_log_dirs_throttle"]
    if rate is not None or copying is not None:
        click.echo(REMEMBER)
    if rate is not None:
        already = {tp: Move(it.origin, it.adding) for tp, it in there.moving.items()}
        with _failures():
            throttle(connection, already | moves(there.origins, wanted), rate)
        click.echo(f"The inter-broker throttle limit was set to {rate} B/s")
    if copying is not None:
        with _failures():
            _limit_copies(connection, {broker for _, broker in directories}, copying)
        click.echo(f"The replica-alter-dir throttle limit was set to {copying} B/s")
    _alter(connection, wanted, "Error reassigning partition(s):")
    plural = "" if len(wanted) == 1 else "s"
    click.echo(f"Successfully started partition reassignment{plural} for {_joined(wanted)}")
    if directories:
        with _failures():
            replica_moves.begin(connection, directories, options["timeout_ms"])


def _verify(connection: Connection, options: Options) -> None:
    wanted, directories = read_json(options["reassignment_json_file"], read_moves)
    with _failures():
        there = current_assignment(connection)
        copies = list(
            replica_moves.progress(directories, replica_moves.places(connection, directories))
        )
    click.echo("Status of partition reassignment:")
    for tp, replicas in sorted(wanted.items()):
        click.echo(_status(there, tp, replicas))
    click.echo("\n".join(line for line, _ in copies))
    under_way = bool(there.moving) or any(copying for _, copying in copies)
    if not under_way and not options["preserve_throttles"]:
        _clear_throttles(connection, there, wanted)


def _cancel(connection: Connection, options: Options) -> None:
    wanted, directories = read_json(options["reassignment_json_file"], read_moves)
    with _failures():
        there = current_assignment(connection)
    active = sorted(there.moving.keys() & wanted.keys())
    if active:
        plural = "" if len(active) == 1 else "s"
        refusal = f"Error cancelling partition reassignment{plural} for:"
        _alter(connection, dict.fromkeys(active), refusal)
        click.echo(f"Successfully cancelled partition reassignment{plural} for: {_joined(active)}")
    else:
        click.echo("None of the specified partition reassignments are active.")
    with _failures():
        found = replica_moves.places(connection, directories)
        back = {it: place.current for it, place in found.items() if place.current and place.future}
        if back:
            replica_moves.begin(connection, back, options["timeout_ms"])
        else:
            click.echo("None of the specified partition moves are active.")
    if not options["preserve_throttles"]:
        _clear_throttles(connection, there, wanted)


def _list(connection: Connection, _options: Options) -> None:
    with _failures():
        moving = current_assignment(connection).moving
    if not moving:
        click.echo("No partition reassignments found.")
        return
    click.echo("Current partition reassignments:")
    for tp, each in sorted(moving.items()):
        adding = f" adding: {_ids(each.adding)}." if each.adding else ""
        removing = f" removing: {_ids(each.removing)}." if each.removing else ""
        click.echo(f"{tp}: replicas: {_ids(each.replicas)}.{adding}{removing}")


#: By name: what runs it, the options it needs, and those it takes besides.
ACTIONS: Final = {
    "generate": (_generate, ("topics_to_move_json_file", "broker_list"), ("disable_rack_aware",)),
    "execute": (
        _execute,
        ("reassignment_json_file",),
        ("additional", "throttle", "replica_alter_log_dirs_throttle", "timeout_ms"),
    ),
    "verify": (_verify, ("reassignment_json_file",), ("preserve_throttles",)),
    "cancel": (_cancel, ("reassignment_json_file",), ("preserve_throttles", "timeout_ms")),
    "list_": (_list, (), ()),
}
CONNECTION: Final = frozenset({"bootstrap", "client_config", "zookeeper", "zookeeper_config"})


def _action(ctx: click.Context, options: Options) -> Any:
    """The one action; click.UsageError naming all options that do not go with it."""
    chosen = [name for name in ACTIONS if options[name]]
    if len(chosen) != 1:
        names = ", ".join(map(_option, ACTIONS))
        raise click.UsageError(f"Command must include exactly one action: {names}")
    (action,) = chosen
    run, needs, takes = ACTIONS[action]
    given = [
        name
        for name in options
        if name not in ACTIONS and ctx.get_parameter_source(name) is ParameterSource.COMMANDLINE
    ]
    problems = [
        f'Option "[{_option(name)[2:]}]" can\'t be used with action "[{_option(action)[2:]}]"'
        for name in given
        if name not in needs and name not in takes and name not in CONNECTION
    ]
    missing = [f"[{_option(name)[2:]}]" for name in needs if name not in given]
    problems += [f'Missing required argument "{name}"' for name in missing]
    if problems:
        raise click.UsageError("\n".join(problems))
    return run


def _option(name: str) -> str:
    return f"--{name.removesuffix('_ms').rstrip('_').replace('_', '-')}"


@contextmanager
def _failures() -> Iterator[list[str]]:
    """Print failures on standard output, where Kafka's tool does; exit code 1."""
    try:
        yield []
    except CommandError as error:
        for line in error.message.splitlines():
            click.echo(f"Error: {line}")
        raise SystemExit(FAILED) from None


def _check(problems: Sequence[str]) -> None:
    if problems:
        raise CommandError("\n".join(problems))


def _brokers(text: str, problems: list[str]) -> list[int]:
    """The broker ids of --broker-list."""
    parts = [part.strip() for part in text.split(",")]
    if wrong := [part for part in parts if not part.isdigit()]:
        problems.append(f"--broker-list takes broker ids, not {', '.join(map(repr, wrong))}")
    ids = [int(part) for part in parts if part.isdigit()]
    if twice := sorted({broker for broker in ids if ids.count(broker) > 1}):
        problems.append(f"Broker list contains duplicate entries: [{_ids(twice)}]")
    return list(dict.fromkeys(ids))


def _check_known(there: CurrentAssignment, wanted: Layout, problems: list[str]) -> None:
    """All brokers must live, and all partitions be there."""
    brokers = {broker for replicas in wanted.values() for broker in replicas}
    problems += [f"Unknown broker id {it}" for it in sorted(brokers - there.racks.keys())]
    if missing := wanted.keys() - there.layout.keys():
        problems.append(f"Unable to find partition: {', '.join(map(str, sorted(missing)))}")
    _check(problems)


def _limit_copies(connection: Connection, brokers: Iterable[int], rate: int) -> None:
    """Limit what brokers copy between their log directories, in bytes a second."""
    with AdminSession(connection) as session:
        limit_brokers(session, sorted(brokers), {DIRECTORY_RATE: str(rate)})


def _alter(
    connection: Connection, wanted: Mapping[TopicPartition, Sequence[int] | None], refusal: str
) -> None:
    """Begin or cancel moves; every refusal is printed below `refusal`."""
    with _failures():
        errors = call(connection, alter_partition_reassignments(wanted)).errors
    if errors:
        click.echo(refusal)
        for tp, error in sorted(errors.items()):
            text = error.message if isinstance(error, BrokerError) else error
            click.echo(f"{tp}: {text}")
        raise SystemExit(FAILED)


def _status(there: CurrentAssignment, tp: TopicPartition, wanted: tuple[int, ...]) -> str:
    if tp in there.moving:
        return f"Reassignment of partition {tp} is still in progress."
    current = there.layout.get(tp, ())
    if current == wanted:
        return f"Reassignment of partition {tp} is completed."
    return (
        f"There is no active reassignment of partition {tp}, but replica set is {_ids(current)} "
        f"rather than {_ids(wanted)}."
    )


def _clear_throttles(connection: Connection, there: CurrentAssignment, wanted: Layout) -> None:
    brokers = sorted(there.racks.keys() | {it for each in wanted.values() for it in each})
    topics = sorted({tp.topic for tp in wanted})
    plural = "" if len(brokers) == 1 else "s"
    click.echo(f"Clearing broker-level throttles on broker{plural} {_ids(brokers)}")
    plural = "" if len(topics) == 1 else "s"
    click.echo(f"Clearing topic-level throttles on topic{plural} {','.join(topics)}")
    with _failures():
        unthrottle(connection, topics, (*BROKER_SETTINGS, DIRECTORY_RATE))


def _joined(partitions: Iterable[TopicPartition]) -> str:
    return ",".join(map(str, sorted(partitions)))


def _ids(brokers: Iterable[int]) -> str:
    return ",".join(map(str, brokers))
