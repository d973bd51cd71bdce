"""Operations on the cluster and on topics: describe, create, delete, add partitions."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

from barnabas_kafka.client.cluster import ANY_BROKER, CONTROLLER, ClusterView
from barnabas_kafka.client.errors import check
from barnabas_kafka.client.operation import (
    ONLY,
    Ask,
    Operation,
    Outcomes,
    Results,
    every,
    outcome,
    read_single,
    single,
    unique,
)
from barnabas_kafka.protocol.messages.create_partitions import (
    CreatePartitionsAssignment,
    CreatePartitionsRequest,
    CreatePartitionsResponse,
    CreatePartitionsTopic,
)
from barnabas_kafka.protocol.messages.create_topics import (
    CreatableReplicaAssignment,
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from barnabas_kafka.protocol.messages.delete_topics import (
    DeleteTopicsRequest,
    DeleteTopicsResponse,
    DeleteTopicState,
)
from barnabas_kafka.protocol.messages.metadata import (
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponse,
    MetadataResponseTopic,
)
from barnabas_kafka.protocol.registry import ApiKey

BROKER_DEFAULT = -1
"""As number of partitions or replicas: what the broker has as default (KIP-464)."""
METADATA_NEWEST = 12
DELETE_TOPICS_BY_ID = 6


@dataclass(frozen=True, slots=True)
class NewTopic:
    """A topic to create, by counts or by the replicas of each partition."""

    name: str
    partitions: int = BROKER_DEFAULT
    replication_factor: int = BROKER_DEFAULT
    config: Mapping[str, str] = field(default_factory=dict)
    assignments: Sequence[Sequence[int]] = ()


@dataclass(frozen=True, slots=True)
class CreatedTopic:
    """What was created. A broker before Kafka 2.4 sends neither counts nor id: -1 and zero."""

    name: str
    topic_id: UUID
    partitions: int
    replication_factor: int


@dataclass(frozen=True, slots=True)
class PartitionDescription:
    """One partition; `leader` is NO_NODE where it has none."""

    partition: int
    leader: int
    leader_epoch: int
    replicas: tuple[int, ...]
    isr: tuple[int, ...]
    offline: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class TopicDescription:
    """A topic. Its id is zero where the broker has no topic ids (before Kafka 2.8)."""

    name: str
    topic_id: UUID
    internal: bool
    partitions: tuple[PartitionDescription, ...]


def describe_cluster() -> Operation[ClusterView]:
    """Cluster id, controller, and the live brokers with their racks."""

    def request(ask: Ask[Any]) -> MetadataRequest:
        return MetadataRequest(topics=[], allow_auto_topic_creation=ask.version < 4)

    def read(response: MetadataResponse) -> ClusterView:
        check(response.error_code)
        return ClusterView.of(response)

    return Operation(
        name="describe cluster",
        keys=[ONLY],
        target=lambda _: ANY_BROKER,
        request=request,
        api_key=ApiKey.METADATA,
        read=read_single(read),
        finish=single,
        newest=METADATA_NEWEST,
    )


def list_topics() -> Operation[Mapping[str, TopicDescription]]:
    """All topics, internal ones too. A topic that the broker cannot describe is left out."""

    def request(ask: Ask[Any]) -> MetadataRequest:
        everything: list[MetadataRequestTopic] | None = [] if ask.version == 0 else None
        return MetadataRequest(topics=everything, allow_auto_topic_creation=ask.version < 4)

    def read(response: MetadataResponse) -> Mapping[str, TopicDescription]:
        check(response.error_code)
        topics = (_description(each) for each in response.topics if not each.error_code)
        return {each.name: each for each in topics}

    return Operation(
        name="list topics",
        keys=[ONLY],
        target=lambda _: ANY_BROKER,
        request=request,
        api_key=ApiKey.METADATA,
        read=read_single(read),
        finish=single,
        newest=METADATA_NEWEST,
    )


def describe_topics(names: Iterable[str]) -> Operation[Results[str, TopicDescription]]:
    """These topics. Nothing is created, whatever `auto.create.topics.enable` is."""

    def request(ask: Ask[str]) -> MetadataRequest:
        topics = [MetadataRequestTopic(name=name) for name in ask.keys]
        return MetadataRequest(topics=topics, allow_auto_topic_creation=False)

    def read(ask: Ask[str], response: MetadataResponse) -> Outcomes[str, TopicDescription]:
        check(response.error_code)
        return {
            topic.name or "": outcome(topic.error_code, None, _description(topic))
            for topic in response.topics
        }

    return Operation(
        name="describe topics",
        keys=unique(names),
        target=lambda _: ANY_BROKER,
        request=request,
        api_key=ApiKey.METADATA,
        read=read,
        finish=every,
        newest=METADATA_NEWEST,
    )


def create_topics(
    topics: Iterable[NewTopic], *, validate_only: bool = False
) -> Operation[Results[str, CreatedTopic]]:
    """Create topics. Raises ValueError where one name is given twice.

    A retry after a lost connection can be answered with TOPIC_ALREADY_EXISTS although it was this
    call that has created the topic.
    """
    given = list(topics)
    by_name = {topic.name: topic for topic in given}
    if len(by_name) < len(given):
        raise ValueError("a topic is to be created twice")

    def request(ask: Ask[str]) -> CreateTopicsRequest:
        return CreateTopicsRequest(
            topics=[_creatable(by_name[name]) for name in ask.keys],
            timeout_ms=ask.timeout_ms,
            validate_only=validate_only,
        )

    def read(ask: Ask[str], response: CreateTopicsResponse) -> Outcomes[str, CreatedTopic]:
        return {
            each.name: outcome(
                each.error_code,
                each.error_message,
                CreatedTopic(
                    each.name, each.topic_id, each.num_partitions, each.replication_factor
                ),
            )
            for each in response.topics
        }

    return Operation(
        name="create topics",
        keys=list(by_name),
        target=lambda _: CONTROLLER,
        request=request,
        api_key=ApiKey.CREATE_TOPICS,
        read=read,
        finish=every,
    )


def delete_topics(names: Iterable[str]) -> Operation[Results[str, None]]:
    """Delete topics by name, with their records."""

    def request(ask: Ask[str]) -> DeleteTopicsRequest:
        if ask.version >= DELETE_TOPICS_BY_ID:
            topics = [DeleteTopicState(name=name) for name in ask.keys]
            return DeleteTopicsRequest(topics=topics, timeout_ms=ask.timeout_ms)
        return DeleteTopicsRequest(topic_names=list(ask.keys), timeout_ms=ask.timeout_ms)

    def read(ask: Ask[str], response: DeleteTopicsResponse) -> Outcomes[str, None]:
        return {
            each.name or "": outcome(each.error_code, each.error_message, None)
            for each in response.responses
        }

    return Operation(
        name="delete topics",
        keys=unique(names),
        target=lambda _: CONTROLLER,
        request=request,
        api_key=ApiKey.DELETE_TOPICS,
        read=read,
        finish=every,
    )


def create_partitions(
    counts: Mapping[str, int],
    *,
    assignments: Mapping[str, Sequence[Sequence[int]]] | None = None,
    validate_only: bool = False,
) -> Operation[Results[str, None]]:
    """Bring topics to this total number of partitions; `assignments` are of the new ones."""
    given = assignments or {}

    def topic(name: str) -> CreatePartitionsTopic:
        wanted = given.get(name)
        replicas = (
            None
            if wanted is None
            else [CreatePartitionsAssignment(broker_ids=list(each)) for each in wanted]
        )
        return CreatePartitionsTopic(name=name, count=counts[name], assignments=replicas)

    def request(ask: Ask[str]) -> CreatePartitionsRequest:
        return CreatePartitionsRequest(
            topics=[topic(name) for name in ask.keys],
            timeout_ms=ask.timeout_ms,
            validate_only=validate_only,
        )

    def read(ask: Ask[str], response: CreatePartitionsResponse) -> Outcomes[str, None]:
        return {
            each.name: outcome(each.error_code, each.error_message, None)
            for each in response.results
        }

    return Operation(
        name="create partitions",
        keys=list(counts),
        target=lambda _: CONTROLLER,
        request=request,
        api_key=ApiKey.CREATE_PARTITIONS,
        read=read,
        finish=every,
    )


def _creatable(topic: NewTopic) -> CreatableTopic:
    return CreatableTopic(
        name=topic.name,
        num_partitions=BROKER_DEFAULT if topic.assignments else topic.partitions,
        replication_factor=BROKER_DEFAULT if topic.assignments else topic.replication_factor,
        assignments=[
            CreatableReplicaAssignment(partition_index=index, broker_ids=list(replicas))
            for index, replicas in enumerate(topic.assignments)
        ],
        configs=[CreatableTopicConfig(name=key, value=text) for key, text in topic.config.items()],
    )


def _description(topic: MetadataResponseTopic) -> TopicDescription:
    partitions = sorted(topic.partitions, key=lambda each: each.partition_index)
    return TopicDescription(
        name=topic.name or "",
        topic_id=topic.topic_id,
        internal=topic.is_internal,
        partitions=tuple(
            PartitionDescription(
                partition=each.partition_index,
                leader=each.leader_id,
                leader_epoch=each.leader_epoch,
                replicas=tuple(each.replica_nodes),
                isr=tuple(each.isr_nodes),
                offline=tuple(each.offline_replicas),
            )
            for each in partitions
        ),
    )
