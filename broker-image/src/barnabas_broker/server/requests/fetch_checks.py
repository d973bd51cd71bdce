"""What is checked of a partition that a consumer reads: once, for both routes of Fetch."""

from typing import Final
from uuid import UUID

from barnabas_broker.replica.partition import Partition
from barnabas_broker.security.acls import AclOperation, ResourceType
from barnabas_broker.server.requests.request_context import RequestContext
from barnabas_kafka.errors import ErrorCode, KafkaError
from barnabas_kafka.ids import NO_EPOCH, TopicPartition
from barnabas_kafka.settings import broker as keys

FIRST_FROM_FOLLOWERS: Final = 11
"""From this version on consumers know that another replica than the leader may serve them."""

# An enum's members are looked up several times slower than names of the module.
_TOPIC: Final = ResourceType.TOPIC
_READ: Final = AclOperation.READ


def most_bytes(wanted: int, call: RequestContext) -> int:
    """How much is read at most for one request: a larger response would only be throttled."""
    limit = min(wanted, call.broker.settings[keys.FETCH_MAX_BYTES])
    return limit if call.usage is None else min(limit, call.usage.fetch_max_bytes)


def may_read(call: RequestContext, topic: str) -> bool:
    """Whether the caller may read a topic now."""
    return call.allowed(_READ, _TOPIC, topic)


def readable(
    call: RequestContext, topic: str, topic_id: UUID | None, index: int, leader_epoch: int
) -> Partition:
    """The partition to read from; raises KafkaError.

    All checks before the log is read: the topic's id where it was asked for by one,
    authorisation, leader or follower, the leader epoch of the request, and the log directory.
    """
    broker = call.broker
    if topic_id is not None:
        known = broker.image.topics.get(topic)
        if known is None or known.id != topic_id:
            raise KafkaError(ErrorCode.UNKNOWN_TOPIC_ID)
    if not may_read(call, topic):
        raise KafkaError(ErrorCode.TOPIC_AUTHORIZATION_FAILED)
    replicas = broker.replicas
    find = replicas.readable if call.version >= FIRST_FROM_FOLLOWERS else replicas.leader
    partition = find(TopicPartition(topic, index), max(leader_epoch, NO_EPOCH))
    if partition.log.failure is not None:
        raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, partition.log.failure)
    return partition
