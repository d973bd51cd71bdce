"""`barnabas consume`: the records of a topic, as text, in a format of one's own or as JSON lines.

Without --group partitions are assigned, not subscribed to: no consumer group is joined and no
offset is committed.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from barnabas_broker.cli.client import Connection, connection_options, describe, failures
from barnabas_broker.cli.completion import group_names, topic_names
from barnabas_broker.cli.errors import CommandError, InputError, similar
from barnabas_broker.cli.group_member import GroupMember
from barnabas_broker.cli.offsets import parse_moment, parse_partitions
from barnabas_broker.cli.output import counted, output_option
from barnabas_broker.cli.record_format import parse_format
from barnabas_broker.cli.records import PARTS, as_json, as_text, parse_parts
from barnabas_broker.cli.stopping import stop_flag
from barnabas_broker.cli.time_limits import DAY_S, Seconds

if TYPE_CHECKING:
    import threading

    from confluent_kafka import Consumer, KafkaError, Message, TopicPartition

Writer = Callable[["Message"], bytes]

BATCH_RECORDS = 500
# How long a batch may take to fill; also how soon an interrupt or the idle timeout is noticed.
POLL_S = 0.1


@dataclass(slots=True, kw_only=True)
class Progress:
    """What has been read, and when it is enough."""

    limit: int | None
    idle_s: float | None
    open_ends: dict[int, int] | None = None
    """With --until-end: the end offset of each partition not yet read to its end."""
    count: int = 0
    last_record_s: float = field(default_factory=time.monotonic)

    def wanted(self) -> int:
        """How many records to ask for at once; 0 when it is enough."""
        if self.open_ends is not None and not self.open_ends:
            return 0
        if self.limit is None:
            return BATCH_RECORDS
        return min(BATCH_RECORDS, self.limit - self.count)

    def note(self, partition: int, offset: int) -> None:
        """A record has been printed, or the partition holds nothing before `offset + 1`."""
        if self.open_ends is not None and offset + 1 >= self.open_ends.get(partition, 0):
            self.open_ends.pop(partition, None)

    def idle_too_long(self) -> bool:
        """Whether nothing has come for longer than allowed."""
        return self.idle_s is not None and time.monotonic() - self.last_record_s > self.idle_s


@click.command()
@click.argument("topic", shell_complete=topic_names)
@click.option(
    "--group",
    metavar="NAME",
    shell_complete=group_names,
    help="Read as a member of this group: begin where it is, and commit what was printed.",
)
@click.option("--partition", "partitions", metavar="NUMBERS", help="Such as 0 or 0,2-4; else all.")
@click.option(
    "--offset",
    default="latest",
    show_default=True,
    metavar="N|earliest|latest|@TIME",
    help="Where to begin; @ and a timestamp or date begins at the first record as late as that.",
)
@click.option("--from-beginning", is_flag=True, help="The same as --offset earliest.")
@click.option("--max-messages", type=click.IntRange(min=1), help="Stop after so many records.")
@click.option("--until-end", is_flag=True, help="Stop at what is the end of each partition now.")
@click.option(
    "--idle-timeout",
    "idle_s",
    type=Seconds(longest_s=DAY_S),
    metavar="SECONDS",
    help="Stop when no record has come for so long.",
)
@click.option(
    "--isolation-level",
    type=click.Choice(["read_uncommitted", "read_committed"]),
    default="read_uncommitted",
    show_default=True,
)
@click.option(
    "--print",
    "shown",
    default="value",
    show_default=True,
    metavar="PARTS",
    help=f"What to print of a record, of {','.join(PARTS)}.",
)
@click.option(
    "--separator", default="\\t", show_default=True, help="What stands between the parts."
)
@click.option(
    "--null-marker",
    default="null",
    show_default=True,
    help="What stands for null; nothing in --format.",
)
@click.option(
    "--format",
    "pattern",
    metavar="TEXT",
    help="How to print a record, with kcat's tokens: %k %s %t %p %o %T %h %K %S, and \\n.",
)
@output_option(plain=("text",), many=True)
@connection_options
def consume(
    topic: str,
    group: str | None,
    partitions: str | None,
    offset: str,
    from_beginning: bool,
    connection: Connection,
    **options: Any,
) -> None:
    """Print the records of a topic.

    It goes on until it is interrupted or one of the options says that it is enough. With --group,
    --offset earliest and latest say where a partition begins that the group has no offset of.
    """
    write = _writer(options)
    begin = "earliest" if from_beginning else offset
    progress = Progress(limit=options["max_messages"], idle_s=options["idle_s"])
    isolation = {"isolation.level": options["isolation_level"]}
    if group is None:
        selection = (topic, partitions)
        until_end = options["until_end"]
        _read(connection, selection, begin, (progress, write), isolation, until_end=until_end)
    else:
        if partitions is not None:
            raise InputError("--partition and --group: the group says who reads which partition")
        if begin not in ("earliest", "latest"):
            raise InputError(
                f"--offset {begin} and --group: earliest or latest is for partitions that the group"
                " has no offset of; `barnabas groups reset-offsets` sets the others"
            )
        member = GroupMember(connection, topic, group, {**isolation, "auto.offset.reset": begin})
        _read_as_member(member, progress, write, until_end=options["until_end"])
    click.echo(f"Read {counted(progress.count, 'record')}.", err=True)


def _read(
    connection: Connection,
    selection: tuple[str, str | None],
    begin: str,
    printing: tuple[Progress, Writer],
    properties: dict[str, Any],
    *,
    until_end: bool,
) -> None:
    """Read partitions outside of any group."""
    progress, write = printing
    topic = selection[0]
    consumer, errors = _consumer(connection, properties)
    try:
        numbers = _existing(connection, consumer, errors, selection)
        with failures(f"cannot read {topic}"):
            assignment = [_start(connection, consumer, topic, n, begin) for n in numbers]
            if until_end:
                progress.open_ends = _ends(connection, consumer, assignment)
            consumer.assign(assignment)
        _pump(consumer, progress, write)
    except KeyboardInterrupt:
        pass  # The ordinary way to end it.
    finally:
        consumer.close()


def _read_as_member(
    member: GroupMember, progress: Progress, write: Writer, *, until_end: bool
) -> None:
    """Read what the group assigns."""
    try:
        with failures("cannot join the group"):
            member.join()
        ends = (lambda: member.ends) if until_end else None
        _pump(member.consumer, progress, write, printed=member.store, ends=ends)
    except KeyboardInterrupt:
        pass  # The ordinary way to end it.
    finally:
        member.close()


def _pump(consumer: Consumer, progress: Progress, write: Writer, **hooks: Any) -> None:
    """Read and print until it is enough, or until Ctrl-C or SIGTERM."""
    with stop_flag() as stopped:
        _pump_until(stopped, consumer, progress, write, **hooks)


def _pump_until(
    stopped: threading.Event,
    consumer: Consumer,
    progress: Progress,
    write: Writer,
    *,
    printed: Callable[[Mapping[int, int]], None] = lambda _: None,
    ends: Callable[[], dict[int, int] | None] | None = None,
) -> None:
    """The same, until the flag is set.

    `printed` is called with the next offset of each partition of which records were written. `ends`
    are the open ends where these change while it reads.
    """
    from confluent_kafka import KafkaError

    out = sys.stdout.buffer
    while (wanted := progress.wanted()) and not stopped.is_set():
        read: dict[int, int] = {}
        messages = consumer.consume(wanted, POLL_S)
        if ends is not None:
            progress.open_ends = ends()
        for message in messages:
            partition, offset = message.partition() or 0, message.offset() or 0
            error = message.error()
            if error is None:
                out.write(write(message))
                progress.count += 1
                progress.last_record_s = time.monotonic()
                progress.note(partition, offset)
                read[partition] = offset + 1
            elif error.code() == KafkaError._PARTITION_EOF:
                progress.note(partition, offset - 1)
            elif not error.retriable():
                where = f"{message.topic()}-{partition}"
                raise CommandError(f"cannot read {where}: {describe(error)}", code=error.code())
        out.flush()
        printed(read)
        if progress.idle_too_long():
            return


def _consumer(
    connection: Connection, properties: dict[str, Any]
) -> tuple[Consumer, list[KafkaError]]:
    """A consumer outside any group, and the list its connection errors go to."""
    from confluent_kafka import Consumer

    connection.knock()
    errors: list[KafkaError] = []
    config = connection.config(
        {
            "group.id": "barnabas-cli",  # The library wants one; nothing is ever committed to it.
            "enable.auto.commit": False,
            "enable.partition.eof": True,
            "auto.offset.reset": "error",
            **properties,
            "error_cb": errors.append,
        }
    )
    with failures("the client configuration is refused", InputError):
        return Consumer(config), errors


def _existing(
    connection: Connection,
    consumer: Consumer,
    errors: list[KafkaError],
    selection: tuple[str, str | None],
) -> list[int]:
    """The partitions asked for, all of which are there."""
    topic, partitions = selection
    found = connection.metadata(consumer, errors, topic).topics[topic]
    if found.error is not None:
        near = similar(topic, connection.metadata(consumer, errors).topics)
        text = f"cannot read {topic}: {describe(found.error)}{near}"
        raise CommandError(text, code=found.error.code())
    numbers = parse_partitions(partitions) if partitions is not None else set(found.partitions)
    if missing := numbers - set(found.partitions):
        raise CommandError(f"topic {topic} has no partition {min(missing)}")
    return sorted(numbers)


def _start(
    connection: Connection, consumer: Consumer, topic: str, partition: int, begin: str
) -> TopicPartition:
    """One partition and the offset to begin at; a number outside its log is refused."""
    from confluent_kafka import TopicPartition

    if begin.startswith("@"):
        at = TopicPartition(topic, partition, parse_moment(begin[1:]))
        (found,) = consumer.offsets_for_times([at], timeout=connection.timeout_s)
        return found
    low, high = _bounds(connection, consumer, TopicPartition(topic, partition))
    if begin in ("earliest", "latest"):
        return TopicPartition(topic, partition, low if begin == "earliest" else high)
    if not begin.isdigit():
        raise InputError(f"--offset {begin}: not a number, earliest, latest or @TIME")
    if not low <= int(begin) <= high:
        raise CommandError(f"{topic}-{partition} has offsets {low} to {high}, not {begin}")
    return TopicPartition(topic, partition, int(begin))


def _ends(
    connection: Connection, consumer: Consumer, assignment: list[TopicPartition]
) -> dict[int, int]:
    """The end offset of each partition that has anything to read before it."""
    ends = {
        start.partition: (start.offset, _bounds(connection, consumer, start)[1])
        for start in assignment
    }
    return {number: end for number, (start, end) in ends.items() if 0 <= start < end}


def _bounds(
    connection: Connection, consumer: Consumer, partition: TopicPartition
) -> tuple[int, int]:
    """The first offset and the one after the last."""
    bounds = consumer.get_watermark_offsets(partition, timeout=connection.timeout_s)
    if bounds is None:
        raise CommandError(f"cannot read {partition.topic}: no answer in time")
    return bounds


def _writer(options: dict[str, Any]) -> Writer:
    """How a record becomes the bytes that are printed."""
    if options["pattern"] is not None:
        where = click.get_current_context().get_parameter_source
        given = {each: where(each) is ParameterSource.COMMANDLINE for each in options}
        beside = {"shown": "--print", "separator": "--separator", "output": "--output"}
        if twice := [name for option, name in beside.items() if given[option]]:
            raise InputError(f"--format says all that is printed: leave out {', '.join(twice)}")
        null = options["null_marker"].encode() if given["null_marker"] else b""
        return parse_format(options["pattern"], null)
    if options["output"] == "json":
        return as_json
    parts = parse_parts(options["shown"])
    separator = options["separator"].replace("\\t", "\t").encode()
    null = options["null_marker"].encode()
    return lambda message: as_text(message, parts, separator, null)
