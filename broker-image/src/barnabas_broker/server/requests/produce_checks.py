"""What is checked of a partition that a client writes to: once, for every route of Produce."""

from typing import Final

from barnabas_broker.log.validator import ProduceRules
from barnabas_broker.replica.delayed_produce import ALL_IN_SYNC
from barnabas_broker.replica.partition import Partition
from barnabas_broker.security.acls import AclOperation, ResourceType
from barnabas_broker.server.requests.request_context import RequestContext
from barnabas_kafka.errors import ErrorCode, KafkaError

ACKS: Final = (ALL_IN_SYNC, 0, 1)

TIME_SLICE_S: Final = 0.02
"""How long the partitions of one request are worked on before the event loop goes on."""

PARTITIONS_PER_CLOCK_READ: Final = 16
"""The number of partitions between two reads of the clock."""

# An enum's members are looked up several times slower than names of the module.
_TOPIC: Final = ResourceType.TOPIC
_WRITE: Final = AclOperation.WRITE


def may_write(call: RequestContext, topic: str) -> bool:
    """Whether the caller may write to a topic."""
    return call.allowed(_WRITE, _TOPIC, topic)


def writable(
    call: RequestContext, acks: int, topic: str, index: int, *, allowed: bool
) -> tuple[Partition, ProduceRules]:
    """The partition to append to, and what its records must keep to; raises KafkaError.

    All checks before the records are read, in Apache's order: `allowed` is what
    `may_write` says of the topic, then leadership, acks, internal topics and the ISR.
    """
    if not allowed:
        raise KafkaError(ErrorCode.TOPIC_AUTHORIZATION_FAILED)
    partition = call.broker.replicas.led(topic, index)
    if acks not in ACKS:
        raise KafkaError(ErrorCode.INVALID_REQUIRED_ACKS)
    rules = partition.rules.produce_rules(call.version)
    if acks == ALL_IN_SYNC:
        partition.check_in_sync()
    return partition, rules
