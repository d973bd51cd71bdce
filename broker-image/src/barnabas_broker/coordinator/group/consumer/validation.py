"""What a ConsumerGroupHeartbeat must say, before any group is read.

As Kafka's `throwIfConsumerGroupHeartbeatRequestIsInvalid`, in its order.
"""

from collections.abc import Collection
from typing import Protocol

from barnabas_broker.coordinator.group.consumer.member import ABSENT_EPOCH, JOINING_EPOCH
from barnabas_kafka.errors import ErrorCode, KafkaError
from barnabas_kafka.protocol.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
)

CLIENT_MAKES_ID_SINCE = 1
"""From this version on the member id is the client's affair."""
EXPRESSION_BYTES_MAX = 1 << 17
"""Memory that a compiled expression may take: RE2 is linear in time and bounded by this. It is room
for a list of 200 names of topics; one that is made to be slow takes some 20 ms for each topic."""


def check(request: ConsumerGroupHeartbeatRequest, version: int, assignors: Collection[str]) -> None:
    """Raise KafkaError INVALID_REQUEST, UNSUPPORTED_ASSIGNOR or INVALID_REGULAR_EXPRESSION."""
    joins = request.member_epoch == JOINING_EPOCH
    if not request.group_id.strip():
        raise _invalid("GroupId can't be empty.")
    if not request.member_id.strip() and (version >= CLIENT_MAKES_ID_SINCE or not joins):
        raise _invalid("MemberId can't be empty.")
    if request.instance_id is not None and not request.instance_id.strip():
        raise _invalid("InstanceId can't be empty.")
    if request.rack_id is not None and not request.rack_id.strip():
        raise _invalid("RackId can't be empty.")
    if joins:
        _check_first(request, version)
    elif request.member_epoch == ABSENT_EPOCH and request.instance_id is None:
        raise _invalid("InstanceId can't be null.")
    elif request.member_epoch < ABSENT_EPOCH:
        raise _invalid("MemberEpoch is invalid.")
    if request.server_assignor is not None and request.server_assignor not in assignors:
        raise KafkaError(
            ErrorCode.UNSUPPORTED_ASSIGNOR,
            f"ServerAssignor {request.server_assignor} is not supported. "
            f"Supported assignors: {', '.join(assignors)}.",
        )
    if request.subscribed_topic_regex:
        compiled(request.subscribed_topic_regex)


def _check_first(request: ConsumerGroupHeartbeatRequest, version: int) -> None:
    if request.rebalance_timeout_ms == -1:
        raise _invalid("RebalanceTimeoutMs must be provided in first request.")
    if request.topic_partitions is None or request.topic_partitions:
        raise _invalid("TopicPartitions must be empty when (re-)joining.")
    names, regex = request.subscribed_topic_names, request.subscribed_topic_regex
    if version < CLIENT_MAKES_ID_SINCE and not names:
        raise _invalid("SubscribedTopicNames must be set in first request.")
    if names is None and regex is None:
        both = "SubscribedTopicNames or SubscribedTopicRegex"
        raise _invalid(f"Either {both} must be non-null when (re-)joining.")


class Matcher(Protocol):
    """A compiled expression."""

    def fullmatch(self, text: str) -> object | None:
        """Something true where the whole text matches."""
        ...


def compiled(expression: str) -> Matcher:
    """The expression as RE2 has it; raises KafkaError INVALID_REGULAR_EXPRESSION."""
    import re2  # Late: most brokers never see an expression, and it takes 2.5 MiB.

    options = re2.Options()
    options.max_mem = EXPRESSION_BYTES_MAX
    options.log_errors = False
    try:
        matcher: Matcher = re2.compile(expression, options=options)
    except re2.error as error:
        why = error.args[0] if error.args else ""
        text = why.decode(errors="replace") if isinstance(why, bytes) else str(why)
        message = f"SubscribedTopicRegex `{expression}` is not a valid regular expression: {text}."
        raise KafkaError(ErrorCode.INVALID_REGULAR_EXPRESSION, message) from None
    return matcher


def _invalid(message: str) -> KafkaError:
    return KafkaError(ErrorCode.INVALID_REQUEST, message)
