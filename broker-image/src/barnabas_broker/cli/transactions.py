"""`barnabas transactions`: which are open, how they stand, and the end of one that hangs."""

from __future__ import annotations

import time
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import click

from barnabas_broker.cli.admin import AdminSession
from barnabas_broker.cli.client import Connection, connection_options
from barnabas_broker.cli.errors import Attempts, CommandError, attempt
from barnabas_broker.cli.output import done, output_option, print_json, print_table, results_option
from barnabas_kafka.client import ANY_BROKER, OneBroker, send_to_brokers
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
    request = ListTransactionsRequest(
        state_filters=list(states), duration_filter=-1 if longer_than is None else longer_than
    )
    with Attempts() as attempts:
        with AdminSession(connection) as session:
            found = listed(session, request, attempts)
        rows = [
            {
                "transactional_id": each.transactional_id,
                "coordinator": broker,
                "producer_id": each.producer_id,
                "state": each.transaction_state,
            }
            for broker, response in found
            for each in response.transaction_states
        ]
        ordered = sorted(rows, key=lambda row: str(row["transactional_id"]))
        none = "" if attempts.failed else "There are no such transactions."
        _show(ordered, output, none=none)


@transactions.command()
@click.argument("transactional_id")
@output_option
@connection_options
def describe(transactional_id: str, output: str, connection: Connection) -> None:
    """Show how a transactional id stands, and the partitions of its open transaction."""
    with AdminSession(connection) as session:
        broker, state = coordinated(session, transactional_id)
    _show([_described(state, broker)], output)


@transactions.command()
@TOPIC
@PARTITION
@output_option
@connection_options
def describe_producers(topic: str, partition: int, output: str, connection: Connection) -> None:
    """Show who writes to a partition, and where the open transaction of each begins."""
    tp = TopicPartition(topic, partition)
    with AdminSession(connection) as session:
        found = producers(session, tp)
    _show([Open(tp, each).row() for each in found], output, none=f"{tp} has no producers.")


@transactions.command()
@TOPIC
@PARTITION
@click.option(
    "--start-offset", type=click.IntRange(min=0), required=True, help="Where it begins there."
)
@results_option
@connection_options
def abort(topic: str, partition: int, start_offset: int, connection: Connection) -> None:
    """Abort, in one partition, a transaction that no coordinator will ever end."""
    tp = TopicPartition(topic, partition)
    with AdminSession(connection) as session:
        for producer in producers(session, tp):
            if producer.current_txn_start_offset == start_offset:
                break
        else:
            raise CommandError(f"no transaction is open in {tp} from offset {start_offset} on")
        write_abort(session, tp, producer)
    done(
        f"aborted in {tp}: producer {producer.producer_id}, from offset {start_offset} on",
        {
            "topic": topic,
            "partition": partition,
            "producer_id": producer.producer_id,
            "start_offset": start_offset,
        },
    )


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
    with AdminSession(connection) as session:
        found = hanging(session, leaders(session, list(topics)), idle_minutes)
    _show([each.row() for each in found], output, none="No transaction hangs.")


def coordinated(session: AdminSession, transactional_id: str) -> tuple[int, TransactionState]:
    """The coordinator of a transactional id, and the state that it describes."""
    silent: CommandError | None = None
    for broker in session.brokers():
        try:
            (state,) = session.ask(
                OneBroker(broker),
                DescribeTransactionsRequest(transactional_ids=[transactional_id]),
                DescribeTransactionsResponse,
            ).transaction_states
        except CommandError as error:  # It may not be the coordinator.
            silent = silent or error
            continue
        if state.error_code != ErrorCode.NOT_COORDINATOR:
            raise_error(state.error_code, f"{transactional_id} is not described")
            return broker, state
    raise silent or CommandError(f"no broker coordinates {transactional_id}")


def hanging(
    session: AdminSession,
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
        for producer in producers(session, tp, broker)
        if producer.current_txn_start_offset != NONE_OPEN and producer.last_timestamp <= oldest_ms
    ]
    known = known_open(session, {each.producer.producer_id for each in suspects})
    return [each for each in suspects if (each.producer.producer_id, each.tp) not in known]


