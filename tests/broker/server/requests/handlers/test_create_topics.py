"""CreateTopics: what an admin client asks for and learns."""

from pathlib import Path

import pytest

from barnabas_broker.security.acls import AclOperation, ResourceType
from barnabas_broker.security.authorizer import Authorizer
from barnabas_broker.server.requests.handlers.create_topics import HANDLER, handle
from barnabas_kafka.errors import ErrorCode
from barnabas_kafka.ids import ZERO_UUID
from barnabas_kafka.protocol import codec
from barnabas_kafka.protocol.messages.create_topics import (
    CreatableReplicaAssignment,
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from tests.broker.controller.embedded import Denying, Embedded

LATEST = HANDLER.versions.max


@pytest.fixture
def embedded(tmp_path: Path) -> Embedded:
    """A broker without topics."""
    return Embedded(tmp_path)


def topic(
    name: str, partitions: int = -1, factor: int = -1, **configs: str | None
) -> CreatableTopic:
    """A topic; underscores in the names of settings stand for dots."""
    return CreatableTopic(
        name=name,
        num_partitions=partitions,
        replication_factor=factor,
        configs=[
            CreatableTopicConfig(name=key.replace("_", "."), value=value)
            for key, value in configs.items()
        ],
    )


def create(
    embedded: Embedded,
    *topics: CreatableTopic,
    version: int = LATEST,
    validate_only: bool = False,
    authorizer: Authorizer | None = None,
) -> CreateTopicsResponse:
    """Send a request and read the answer in the given version."""
    request = CreateTopicsRequest(topics=list(topics), validate_only=validate_only)
    response = embedded.ask(handle, request, embedded.call(version, authorizer=authorizer))
    return codec.decode(CreateTopicsResponse, codec.encode(response, version), version)


@pytest.mark.parametrize("version", range(LATEST + 1))
def test_every_version_creates(embedded: Embedded, version: int) -> None:
    """The answer names the topic; later versions tell what was made."""
    result = create(embedded, topic("a", 3, 1), version=version).topics[0]
    made = embedded.image.topics["a"]
    assert (result.name, result.error_code, len(made.partitions)) == ("a", 0, 3)
    assert not result.error_message
    if version >= 5:
        assert (result.num_partitions, result.replication_factor) == (3, 1)
    if version >= 7:
        assert result.topic_id == made.id


def test_configs_are_returned_with_their_source(embedded: Embedded) -> None:
    """Version 5: a client need not ask for them again."""
    result = create(embedded, topic("a", retention_ms="77")).topics[0]
    configs = {config.name: config for config in result.configs or []}
    assert (configs["retention.ms"].value, configs["retention.ms"].config_source) == ("77", 1)
    assert (configs["segment.bytes"].value, configs["segment.bytes"].config_source) == (
        "1073741824",
        5,
    )
    assert result.topic_config_error_code == 0


def test_configs_are_hidden_from_unauthorized_callers(embedded: Embedded) -> None:
    """The topic is made all the same."""
    denying = Denying((AclOperation.DESCRIBE_CONFIGS, ResourceType.TOPIC, "a"))
    result = create(embedded, topic("a"), authorizer=denying).topics[0]
    assert result.error_code == 0
    assert result.topic_config_error_code == ErrorCode.TOPIC_AUTHORIZATION_FAILED
    assert (result.configs or [], result.num_partitions, result.replication_factor) == ([], -1, -1)


def test_validate_only_creates_nothing_and_returns_the_result(embedded: Embedded) -> None:
    """Counts and settings as they would be; no id."""
    result = create(embedded, topic("a", 2), validate_only=True).topics[0]
    assert (result.error_code, result.num_partitions, result.topic_id) == (0, 2, ZERO_UUID)
    assert embedded.image.topics == {}


def test_a_request_for_very_many_partitions_is_refused_whole(embedded: Embedded) -> None:
    """They count together, over all topics: the controller does nothing else meanwhile."""
    response = create(embedded, topic("a", 5000), topic("b", 5000), topic("c"), validate_only=True)
    assert [each.error_code for each in response.topics] == [ErrorCode.POLICY_VIOLATION] * 3
    allowed = create(embedded, topic("a", 5000), topic("b", 5000), validate_only=True)
    assert [each.error_code for each in allowed.topics] == [ErrorCode.NONE] * 2


def test_one_answer_for_each_name(embedded: Embedded) -> None:
    """Doubled names are refused whole; the order is that of the request."""
    embedded.create("old")
    response = create(
        embedded,
        topic("twice", 1),
        topic("old"),
        topic("twice", 2),
        topic("__cluster_metadata"),
        topic("new", retention_ms=None),
        topic("fine"),
    )
    assert [(each.name, each.error_code) for each in response.topics] == [
        ("twice", ErrorCode.INVALID_REQUEST),
        ("old", ErrorCode.TOPIC_ALREADY_EXISTS),
        ("__cluster_metadata", ErrorCode.INVALID_REQUEST),
        ("new", ErrorCode.INVALID_CONFIG),
        ("fine", ErrorCode.NONE),
    ]
    assert all(each.error_message for each in response.topics[:-1])
    assert response.topics[1].error_message == "Topic 'old' already exists."
    assert sorted(embedded.image.topics) == ["fine", "old"]


def test_replicas_placed_by_hand(embedded: Embedded) -> None:
    """On this broker they can only lie here; another is unknown."""
    for broker, error in ((1, ErrorCode.NONE), (2, ErrorCode.INVALID_REPLICA_ASSIGNMENT)):
        assignments = [CreatableReplicaAssignment(partition_index=0, broker_ids=[broker])]
        asked = CreatableTopic(
            name=f"t{broker}", num_partitions=-1, replication_factor=-1, assignments=assignments
        )
        assert create(embedded, asked).topics[0].error_code == error


def test_creating_needs_a_right_on_the_cluster_or_the_topic(embedded: Embedded) -> None:
    """Either is enough."""
    denying = Denying(
        (AclOperation.CREATE, ResourceType.CLUSTER, None),
        (AclOperation.CREATE, ResourceType.TOPIC, "forbidden"),
    )
    response = create(embedded, topic("forbidden"), topic("allowed"), authorizer=denying)
    assert [each.error_code for each in response.topics] == [
        ErrorCode.TOPIC_AUTHORIZATION_FAILED,
        ErrorCode.NONE,
    ]
    assert list(embedded.image.topics) == ["allowed"]


@pytest.mark.parametrize("name", ["__consumer_offsets", "__transaction_state"])
def test_a_coordinators_topic_is_compacted(embedded: Embedded, name: str) -> None:
    """By hand it is created with that policy or not at all: retention would delete its records."""
    for configs in ({}, {"cleanup_policy": "delete"}, {"cleanup_policy": "compact,delete"}):
        result = create(embedded, topic(name, 1, 1, **configs)).topics[0]
        assert result.error_code == ErrorCode.INVALID_CONFIG
        assert f"cleanup.policy of internal topic {name} must be compact" in str(
            result.error_message
        )
    assert name not in embedded.image.topics
    assert create(embedded, topic(name, 1, 1, cleanup_policy="compact")).topics[0].error_code == 0
