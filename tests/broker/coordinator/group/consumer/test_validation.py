"""What a ConsumerGroupHeartbeat must say."""

from typing import Any

import pytest

from barnabas_broker.coordinator.group.consumer.validation import check
from barnabas_kafka.errors import ErrorCode, KafkaError
from barnabas_kafka.protocol.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    TopicPartitions,
)

FIRST: dict[str, Any] = {
    "group_id": "g",
    "member_id": "m",
    "member_epoch": 0,
    "rebalance_timeout_ms": 1,
    "subscribed_topic_names": ["t"],
    "topic_partitions": [],
}


def refused(version: int = 1, **fields: Any) -> tuple[ErrorCode, str]:
    request = ConsumerGroupHeartbeatRequest(**{**FIRST, **fields})
    with pytest.raises(KafkaError) as caught:
        check(request, version, ("uniform", "range"))
    return caught.value.code, caught.value.message


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"group_id": " "}, "GroupId can't be empty."),
        ({"member_id": ""}, "MemberId can't be empty."),
        ({"instance_id": ""}, "InstanceId can't be empty."),
        ({"rack_id": ""}, "RackId can't be empty."),
        ({"rebalance_timeout_ms": -1}, "RebalanceTimeoutMs must be provided in first request."),
        ({"topic_partitions": None}, "TopicPartitions must be empty when (re-)joining."),
        (
            {"topic_partitions": [TopicPartitions()]},
            "TopicPartitions must be empty when (re-)joining.",
        ),
        (
            {"subscribed_topic_names": None},
            (
                "Either SubscribedTopicNames or SubscribedTopicRegex must be non-null "
                "when (re-)joining."
            ),
        ),
        ({"member_epoch": -2}, "InstanceId can't be null."),
        ({"member_epoch": -3}, "MemberEpoch is invalid."),
    ],
)
def test_missing_fields_are_refused_with_kafkas_message(
    fields: dict[str, Any], message: str
) -> None:
    """In Kafka's words, which clients show."""
    assert refused(**fields) == (ErrorCode.INVALID_REQUEST, message)


def test_version_0_needs_topics_and_no_id() -> None:
    """The broker makes its ids, and it knows no expressions."""
    check(ConsumerGroupHeartbeatRequest(**{**FIRST, "member_id": ""}), 0, ("uniform",))
    code, message = refused(0, subscribed_topic_names=[])
    assert (code, message) == (
        ErrorCode.INVALID_REQUEST,
        "SubscribedTopicNames must be set in first request.",
    )


def test_an_assignor_must_be_one_that_there_is() -> None:
    """The answer names those."""
    code, message = refused(server_assignor="mine")
    assert code is ErrorCode.UNSUPPORTED_ASSIGNOR
    assert "uniform, range" in message