def write_abort(session: AdminSession, tp: TopicPartition, producer: ProducerState) -> None:
    """Write the marker that aborts what a producer has open in a partition."""
    marker = WritableTxnMarker(
        producer_id=producer.producer_id,
        producer_epoch=producer.producer_epoch,
        transaction_result=False,
        coordinator_epoch=max(producer.coordinator_epoch, 0),
        topics=[WritableTxnMarkerTopic(name=tp.topic, partition_indexes=[tp.partition])],
    )
    leader = leaders(session, [tp.topic]).get(tp)
    if leader is None:
        raise CommandError(f"{tp} has no leader")
    request = WriteTxnMarkersRequest(markers=[marker])
    response = session.ask(OneBroker(leader), request, WriteTxnMarkersResponse)
    code = response.markers[0].topics[0].partitions[0].error_code
    raise_error(code, f"the transaction in {tp} is not aborted")


def known_open(session: AdminSession, ids: set[int]) -> set[tuple[int, TopicPartition]]:
    """The partitions that coordinators have in the open transactions of producers."""
    if not ids:
        return set()
    known = set()
    for broker, response in listed(
        session, ListTransactionsRequest(producer_id_filters=sorted(ids))
    ):
        names = [each.transactional_id for each in response.transaction_states]
        described = session.ask(
            OneBroker(broker),
            DescribeTransactionsRequest(transactional_ids=names),
            DescribeTransactionsResponse,
        )
        for state in described.transaction_states:
            if state.transaction_state in OPEN_STATES:
                for topic in state.topics:
                    for index in topic.partitions:
                        known.add((state.producer_id, TopicPartition(topic.topic, index)))
    return known


def listed(
    session: AdminSession, request: ListTransactionsRequest, attempts: Attempts | None = None
) -> list[tuple[int, ListTransactionsResponse]]:
    """The response of every broker, with its id.

    Brokers that do not answer, or reject the request, are failures of `attempts`; without them the
    first is raised.
    """
    results = session.call(
        send_to_brokers(request, ListTransactionsResponse, error_code=lambda it: it.error_code)
    )
    what = "does not list its transactions"
    for broker, error in results.errors.items():
        with attempt(attempts):
            raise CommandError(f"broker {broker} {what}: {error}")
    found = []
    for broker, response in sorted(results.values.items()):
        with attempt(attempts):
            raise_error(response.error_code, f"broker {broker} {what}")
            found.append((broker, response))
    unknown = {each for _, response in found for each in response.unknown_state_filters}
    if unknown:
        raise CommandError(f"there is no state {', '.join(sorted(unknown))}")
    return found


def leaders(
    session: AdminSession, topics: list[str], broker: int | None = None
) -> dict[TopicPartition, int]:
    """The broker to ask about each partition, of all topics where none is named.

    That is its leader, or the given broker where it has a replica.
    """
    wanted = [MetadataRequestTopic(name=name) for name in topics] or None
    request = MetadataRequest(topics=wanted, allow_auto_topic_creation=False)
    metadata = session.ask(ANY_BROKER, request, MetadataResponse)
    live = {each.node_id for each in metadata.brokers}
    found = {}
    for topic in metadata.topics:
        raise_error(topic.error_code, f"topic {topic.name}")
        for partition in topic.partitions:
            asked = partition.leader_id if broker is None else broker
            if asked in live and asked in (partition.leader_id, *partition.replica_nodes):
                tp = TopicPartition(topic.name or "", partition.partition_index)
                found[tp] = asked
    return found


def producers(
    session: AdminSession, tp: TopicPartition, broker: int | None = None
) -> list[ProducerState]:
    """The producers of a partition as its leader or the given broker knows them."""
    asked = leaders(session, [tp.topic], broker).get(tp)
    if asked is None:
        raise CommandError(f"{tp} has no {'leader' if broker is None else 'such replica'}")
    topic = TopicRequest(name=tp.topic, partition_indexes=[tp.partition])
    request = DescribeProducersRequest(topics=[topic])
    response = session.ask(OneBroker(asked), request, DescribeProducersResponse)
    (partition,) = response.topics[0].partitions
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


def _show(rows: list[dict[str, Any]], output: str, *, none: str = "") -> None:
    """Print the rows; `none` says to people that there are none."""
    if output == "json":
        print_json(rows)
    elif rows:
        print_table(list(rows[0]), [list(row.values()) for row in rows])
    else:
        click.echo(none, err=True)
