"""What is asked of the brokers about replicas: where they lie, how big they are, what moves.

librdkafka does not know these requests; throttles, which are settings, go through it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from barnabas_broker.cli.client import Connection
from barnabas_broker.cli.configs import alter_resource
from barnabas_broker.cli.errors import Attempts, CommandError
from barnabas_broker.cli.wire import Wire, addresses, ask_controller
from barnabas_kafka.errors import ErrorCode
from barnabas_kafka.ids import TopicPartition
from barnabas_kafka.protocol.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    AlterPartitionReassignmentsResponse,
    ReassignablePartition,
    ReassignableTopic,
)
from barnabas_kafka.protocol.messages.describe_log_dirs import (
    DescribeLogDirsRequest,
    DescribeLogDirsResponse,
)
from barnabas_kafka.protocol.messages.list_partition_reassignments import (
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsResponse,
)
from barnabas_kafka.reassignment.files import Layout
from barnabas_kafka.reassignment.throttles import (
    BROKER_SETTINGS,
    TOPIC_SETTINGS,
    Move,
    throttled_brokers,
    throttled_replicas,
)

Sizes = Mapping[tuple[int, TopicPartition], int]
"""Bytes of a partition's log on a broker."""


@dataclass(frozen=True, slots=True)
class Moving:
    """A partition that is being moved: all its replicas, those that come and those that go."""

    replicas: tuple[int, ...]
    adding: tuple[int, ...]
    removing: tuple[int, ...]

    @property
    def origin(self) -> tuple[int, ...]:
        """What it had, and would have again without the move."""
        return tuple(each for each in self.replicas if each not in self.adding)

    @property
    def target(self) -> tuple[int, ...]:
        """What it is to have."""
        return tuple(each for each in self.replicas if each not in self.removing)


@dataclass(frozen=True, slots=True)
class Standing:
    """The cluster at one moment. `layout` has the replicas that are there, moving ones included."""

    racks: Mapping[int, str | None]
    addresses: Mapping[int, tuple[str, int]]
    layout: Layout
    moving: Mapping[TopicPartition, Moving]

    @property
    def origins(self) -> Layout:
        """The replicas of each partition apart from moves."""
        return {**self.layout, **{tp: each.origin for tp, each in self.moving.items()}}


def standing(connection: Connection) -> Standing:
    """Look at everything, with the eyes of the controller: other brokers hear of it later."""
    request = ListPartitionReassignmentsRequest(timeout_ms=_timeout_ms(connection))
    # The moves first: one that ends meanwhile is still shown as one.
    response, told = ask_controller(
        connection, request, ListPartitionReassignmentsResponse, refused=_is_no_controller
    )
    _check("cannot list reassignments", response.error_code, response.error_message)
    moving = {
        TopicPartition(topic.name, each.partition_index): Moving(
            tuple(each.replicas), tuple(each.adding_replicas), tuple(each.removing_replicas)
        )
        for topic in response.topics
        for each in topic.partitions
    }
    layout = {
        TopicPartition(topic.name, each.partition_index): tuple(each.replica_nodes)
        for topic in told.topics
        if topic.name is not None
        for each in topic.partitions
    }
    racks = {broker.node_id: broker.rack or None for broker in told.brokers}
    return Standing(racks, addresses(told), layout, moving)


def reassign(connection: Connection, wanted: Mapping[TopicPartition, Sequence[int] | None]) -> None:
    """Begin moves, or with None end them; every refusal is told."""
    by_topic: dict[str, list[ReassignablePartition]] = {}
    for tp, replicas in wanted.items():
        listed = None if replicas is None else list(replicas)
        entry = ReassignablePartition(partition_index=tp.partition, replicas=listed)
        by_topic.setdefault(tp.topic, []).append(entry)
    request = AlterPartitionReassignmentsRequest(
        timeout_ms=_timeout_ms(connection),
        topics=[ReassignableTopic(name=name, partitions=it) for name, it in by_topic.items()],
    )
    response, _ = ask_controller(
        connection, request, AlterPartitionReassignmentsResponse, refused=_is_no_controller
    )
    _check("cannot move partitions", response.error_code, response.error_message)
    with Attempts() as attempts:
        for topic in response.responses:
            for each in topic.partitions:
                with attempts.one(forgive=ErrorCode.NO_REASSIGNMENT_IN_PROGRESS):
                    name = f"{topic.name}-{each.partition_index}"
                    _check(f"cannot move {name}", each.error_code, each.error_message)


def sizes(connection: Connection, brokers: Mapping[int, tuple[str, int]]) -> Sizes:
    """How big each replica is; a broker that does not answer is left out."""
    found: dict[tuple[int, TopicPartition], int] = {}
    for broker, address in brokers.items():
        try:
            with Wire(address, connection.timeout_s) as wire:
                response = wire.ask(DescribeLogDirsRequest(topics=None), DescribeLogDirsResponse)
        except CommandError as error:
            error.show()
            continue
        for result in response.results:
            for topic in result.topics:
                for each in topic.partitions:
                    if not each.is_future_key:
                        tp = TopicPartition(topic.name, each.partition_index)
                        found[broker, tp] = each.partition_size
    return found


def throttle(connection: Connection, moving: Mapping[TopicPartition, Move], rate: int) -> None:
    """Limit what the brokers of these moves send and fetch for them, in bytes a second."""
    client, there = connection.admin()
    for topic, settings in throttled_replicas(moving).items():
        alter_resource(connection, client, ("topics", topic), settings, ())
    rates = dict.fromkeys(BROKER_SETTINGS, str(rate))
    for broker in throttled_brokers(moving.values()):
        if broker in there.brokers:
            alter_resource(connection, client, ("brokers", str(broker)), rates, ())


def unthrottle(connection: Connection, topics: Iterable[str]) -> None:
    """Take throttles off the topics that are there and off all brokers that live.

    Not only where some broker says that there are any: it may not have heard of them yet.
    """
    client, there = connection.admin()
    for topic in sorted(topics):
        if topic in there.topics:
            alter_resource(connection, client, ("topics", topic), {}, TOPIC_SETTINGS)
    for broker in sorted(there.brokers):
        alter_resource(connection, client, ("brokers", str(broker)), {}, BROKER_SETTINGS)


def _is_no_controller(
    response: AlterPartitionReassignmentsResponse | ListPartitionReassignmentsResponse,
) -> bool:
    return response.error_code == ErrorCode.NOT_CONTROLLER


def _timeout_ms(connection: Connection) -> int:
    return int(connection.timeout_s * 1000)


def _check(what: str, code: int, message: str | None) -> None:
    if code:
        name = ErrorCode(code).name
        raise CommandError(
            f"{what}: {message} ({name})" if message else f"{what}: {name}", code=code
        )
