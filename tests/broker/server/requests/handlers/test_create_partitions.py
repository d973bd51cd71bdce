"""CreatePartitions: topics grow, and never shrink."""

from pathlib import Path

import pytest

from barnabas_broker.security.acls import AclOperation, ResourceType
from barnabas_broker.security.authorizer import Authorizer
from barnabas_broker.server.requests.handlers.create_partitions import HANDLER, handle
from barnabas_kafka.errors import ErrorCode
from barnabas_kafka.protocol import codec
from barnabas_kafka.protocol.messages.create_partitions import (
    CreatePartitionsAssignment,
    CreatePartitionsRequest,
    CreatePartitionsResponse,
    CreatePartitionsTopic,
    CreatePartitionsTopicResult,
)
from tests.broker.controller.embedded import Denying, Embedded

LATEST = HANDLER.versions.max


@pytest.fixture
def embedded(tmp_path: Path) -> Embedded:
    """A broker with two topics of one partition."""
    embedded = Embedded(tmp_path)
    embedded.create("a", "b")
    return embedded


def grow(
    embedded: Embedded,
    *topics: tuple[str, int],
    version: int = LATEST,
    brokers: list[list[int]] | None = None,
    validate_only: bool = False,
    authorizer: Authorizer | None = None,
) -> list[CreatePartitionsTopicResult]:
    """Ask for counts; the answer as a client of that version decodes it."""
    assignments = None
    if brokers is not None:
        assignments = [CreatePartitionsAssignment(broker_ids=each) for each in brokers]
    request = CreatePartitionsRequest(
        timeout_ms=1000,
        topics=[
            CreatePartitionsTopic(name=name, count=count, assignments=assignments)
            for name, count in topics
        ],
        validate_only=validate_only,
    )
    response = embedded.ask(handle, request, embedded.call(version, authorizer=authorizer))
    return codec.decode(CreatePartitionsResponse, codec.encode(response, version), version).results


@pytest.mark.parametrize("version", range(LATEST + 1))
def test_every_version_grows_topics(embedded: Embedded, version: int) -> None:
    """Each topic has an answer; a refusal says why."""
    results = grow(embedded, ("a", 3), ("b", 1), ("none", 2), version=version)
    assert [(each.name, each.error_code) for each in results] == [
        ("a", ErrorCode.NONE),
        ("b", ErrorCode.INVALID_PARTITIONS),
        ("none", ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
    ]
    assert results[0].error_message is None
    assert results[1].error_message == "Topic already has 1 partitions."
    assert [len(topic.partitions) for topic in embedded.image.topics.values()] == [3, 1]


def test_a_request_for_very_many_partitions_is_refused_whole(embedded: Embedded) -> None:
    """They count together, over all topics: the controller does nothing else meanwhile."""
    results = grow(embedded, ("a", 5001), ("b", 5002), ("none", 2), validate_only=True)
    assert [each.error_code for each in results] == [ErrorCode.POLICY_VIOLATION] * 3
    allowed = grow(embedded, ("a", 5001), ("b", 5001), ("none", 99_999), validate_only=True)
    missing = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert [each.error_code for each in allowed] == [ErrorCode.NONE, ErrorCode.NONE, missing]


def test_validating_grows_nothing(embedded: Embedded) -> None:
    """The answer is the same."""
    assert grow(embedded, ("a", 3), validate_only=True)[0].error_code == ErrorCode.NONE
    assert len(embedded.image.topics["a"].partitions) == 1


def test_a_topic_that_is_named_twice_is_refused(embedded: Embedded) -> None:
    """With one answer for both."""
    results = grow(embedded, ("a", 3), ("b", 2), ("a", 4))
    assert [(each.name, each.error_code) for each in results] == [
        ("a", ErrorCode.INVALID_REQUEST),
        ("b", ErrorCode.NONE),
    ]


def test_replicas_placed_by_hand(embedded: Embedded) -> None:
    """One list for each added partition; an empty list of lists fits none."""
    assert grow(embedded, ("a", 2), brokers=[[1]])[0].error_code == ErrorCode.NONE
    for brokers in ([[2]], [], [[1], [1]]):
        result = grow(embedded, ("b", 2), brokers=brokers)[0]
        assert result.error_code == ErrorCode.INVALID_REPLICA_ASSIGNMENT


def test_growing_needs_a_right_on_the_topic(embedded: Embedded) -> None:
    """ALTER, as for other changes of a topic."""
    denying = Denying((AclOperation.ALTER, ResourceType.TOPIC, "a"))
    results = grow(embedded, ("a", 2), ("b", 2), authorizer=denying)
    assert [each.error_code for each in results] == [
        ErrorCode.TOPIC_AUTHORIZATION_FAILED,
        ErrorCode.NONE,
    ]
