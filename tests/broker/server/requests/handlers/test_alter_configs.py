"""AlterConfigs: what is sent is all there is afterwards."""

from pathlib import Path

import pytest

from barnabas_broker.controller.topics import NewTopic
from barnabas_broker.security.acls import AclOperation, ResourceType
from barnabas_broker.security.authorizer import Authorizer
from barnabas_broker.server.requests.handlers.alter_configs import HANDLER, handle
from barnabas_kafka.errors import ErrorCode
from barnabas_kafka.protocol import codec
from barnabas_kafka.protocol.messages.alter_configs import (
    AlterableConfig,
    AlterConfigsRequest,
    AlterConfigsResource,
    AlterConfigsResourceResponse,
    AlterConfigsResponse,
)
from tests.broker.controller.embedded import Denying, Embedded

LATEST = HANDLER.versions.max
TOPIC, BROKER, LOGGER = 2, 4, 8
Asked = tuple[int, str, dict[str, str | None]]


@pytest.fixture
def embedded(tmp_path: Path) -> Embedded:
    """A broker with one topic that has a setting of its own."""
    embedded = Embedded(tmp_path)
    embedded.create(NewTopic(name="a", configs=[("retention.ms", "5")]))
    return embedded


def alter(
    embedded: Embedded,
    *resources: Asked,
    version: int = LATEST,
    validate_only: bool = False,
    authorizer: Authorizer | None = None,
) -> list[AlterConfigsResourceResponse]:
    """Send settings; the answer as a client of that version decodes it."""
    request = AlterConfigsRequest(
        resources=[
            AlterConfigsResource(
                resource_type=kind,
                resource_name=name,
                configs=[AlterableConfig(name=key, value=value) for key, value in configs.items()],
            )
            for kind, name, configs in resources
        ],
        validate_only=validate_only,
    )
    response = embedded.ask(handle, request, embedded.call(version, authorizer=authorizer))
    return codec.decode(AlterConfigsResponse, codec.encode(response, version), version).responses


@pytest.mark.parametrize("version", range(LATEST + 1))
def test_every_version_replaces(embedded: Embedded, version: int) -> None:
    """A setting that is not sent goes back to its default."""
    answer = alter(embedded, (TOPIC, "a", {"flush.ms": "9"}), version=version)[0]
    assert (answer.error_code, answer.resource_type, answer.resource_name) == (0, TOPIC, "a")
    assert embedded.image.topics["a"].config == {"flush.ms": "9"}


def test_validating_changes_nothing(embedded: Embedded) -> None:
    """The answer is the same."""
    assert alter(embedded, (TOPIC, "a", {}), validate_only=True)[0].error_code == 0
    assert embedded.image.topics["a"].config == {"retention.ms": "5"}


def test_each_resource_has_its_answer(embedded: Embedded) -> None:
    """What is wrong with one does not concern the others."""
    answers = alter(
        embedded,
        (BROKER, "", {"log.retention.ms": "7"}),
        (TOPIC, "none", {}),
        (TOPIC, "a", {"retention.ms": None}),
        (LOGGER, "1", {"root": "INFO"}),
        (77, "x", {}),
    )
    assert [answer.error_code for answer in answers] == [
        ErrorCode.NONE,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.INVALID_REQUEST,
        ErrorCode.INVALID_REQUEST,
        ErrorCode.INVALID_REQUEST,
    ]
    assert all(answer.error_message for answer in answers[1:])
    assert embedded.controller.settings.cluster_wide == {"log.retention.ms": "7"}


def test_a_resource_that_is_sent_twice_is_refused_twice(embedded: Embedded) -> None:
    """Nobody can tell which of the two should win."""
    answers = alter(embedded, (TOPIC, "a", {}), (TOPIC, "a", {"flush.ms": "1"}))
    assert [answer.error_code for answer in answers] == [ErrorCode.INVALID_REQUEST] * 2
    assert embedded.image.topics["a"].config == {"retention.ms": "5"}


def test_rights(embedded: Embedded) -> None:
    """A topic's settings need a right on the topic, a broker's on the cluster."""
    denying = Denying(
        (AclOperation.ALTER_CONFIGS, ResourceType.TOPIC, "a"),
        (AclOperation.ALTER_CONFIGS, ResourceType.CLUSTER, None),
    )
    answers = alter(embedded, (TOPIC, "a", {}), (BROKER, "", {}), authorizer=denying)
    assert [answer.error_code for answer in answers] == [
        ErrorCode.TOPIC_AUTHORIZATION_FAILED,
        ErrorCode.CLUSTER_AUTHORIZATION_FAILED,
    ]


@pytest.mark.parametrize("topic", ["__consumer_offsets", "__transaction_state"])
def test_a_coordinators_topic_stays_compacted(embedded: Embedded, topic: str) -> None:
    """Its policy counts as it would be afterwards: settings that are left out are gone."""
    policy = ("cleanup.policy", "compact")
    embedded.create(NewTopic(name=topic, num_partitions=1, replication_factor=1, configs=[policy]))
    kept: dict[str, str | None] = {"cleanup.policy": "compact", "segment.bytes": "1048576"}
    (answer,) = alter(embedded, (TOPIC, topic, kept))
    assert answer.error_code == ErrorCode.NONE
    losing: list[dict[str, str | None]] = [
        {"segment.bytes": "1048576"}, {"cleanup.policy": "compact,delete"}, {}
    ]  # fmt: skip
    for lost in losing:
        (answer,) = alter(embedded, (TOPIC, topic, lost))
        assert answer.error_code == ErrorCode.INVALID_CONFIG
        assert f"cleanup.policy of internal topic {topic} must be compact" in str(
            answer.error_message
        )
    assert embedded.image.topics[topic].config == kept
