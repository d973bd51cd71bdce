"""`barnabas transactions`: which are open, how they stand, and the end of one that hangs."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import click

from barnabas_broker.cli.client import Connection, connection_options
from barnabas_broker.cli.errors import CommandError
from barnabas_broker.cli.output import output_option, print_json, print_table
from barnabas_broker.cli.wire import Wire, broker_addresses
from barnabas_kafka.errors import ErrorCode
from barnabas_kafka.ids import TopicPartition
from barnabas_kafka.protocol.messages.describe_producers import (
    DescribeProducersRequest,
    DescribeProducersResponse,
    ProducerState,
    TopicRequest,
)
from barnabas_kafka.protocol.messages.describe_transactions import (
    DescribeTransactionsRequest,
    DescribeTransactionsResponse,
    TransactionState,
)
from barnabas_kafka.protocol.messages.list_transactions import (
    ListTransactionsRequest,
    ListTransactionsResponse,
)
from barnabas_kafka.protocol.messages.metadata import (
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponse,
)
from barnabas_kafka.protocol.messages.write_txn_markers import (
    WritableTxnMarker,
    WritableTxnMarkerTopic,
    WriteTxnMarkersRequest,
    WriteTxnMarkersResponse,
)

NONE_OPEN = -1
MINUTE_MS = 60_000
OPEN_STATES = ("Ongoing", "PrepareCommit", "PrepareAbort")

TOPIC = click.option("--topic", required=True)
PARTITION = click.option("--partition", type=click.IntRange(min=0), required=True)


@dataclass(frozen=True, slots=True)
class Open:
    """A transaction that a partition holds open."""

    tp: TopicPartition
    producer: ProducerState

    def row(self) -> dict[str, Any]:
        """As it is printed."""
        return {
            "topic": self.tp.topic,
            "partition": self.tp.partition,
            "producer_id": self.producer.producer_id,
            "producer_epoch": self.producer.producer_epoch,
            "start_offset": self.producer.current_txn_start_offset,
            "last_timestamp_ms": self.producer.last_timestamp,
        }


@click.group(name="transactions")
def transactions() -> None:
    """Show transactions, and abort one that hangs."""


@transactions.command(name="list")
@click.option("--state", "states", multiple=True, help="Only in this state; may be repeated.")
@click.option("--longer-than", type=click.IntRange(min=0), metavar="MS", help="Open for so long.")
@output_option
@connection_options
def list_all(
    states: tuple[str, ...], longer_than: int | None, output: str, connection: Connection
) -> None:
    """List transactional ids with the broker that coordinates each."""
    rows = [
        {
            "transactional_id": each.transactional_id,
            "coordinator": broker,
            "producer_id": each.producer_id,
            "state": each.transaction_state,
        }
        for broker, answer in listed(
            connection,
            ListTransactionsRequest(
                state_filters=list(states),
                duration_filter=-1 if longer_than is None else longer_than,
            ),
        )
        for each in answer.transaction_states
    ]
    _show(sorted(rows, key=lambda row: str(row["transactional_id"])), output)


@transactions.command()
@click.argument("transactional_id")
@output_option
@connection_options
def describe(transactional_id: str, output: str, connection: Connection) -> None:
    """Show how a transactional id stands, and the partitions of its open transaction."""
    broker, state = coordinated(connection, transactional_id)
    _show([_described(state, broker)], output)


@transactions.command()
@TOPIC
@PARTITION
@output_option
@connection_options
def describe_producers(topic: str, partition: int, output: str, connection: Connection) -> None:
    """Show who writes to a partition, and where the open transaction of each begins."""
    tp = TopicPartition(topic, partition)
    _show([Open(tp, each).row() for each in producers(connection, tp)], output)


@transactions.command()
@TOPIC
@PARTITION
@click.option(
    "--start-offset", type=click.IntRange(min=0), required=True, help="Where it begins there."
)
@connection_options
def abort(topic: str, partition: int, start_offset: int, connection: Connection) -> None:
    """Abort, in one partition, a transaction that no coordinator will ever end."""
    tp = TopicPartition(topic, partition)
    for producer in producers(connection, tp):
        if producer.current_txn_start_offset == start_offset:
            break
    else:
        raise CommandError(f"no transaction is open in {tp} from offset {start_offset} on")
    write_abort(connection, tp, producer)
    click.echo(f"aborted in {tp}: producer {producer.producer_id}, from offset {start_offset} on")


@transactions.command()
@click.option("--topic", "topics", multiple=True, help="All topics otherwise; may be repeated.")
@click.option(
    "--idle-minutes",
    type=click.IntRange(min=0),
    default=15,
    show_default=True,
    help="Only where nothing was written for so long.",
)
@output_option
@connection_options
def find_hanging(
    topics: tuple[str, ...], idle_minutes: int, output: str, connection: Connection
) -> None:
    """Find transactions that a partition holds open and no coordinator knows of."""
    found = hanging(connection, leaders(connection, list(topics)), idle_minutes)
    _show([each.row() for each in found], output)


def coordinated(connection: Connection, transactional_id: str) -> tuple[int, TransactionState]:
    """How a transactional id stands, and which broker says so."""
    for broker, wire in brokers(connection):
        (state,) = wire.ask(
            DescribeTransactionsRequest(transactional_ids=[transactional_id]),
            DescribeTransactionsResponse,
        ).transaction_states
        if state.error_code != ErrorCode.NOT_COORDINATOR:
            raise_error(state.error_code, f"{transactional_id} is not described")
            return broker, state
    raise CommandError(f"no broker coordinates {transactional_id}")


def hanging(
    connection: Connection,
    partitions: Iterable[TopicPartition],
    idle_minutes: int,
    broker: int | None = None,
) -> list[Open]:
    """What partitions hold open, idle for that long, and no coordinator knows of.

    The leaders are asked, or the broker that is given.
    """
    oldest_ms = time.time_ns() // 1_000_000 - idle_minutes * MINUTE_MS
    suspects = [
        Open(tp, producer)
        for tp in sorted(partitions)
        for producer in producers(connection, tp, broker)
        if producer.current_txn_start_offset != NONE_OPEN and producer.last_timestamp <= oldest_ms
    ]
    known = known_open(connection, {each.producer.producer_id for each in suspects})
    return [each for each in suspects if (each.producer.producer_id, each.tp) not in known]


def write_abort(connection: Connection, tp: TopicPartition, producer: ProducerState) -> None:
    """Write the marker that aborts what a producer has open in a partition."""
    marker = WritableTxnMarker(
        producer_id=producer.producer_id,
        producer_epoch=producer.producer_epoch,
        transaction_result=False,
        coordinator_epoch=max(producer.coordinator_epoch, 0),
        topics=[WritableTxnMarkerTopic(name=tp.topic, partition_indexes=[tp.partition])],
    )
    address = leaders(connection, [tp.topic]).get(tp)
    if address is None:
        raise CommandError(f"{tp} has no leader")
    with Wire(address, connection.timeout_s) as wire:
        answer = wire.ask(WriteTxnMarkersRequest(markers=[marker]), WriteTxnMarkersResponse)
    code = answer.markers[0].topics[0].partitions[0].error_code
    raise_error(code, f"the transaction in {tp} is not aborted")


def known_open(connection: Connection, ids: set[int]) -> set[tuple[int, TopicPartition]]:
    """The partitions that coordinators have in the open transactions of producers."""
    if not ids:
        return set()
    known = set()
    for broker, wire in brokers(connection):
        request = ListTransactionsRequest(producer_id_filters=sorted(ids))
        answer = wire.ask(request, ListTransactionsResponse)
        raise_error(answer.error_code, f"broker {broker} does not list its transactions")
        names = [each.transactional_id for each in answer.transaction_states]
        described = wire.ask(
            DescribeTransactionsRequest(transactional_ids=names), DescribeTransactionsResponse
        )
        for state in described.transaction_states:
            if state.transaction_state in OPEN_STATES:
                for topic in state.topics:
                    for index in topic.partitions:
                        known.add((state.producer_id, TopicPartition(topic.topic, index)))
    return known


def listed(
    connection: Connection, request: ListTransactionsRequest
) -> Iterator[tuple[int, ListTransactionsResponse]]:
    """What every broker lists, with its id; CommandError where one refuses."""
    for broker, wire in brokers(connection):
        answer = wire.ask(request, ListTransactionsResponse)
        raise_error(answer.error_code, f"broker {broker} does not list its transactions")
        if answer.unknown_state_filters:
            raise CommandError(f"there is no state {', '.join(answer.unknown_state_filters)}")
        yield broker, answer


def brokers(connection: Connection) -> Iterator[tuple[int, Wire]]:
    """Every broker of the cluster with a connection to it, closed after its turn."""
    for broker, address in sorted(broker_addresses(connection).items()):
        with Wire(address, connection.timeout_s) as wire:
            yield broker, wire


def leaders(
    connection: Connection, topics: list[str], broker: int | None = None
) -> dict[TopicPartition, tuple[str, int]]:
    """Where to ask about each partition, of all topics where none is named.

    That is its leader, or the broker that is given if it has a replica.
    """
    addresses = broker_addresses(connection)
    wanted = [MetadataRequestTopic(name=name) for name in topics] or None
    with Wire(min(addresses.items())[1], connection.timeout_s) as wire:
        request = MetadataRequest(topics=wanted, allow_auto_topic_creation=False)
        told = wire.ask(request, MetadataResponse)
    found = {}
    for topic in told.topics:
        raise_error(topic.error_code, f"topic {topic.name}")
        for partition in topic.partitions:
            asked = partition.leader_id if broker is None else broker
            if asked in addresses and asked in (partition.leader_id, *partition.replica_nodes):
                tp = TopicPartition(topic.name or "", partition.partition_index)
                found[tp] = addresses[asked]
    return found


def producers(
    connection: Connection, tp: TopicPartition, broker: int | None = None
) -> list[ProducerState]:
    """Who writes to a partition, as its leader has it or the broker that is given."""
    address = leaders(connection, [tp.topic], broker).get(tp)
    if address is None:
        raise CommandError(f"{tp} has no {'leader' if broker is None else 'such replica'}")
    asked = TopicRequest(name=tp.topic, partition_indexes=[tp.partition])
    with Wire(address, connection.timeout_s) as wire:
        answer = wire.ask(DescribeProducersRequest(topics=[asked]), DescribeProducersResponse)
    (partition,) = answer.topics[0].partitions
    raise_error(partition.error_code, f"the producers of {tp} are not described")
    return partition.active_producers


def _described(state: TransactionState, broker: int) -> dict[str, Any]:
    return {
        "transactional_id": state.transactional_id,
        "coordinator": broker,
        "producer_id": state.producer_id,
        "producer_epoch": state.producer_epoch,
        "state": state.transaction_state,
        "timeout_ms": state.transaction_timeout_ms,
        "started_ms": state.transaction_start_time_ms,
        "partitions": [
            f"{topic.topic}-{index}" for topic in state.topics for index in topic.partitions
        ],
    }


def raise_error(code: int, what: str) -> None:
    """CommandError where a broker refused."""
    if code:
        raise CommandError(f"{what}: {ErrorCode(code).name}")


def _show(rows: list[dict[str, Any]], output: str) -> None:
    if output == "json":
        print_json(rows)
    elif rows:
        print_table(list(rows[0]), [list(row.values()) for row in rows])
