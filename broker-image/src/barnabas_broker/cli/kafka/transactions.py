"""`kafka-transactions`: open transactions and those that hang, in the words of Kafka's tool."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any, Final

import click

from barnabas_broker.cli.admin import AdminSession
from barnabas_broker.cli.client import Connection
from barnabas_broker.cli.errors import CommandError
from barnabas_broker.cli.kafka.tool import connected, tool
from barnabas_broker.cli.transactions import (
    MINUTE_MS,
    NONE_OPEN,
    coordinated,
    hanging,
    leaders,
    listed,
    producers,
    write_abort,
)
from barnabas_kafka.ids import TopicPartition
from barnabas_kafka.protocol.messages.describe_producers import ProducerState
from barnabas_kafka.protocol.messages.list_transactions import ListTransactionsRequest

NUMBER: Final = click.IntRange(min=0)
HANGING_AFTER_MINUTES: Final = 15
LISTED: Final = ("TransactionalId", "Coordinator", "ProducerId", "TransactionState")
DESCRIBED: Final = (
    "CoordinatorId", "TransactionalId", "ProducerId", "ProducerEpoch", "TransactionState",
    "TransactionTimeoutMs", "CurrentTransactionStartTimeMs", "TransactionDurationMs",
    "TopicPartitions",
)  # fmt: skip
PRODUCERS: Final = (
    "ProducerId", "ProducerEpoch", "LatestCoordinatorEpoch", "LastSequence", "LastTimestamp",
    "CurrentTransactionStartOffset",
)  # fmt: skip
HANGING: Final = (
    "Topic", "Partition", "ProducerId", "ProducerEpoch", "CoordinatorEpoch", "StartOffset",
    "LastTimestamp", "Duration(min)",
)  # fmt: skip

Given = dict[str, Any]


@tool("kafka-transactions")
@click.argument("command", metavar="COMMAND")
@click.option("--duration-filter", type=int, metavar="MS", help="list: only open for longer.")
@click.option("--transactional-id", help="describe: which one.")
@click.option("--topic", help="abort, describe-producers, find-hanging: which topic.")
@click.option("--partition", type=NUMBER, help="The same: which of its partitions.")
@click.option("--broker-id", type=NUMBER, help="describe-producers, find-hanging: which replica.")
@click.option("--start-offset", type=NUMBER, help="abort: where the transaction begins.")
@click.option("--producer-id", type=NUMBER, help="abort, where brokers are older than 3.0.")
@click.option("--producer-epoch", type=NUMBER, help="The same.")
@click.option("--coordinator-epoch", type=int, help="The same.")
@click.option(
    "--max-transaction-timeout", type=NUMBER, metavar="MINUTES",
    help="find-hanging: only idle for longer, 15 minutes by default.",
)  # fmt: skip
@connected()
def main(command: str, connection: Connection, **options: Any) -> None:
    """Show transactions with COMMAND list, describe, describe-producers or find-hanging.

    COMMAND abort ends one that hangs.
    """
    if command not in COMMANDS:
        raise click.UsageError(f"invalid choice: '{command}' (choose from {', '.join(COMMANDS)})")
    run, takes, needs = COMMANDS[command]
    given = {name: value for name, value in options.items() if value is not None}
    for name in given:
        if name not in takes:
            raise click.UsageError(f"unrecognized arguments: '{_option(name)}'")
    for name in needs:
        if name not in given:
            raise click.UsageError(f"argument {_option(name)} is required")
    with AdminSession(connection) as session:
        run(session, given)


def _list(session: AdminSession, given: Given) -> None:
    request = ListTransactionsRequest(duration_filter=given.get("duration_filter", -1))
    rows = [
        (each.transactional_id, broker, each.producer_id, each.transaction_state)
        for broker, response in listed(session, request)
        for each in response.transaction_states
    ]
    _print(LISTED, rows)


def _describe(session: AdminSession, given: Given) -> None:
    broker, state = coordinated(session, given["transactional_id"])
    started_ms = state.transaction_start_time_ms
    is_open = started_ms >= 0
    row = (
        broker,
        state.transactional_id,
        state.producer_id,
        state.producer_epoch,
        state.transaction_state,
        state.transaction_timeout_ms,
        started_ms if is_open else None,
        _now_ms() - started_ms if is_open else None,
        ",".join(f"{it.topic}-{index}" for it in state.topics for index in it.partitions),
    )
    _print(DESCRIBED, [row])


def _describe_producers(session: AdminSession, given: Given) -> None:
    rows = [
        (
            each.producer_id,
            each.producer_epoch,
            each.coordinator_epoch,
            each.last_sequence,
            each.last_timestamp,
            None if each.current_txn_start_offset == NONE_OPEN else each.current_txn_start_offset,
        )
        for each in producers(session, _partition(given), given.get("broker_id"))
    ]
    _print(PRODUCERS, rows)


def _find_hanging(session: AdminSession, given: Given) -> None:
    if not given.keys() & {"topic", "broker_id"}:
        raise click.UsageError("find-hanging needs --topic or --broker-id, to know where to look")
    if "partition" in given and "topic" not in given:
        raise click.UsageError("--partition needs --topic")
    topics = [given["topic"]] if "topic" in given else []
    broker = given.get("broker_id")
    places = leaders(session, topics, broker)
    minutes = given.get("max_transaction_timeout", HANGING_AFTER_MINUTES)
    wanted = [tp for tp in places if given.get("partition", tp.partition) == tp.partition]
    rows = [
        (
            found.tp.topic,
            found.tp.partition,
            found.producer.producer_id,
            found.producer.producer_epoch,
            found.producer.coordinator_epoch,
            found.producer.current_txn_start_offset,
            found.producer.last_timestamp,
            (_now_ms() - found.producer.last_timestamp) // MINUTE_MS,
        )
        for found in hanging(session, wanted, minutes, broker)
    ]
    _print(HANGING, rows)


def _abort(session: AdminSession, given: Given) -> None:
    tp = _partition(given)
    if "start_offset" in given:
        start = given["start_offset"]
        found = [p for p in producers(session, tp) if p.current_txn_start_offset == start]
        if not found:
            raise CommandError(f"no transaction is open in {tp} from offset {start} on")
        write_abort(session, tp, found[0])
        return
    if "producer_id" not in given:
        raise click.UsageError(
            "abort needs --start-offset, or for brokers older than 3.0 --producer-id,"
            " --producer-epoch and --coordinator-epoch"
        )
    for name in ("producer_epoch", "coordinator_epoch"):
        if name not in given:
            raise click.UsageError(f"Missing required argument {_option(name)}")
    state = ProducerState(
        producer_id=given["producer_id"],
        producer_epoch=given["producer_epoch"],
        coordinator_epoch=given["coordinator_epoch"],
    )
    write_abort(session, tp, state)


Run = Callable[[AdminSession, Given], None]
PLACE: Final = ("topic", "partition")

#: By name: what runs it, the options it takes, and those it needs.
COMMANDS: Final[dict[str, tuple[Run, Sequence[str], Sequence[str]]]] = {
    "list": (_list, ("duration_filter",), ()),
    "describe": (_describe, ("transactional_id",), ("transactional_id",)),
    "describe-producers": (_describe_producers, (*PLACE, "broker_id"), PLACE),
    "abort": (
        _abort,
        (*PLACE, "start_offset", "producer_id", "producer_epoch", "coordinator_epoch"),
        PLACE,
    ),
    "find-hanging": (_find_hanging, (*PLACE, "broker_id", "max_transaction_timeout"), ()),
}


def _partition(given: Given) -> TopicPartition:
    return TopicPartition(given["topic"], given["partition"])


def _option(name: str) -> str:
    return f"--{name.replace('_', '-')}"


def _now_ms() -> int:
    return time.time_ns() // 1_000_000


def _print(columns: Sequence[str], rows: Sequence[Sequence[Any]]) -> None:
    """Every cell as wide as the widest of its column, with a tab behind, as scripts split them."""
    lines = [list(columns), *([str(cell) for cell in row] for row in rows)]
    widths = [max(map(len, cells)) for cells in zip(*lines, strict=True)]
    for line in lines:
        click.echo("".join(f"{cell:<{w}}\t" for cell, w in zip(line, widths, strict=True)))
