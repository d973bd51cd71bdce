"""What is asked of the brokers about groups.

librdkafka does the talking, but for what it does not know: deleting single offsets, and the
topics that members subscribe to.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from barnabas_broker.cli.admin import AdminSession, call
from barnabas_broker.cli.client import Connection
from barnabas_broker.cli.errors import Attempts, CommandError, attempt
from barnabas_broker.cli.groups.assignors import Subscriber
from barnabas_broker.cli.groups.strategies import Partition
from barnabas_broker.cli.offsets import LATEST, list_offsets
from barnabas_kafka.client import CoordinatorOf, CoordinatorType, describe_groups, list_groups
from barnabas_kafka.errors import ErrorCode
from barnabas_kafka.protocol.embedded import subscribed_topics
from barnabas_kafka.protocol.messages.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
    OffsetDeleteResponse,
)

if TYPE_CHECKING:
    from confluent_kafka.admin import AdminClient, ClusterMetadata

INACTIVE = ("Empty", "Dead")
UNKNOWN = "Unknown"
OF_CONSUMERS = ("consumer", "")
"""Protocol types of groups that consumers use, or that only have offsets."""
UNKNOWN_OFFSETS = (
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    ErrorCode.LEADER_NOT_AVAILABLE,
    ErrorCode.NOT_LEADER_OR_FOLLOWER,
)


@dataclass(frozen=True, slots=True)
class Listed:
    """A group, its type ("Classic", "Consumer") and its state ("Stable")."""

    name: str
    type: str
    state: str


@dataclass(frozen=True, slots=True)
class Member:
    """A member and the partitions it was given, in order."""

    id: str
    instance_id: str | None
    host: str
    client_id: str
    partitions: tuple[Partition, ...]
    target: tuple[Partition, ...] | None = None
    """Where it is on its way to, in groups of the newer protocol."""


@dataclass(frozen=True, slots=True)
class Described:
    """A group as its coordinator describes it."""

    name: str
    type: str
    state: str
    strategy: str
    coordinator: str
    members: tuple[Member, ...]

    @property
    def is_active(self) -> bool:
        """Whether it has members, whose commits would overwrite whatever is set from outside."""
        return self.state not in INACTIVE


class Groups:
    """The groups of a cluster."""

    def __init__(
        self, connection: Connection, client: AdminClient, metadata: ClusterMetadata
    ) -> None:
        self.connection = connection
        self.client = client
        self.topics = {name: sorted(topic.partitions) for name, topic in metadata.topics.items()}
        self._timeout = {"request_timeout": connection.timeout_s}

    @classmethod
    def of(cls, connection: Connection) -> Groups:
        """Connect; CommandError where no broker answers."""
        return cls(connection, *connection.admin())

    def list(
        self,
        states: Collection[str] = (),
        types: Collection[str] = (),
        attempts: Attempts | None = None,
    ) -> tuple[Listed, ...]:
        """All groups, or those in one of the states and of one of the types, by name.

        Brokers that do not list theirs are failures of `attempts`; without them the first is
        raised.
        """
        results = call(self.connection, list_groups())
        for broker, error in results.errors.items():
            with attempt(attempts):
                raise CommandError(f"broker {broker} does not list its groups: {error}")
        listed = {
            each.group_id: Listed(
                each.group_id, each.type.title() or UNKNOWN, each.state or UNKNOWN
            )
            for groups in results.values.values()
            for each in groups
            if each.protocol_type in OF_CONSUMERS
        }
        return tuple(
            each
            for _, each in sorted(listed.items())
            if (not states or each.state.lower() in states)
            and (not types or each.type.lower() in types)
        )

    def describe(self, group: str) -> Described | None:
        """The group; None where there is none of that name."""
        futures = self.client.describe_consumer_groups([group], **self._timeout)
        try:
            found = self.connection.answer(futures[group])
        except CommandError as error:
            if error.code == ErrorCode.GROUP_ID_NOT_FOUND:  # As brokers of 4.0 and later say.
                return None
            raise
        state = state_name(found.state)
        if state == "Dead":
            return None
        node = found.coordinator
        members = sorted((_member(each) for each in found.members), key=lambda member: member.id)
        return Described(
            group,
            found.type.name.title(),
            state,
            found.partition_assignor,
            f"{node.host}:{node.port}  ({node.id})",
            tuple(members),
        )

    def committed(self, group: str) -> dict[Partition, int]:
        """The offsets it has committed."""
        from confluent_kafka import ConsumerGroupTopicPartitions

        asked = [ConsumerGroupTopicPartitions(group)]
        (future,) = self.client.list_consumer_group_offsets(asked, **self._timeout).values()
        found = self.connection.answer(future).topic_partitions or []
        return {(each.topic, each.partition): each.offset for each in found if each.offset >= 0}

    def commit(self, group: str, offsets: Mapping[Partition, int]) -> None:
        """Set offsets; CommandError where one is not taken."""
        from confluent_kafka import ConsumerGroupTopicPartitions, TopicPartition

        wanted = [TopicPartition(*each, offset) for each, offset in offsets.items()]
        asked = [ConsumerGroupTopicPartitions(group, wanted)]
        (future,) = self.client.alter_consumer_group_offsets(asked, **self._timeout).values()
        for each in self.connection.answer(future).topic_partitions or []:
            if each.error is not None:
                raise CommandError(f"{each.topic}-{each.partition}: {each.error.str()}")

    def offsets(self, partitions: Iterable[Partition], when: int) -> dict[Partition, int]:
        """The offset of each partition at a moment; -1 where there is none."""
        found: dict[Partition, int] = {}
        for each, future in list_offsets(self.connection, self.client, list(partitions), when):
            try:
                found[each] = self.connection.answer(future).offset
            except CommandError as error:
                raise CommandError(f"{each[0]}-{each[1]}: {error.message}") from None
        return found

    def ends(
        self, partitions: Iterable[Partition], attempts: Attempts | None = None
    ) -> dict[Partition, int]:
        """Where partitions end; without those that are gone, or that have no leader.

        Other failures are of `attempts`; without them the first is raised.
        """
        found: dict[Partition, int] = {}
        for each, future in list_offsets(self.connection, self.client, list(partitions), LATEST):
            with attempt(attempts):
                try:
                    found[each] = self.connection.answer(future).offset
                except CommandError as error:
                    if error.code not in UNKNOWN_OFFSETS:
                        text = f"cannot look up the end of {each[0]}-{each[1]}: {error.message}"
                        raise CommandError(text, code=error.code) from None
        return found

    def delete(self, group: str) -> None:
        """CommandError where it has members or is not there."""
        futures = self.client.delete_consumer_groups([group], **self._timeout)
        self.connection.answer(futures[group])

    def delete_offsets(
        self, group: str, partitions: Iterable[Partition]
    ) -> dict[Partition, ErrorCode]:
        """The error code of each; CommandError where the coordinator rejects the request."""
        topics: dict[str, OffsetDeleteRequestTopic] = {}
        for name, number in partitions:
            topic = topics.setdefault(name, OffsetDeleteRequestTopic(name=name))
            topic.partitions.append(OffsetDeleteRequestPartition(partition_index=number))
        request = OffsetDeleteRequest(group_id=group, topics=list(topics.values()))
        coordinator = CoordinatorOf(CoordinatorType.GROUP, group)
        with AdminSession(self.connection) as session:
            response = session.ask(
                coordinator, request, OffsetDeleteResponse, error_code=lambda it: it.error_code
            )
        if response.error_code:
            code = ErrorCode(response.error_code)
            raise CommandError(f"{code.message} ({code.name})", code=code)
        return {
            (topic.name, each.partition_index): ErrorCode(each.error_code)
            for topic in response.topics
            for each in topic.partitions
        }

    def subscribers(self, group: str) -> tuple[Subscriber, ...]:
        """The members, what they want and what they have.

        CommandError where there is no such group, or its members do not show their topics.
        """
        results = call(self.connection, describe_groups([group]))
        for error in results.errors.values():
            raise CommandError(f"group {group}: {error}", code=error.code)
        found = results.one(group)
        described = self.describe(group)
        has = {each.id: each.partitions for each in described.members} if described else {}
        members = []
        for each in found.members:
            topics = subscribed_topics(each.metadata)
            if topics is None:
                raise CommandError(f"group {group} does not report what {each.client_id} reads")
            partitions = frozenset(has.get(each.member_id, ()))
            members.append(
                Subscriber(
                    each.member_id, topics, each.client_id, each.group_instance_id, partitions
                )
            )
        if not members:
            raise CommandError(f"group {group} has no members")
        return tuple(members)


def state_name(state: Any) -> str:
    """`PREPARING_REBALANCING` of the library as Kafka's PreparingRebalance."""
    words = "".join(word.title() for word in state.name.split("_"))
    return words.replace("Rebalancing", "Rebalance")


def _member(found: Any) -> Member:
    return Member(
        found.member_id,
        found.group_instance_id,
        f"/{found.host.lstrip('/')}",
        found.client_id,
        _partitions_of(found.assignment) or (),
        _partitions_of(found.target_assignment),
    )


def _partitions_of(assignment: Any) -> tuple[Partition, ...] | None:
    if assignment is None:
        return None
    return tuple(sorted((each.topic, each.partition) for each in assignment.topic_partitions))
