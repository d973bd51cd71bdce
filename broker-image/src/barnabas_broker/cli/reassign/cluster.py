"""Requests about replicas: where and how large they are, which are moved, and how fast."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from barnabas_broker.cli.admin import AdminSession
from barnabas_broker.cli.client import Connection
from barnabas_broker.cli.errors import Attempts, CommandError
from barnabas_kafka.client import (
    CONTROLLER,
    AlterConfigOp,
    BrokerError,
    ConfigChange,
    ConfigResource,
    alter_configs,
    broker_resource,
    describe_log_dirs,
    list_topics,
    topic_resource,
)
from barnabas_kafka.errors import ErrorCode
from barnabas_kafka.ids import TopicPartition
from barnabas_kafka.protocol.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    AlterPartitionReassignmentsResponse,
    ReassignablePartition,
    ReassignableTopic,
)
from barnabas_kafka.protocol.messages.list_partition_reassignments import (
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsResponse,
)
from barnabas_kafka.protocol.messages.metadata import MetadataRequest, MetadataResponse
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
class CurrentAssignment:
    """The cluster at one moment. `layout` has the replicas that are there, moving ones included."""

    racks: Mapping[int, str | None]
    """The live brokers."""
    layout: Layout
    moving: Mapping[TopicPartition, Moving]

    @property
    def origins(self) -> Layout:
        """The replicas of each partition apart from moves."""
        return {**self.layout, **{tp: each.origin for tp, each in self.moving.items()}}


def current_assignment(connection: Connection) -> CurrentAssignment:
    """The state that the controller has; other brokers learn of changes later."""
    request = ListPartitionReassignmentsRequest(timeout_ms=_timeout_ms(connection))
    with AdminSession(connection) as session:
        # The moves first: one that ends meanwhile is still shown as one.
        response = session.ask(
            CONTROLLER,
            request,
            ListPartitionReassignmentsResponse,
            error_code=lambda it: it.error_code,
        )
        metadata = session.ask(CONTROLLER, MetadataRequest(topics=None), MetadataResponse)
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
        for topic in metadata.topics
        if topic.name is not None
        for each in topic.partitions
    }
    racks = {broker.node_id: broker.rack or None for broker in metadata.brokers}
    return CurrentAssignment(racks, layout, moving)


def reassign(connection: Connection, wanted: Mapping[TopicPartition, Sequence[int] | None]) -> None:
    """Begin moves, or with None end them; every refusal is reported."""
    by_topic: dict[str, list[ReassignablePartition]] = {}
    for tp, replicas in wanted.items():
        listed = None if replicas is None else list(replicas)
        entry = ReassignablePartition(partition_index=tp.partition, replicas=listed)
        by_topic.setdefault(tp.topic, []).append(entry)
    request = AlterPartitionReassignmentsRequest(
        timeout_ms=_timeout_ms(connection),
        topics=[ReassignableTopic(name=name, partitions=it) for name, it in by_topic.items()],
    )
    with AdminSession(connection) as session:
        response = session.ask(
            CONTROLLER,
            request,
            AlterPartitionReassignmentsResponse,
            error_code=lambda it: it.error_code,
        )
    _check("cannot move partitions", response.error_code, response.error_message)
    with Attempts() as attempts:
        for topic in response.responses:
            for each in topic.partitions:
                with attempts.one(forgive=ErrorCode.NO_REASSIGNMENT_IN_PROGRESS):
                    name = f"{topic.name}-{each.partition_index}"
                    _check(f"cannot move {name}", each.error_code, each.error_message)


def sizes(connection: Connection, brokers: Iterable[int]) -> Sizes:
    """The size of each replica; a broker that does not answer is left out."""
    with AdminSession(connection) as session:
        described = session.call(describe_log_dirs(brokers))
    for broker, error in described.errors.items():
        CommandError(f"broker {broker} does not describe its log directories: {error}").show()
    return {
        (broker, tp): replica.size
        for broker, directories in described.values.items()
        for directory in directories
        for tp, replica in directory.replicas.items()
        if not replica.future
    }


def throttle(connection: Connection, moving: Mapping[TopicPartition, Move], rate: int) -> None:
    """Limit what the brokers of these moves send and fetch for them, in bytes a second."""
    replicas = {
        topic_resource(topic): _put(settings)
        for topic, settings in throttled_replicas(moving).items()
    }
    with AdminSession(connection) as session:
        live = session.brokers()
        alter_settings(session, replicas)
        limit_brokers(
            session,
            (each for each in throttled_brokers(moving.values()) if each in live),
            dict.fromkeys(BROKER_SETTINGS, str(rate)),
        )


def limit_brokers(
    session: AdminSession, brokers: Iterable[int], settings: Mapping[str, str]
) -> None:
    """Set these limits on brokers."""
    alter_settings(session, {broker_resource(each): _put(settings) for each in brokers})


def alter_settings(
    session: AdminSession, changes: Mapping[ConfigResource, Sequence[ConfigChange]]
) -> None:
    """Change settings; CommandError naming the first topic or broker that refuses."""
    for resource, error in session.call(alter_configs(changes)).errors.items():
        kind = f"{resource.type.name.lower()}s"
        reason = str(error)
        if isinstance(error, BrokerError):
            reason = f"{error.message.rstrip('.')} ({error.code.name})"
        text = f"cannot alter the settings of {kind} {resource.name}: {reason}"
        raise CommandError(text, code=error.code)


def _put(settings: Mapping[str, str]) -> list[ConfigChange]:
    return [ConfigChange(name, AlterConfigOp.SET, value) for name, value in settings.items()]


def _drop(settings: Iterable[str]) -> list[ConfigChange]:
    return [ConfigChange(name, AlterConfigOp.DELETE) for name in settings]


def unthrottle(
    connection: Connection, topics: Iterable[str], settings: Sequence[str] = BROKER_SETTINGS
) -> None:
    """Take throttles off the topics that are there, and `settings` off all brokers that live.

    Not only where some broker says that there are any: it may not have received them yet.
    """
    with AdminSession(connection) as session:
        there = sorted(session.call(list_topics()).keys() & set(topics))
        alter_settings(session, {topic_resource(each): _drop(TOPIC_SETTINGS) for each in there})
        brokers = session.brokers()
        alter_settings(session, {broker_resource(each): _drop(settings) for each in brokers})


def _timeout_ms(connection: Connection) -> int:
    return int(connection.timeout_s * 1000)


def _check(what: str, code: int, message: str | None) -> None:
    if code:
        name = ErrorCode(code).name
        raise CommandError(
            f"{what}: {message} ({name})" if message else f"{what}: {name}", code=code
        )
