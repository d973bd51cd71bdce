"""IncrementalAlterConfigs: single settings of topics, brokers and loggers."""

import logging
from collections.abc import Iterator
from pathlib import Path

import pytest

from barnabas_broker.controller.topics import NewTopic
from barnabas_broker.security.acls import AclOperation, ResourceType
from barnabas_broker.security.authorizer import Authorizer
from barnabas_broker.server.requests.handlers.incremental_alter_configs import HANDLER, handle
from barnabas_kafka.errors import ErrorCode
from barnabas_kafka.protocol import codec
from barnabas_kafka.protocol.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    AlterConfigsResourceResponse,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)
from tests.broker.controller.embedded import Denying, Embedded

LATEST = HANDLER.versions.max
TOPIC, BROKER, LOGGER = 2, 4, 8
SET, DELETE, APPEND, SUBTRACT = range(4)
NAME = "barnabas_broker.tests.incremental"
Change = tuple[str, int, str | None]


@pytest.fixture
def embedded(tmp_path: Path) -> Embedded:
    """A broker with one topic that has two settings of its own."""
    embedded = Embedded(tmp_path)
    configs = [("retention.ms", "5"), ("cleanup.policy", "compact")]
    embedded.create(NewTopic(name="a", configs=configs))
    return embedded


@pytest.fixture
def logger() -> Iterator[logging.Logger]:
    """A logger of our own, without a level before and after."""
    logger = logging.getLogger(NAME)
    yield logger
    logger.setLevel(logging.NOTSET)


def alter(
    embedded: Embedded,
    *resources: tuple[int, str, list[Change]],
    version: int = LATEST,
    validate_only: bool = False,
    authorizer: Authorizer | None = None,
) -> list[AlterConfigsResourceResponse]:
    """Send changes; the answer as a client of that version decodes it."""
    request = IncrementalAlterConfigsRequest(
        resources=[
            AlterConfigsResource(
                resource_type=kind,
                resource_name=name,
                configs=[
                    AlterableConfig(name=key, config_operation=operation, value=value)
                    for key, operation, value in changes
                ],
            )
            for kind, name, changes in resources
        ],
        validate_only=validate_only,
    )
    response = embedded.ask(handle, request, embedded.call(version, authorizer=authorizer))
    return codec.decode(
        IncrementalAlterConfigsResponse, codec.encode(response, version), version
    ).responses


@pytest.mark.parametrize("version", range(LATEST + 1))
def test_every_version_changes_single_settings(embedded: Embedded, version: int) -> None:
    """All four operations; settings that are not named stay."""
    changes: list[Change] = [
        ("flush.ms", SET, "9"),
        ("retention.ms", DELETE, None),
        ("cleanup.policy", APPEND, "delete"),
    ]
    answer = alter(embedded, (TOPIC, "a", changes), version=version)[0]
    assert (answer.error_code, answer.resource_type, answer.resource_name) == (0, TOPIC, "a")
    assert embedded.image.topics["a"].config == {
        "flush.ms": "9",
        "cleanup.policy": "compact,delete",
    }
    alter(embedded, (TOPIC, "a", [("cleanup.policy", SUBTRACT, "compact")]), version=version)
    assert embedded.image.topics["a"].config["cleanup.policy"] == "delete"


def test_each_resource_has_its_answer(embedded: Embedded) -> None:
    """What is wrong with one does not concern the others."""
    answers = alter(
        embedded,
        (BROKER, "1", [("log.retention.ms", SET, "7")]),
        (TOPIC, "a", [("retention.ms", APPEND, "1")]),
        (TOPIC, "a b", []),
        (TOPIC, "none", [("retention.ms", SET, "1")]),
        (BROKER, "1 ", [("num.partitions", SET, "4")]),
        (BROKER, "", [("retention.ms", 9, "4")]),
    )
    assert [answer.error_code for answer in answers] == [
        ErrorCode.NONE,
        ErrorCode.INVALID_CONFIG,
        ErrorCode.INVALID_TOPIC_EXCEPTION,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.INVALID_REQUEST,
        ErrorCode.INVALID_REQUEST,
    ]
    assert embedded.controller.settings.per_broker == {"log.retention.ms": "7"}


def test_doubled_names_and_resources_are_refused(embedded: Embedded) -> None:
    """Nobody can tell which of two should win."""
    doubled: list[Change] = [("flush.ms", SET, "1"), ("flush.ms", DELETE, None)]
    assert alter(embedded, (TOPIC, "a", doubled))[0].error_code == ErrorCode.INVALID_REQUEST
    answers = alter(embedded, (TOPIC, "a", []), (TOPIC, "a", []))
    assert [answer.error_code for answer in answers] == [ErrorCode.INVALID_REQUEST] * 2


def test_a_loggers_level_changes_at_once(embedded: Embedded, logger: logging.Logger) -> None:
    """Levels are not stored: a restart forgets them, as with Apache brokers."""
    change: list[Change] = [(NAME, SET, "DEBUG")]
    assert alter(embedded, (LOGGER, "1", change), validate_only=True)[0].error_code == 0
    assert logger.level == logging.NOTSET
    assert alter(embedded, (LOGGER, "1", change))[0].error_code == 0
    assert logger.level == logging.DEBUG


@pytest.mark.parametrize(
    ("name", "change", "error"),
    [
        ("", (NAME, SET, "INFO"), ErrorCode.INVALID_REQUEST),
        ("2", (NAME, SET, "INFO"), ErrorCode.INVALID_REQUEST),
        ("1", (NAME, SET, "LOUD"), ErrorCode.INVALID_CONFIG),
        ("1", (NAME, APPEND, "INFO"), ErrorCode.INVALID_REQUEST),
        ("1", (NAME, 12, "INFO"), ErrorCode.INVALID_REQUEST),
        ("1", ("no.such", SET, "INFO"), ErrorCode.INVALID_CONFIG),
    ],
)
def test_changes_of_loggers_that_cannot_be(
    embedded: Embedded, logger: logging.Logger, name: str, change: Change, error: ErrorCode
) -> None:
    """Each has its code, and a message."""
    answer = alter(embedded, (LOGGER, name, [change]))[0]
    assert answer.error_code == error
    assert answer.error_message
    assert logger.level == logging.NOTSET


def test_rights(embedded: Embedded, logger: logging.Logger) -> None:
    """A topic's settings need a right on the topic, a broker's and its loggers' on the cluster."""
    denying = Denying(
        (AclOperation.ALTER_CONFIGS, ResourceType.TOPIC, "a"),
        (AclOperation.ALTER_CONFIGS, ResourceType.CLUSTER, None),
    )
    answers = alter(
        embedded,
        (TOPIC, "a", []),
        (BROKER, "", []),
        (LOGGER, "1", [(NAME, SET, "DEBUG")]),
        authorizer=denying,
    )
    assert [answer.error_code for answer in answers] == [
        ErrorCode.TOPIC_AUTHORIZATION_FAILED,
        ErrorCode.CLUSTER_AUTHORIZATION_FAILED,
        ErrorCode.CLUSTER_AUTHORIZATION_FAILED,
    ]
    assert logger.level == logging.NOTSET
