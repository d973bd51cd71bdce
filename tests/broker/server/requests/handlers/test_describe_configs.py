"""DescribeConfigs: values, where they come from, and who may see them."""

import logging
from pathlib import Path

import pytest

from barnabas_broker.controller.configs import ConfigChange, ConfigResource
from barnabas_broker.controller.requests import ConfigRequest
from barnabas_broker.controller.topics import NewTopic
from barnabas_broker.security.acls import AclOperation, ResourceType
from barnabas_broker.security.authorizer import Authorizer
from barnabas_broker.security.principals import ANONYMOUS
from barnabas_broker.server.requests.handlers.describe_configs import HANDLER, handle
from barnabas_kafka.errors import ErrorCode
from barnabas_kafka.protocol import codec
from barnabas_kafka.protocol.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
    DescribeConfigsResourceResult,
    DescribeConfigsResponse,
    DescribeConfigsResult,
)
from tests.broker.controller.embedded import NOW_MS, Denying, Embedded, finished

LATEST = HANDLER.versions.max
TOPIC, BROKER, LOGGER, METRICS = 2, 4, 8, 16
NAME = "barnabas_broker.tests.describe"


@pytest.fixture
def embedded(tmp_path: Path) -> Embedded:
    """A broker with settings of its own, one changed for all brokers, and one topic."""
    embedded = Embedded(tmp_path, {"log.retention.hours": "2", "message.max.bytes": "9999"})
    embedded.create(NewTopic(name="a", configs=[("retention.ms", "77")]))
    change = ConfigRequest(
        ConfigResource.BROKER, "", [ConfigChange("log.segment.bytes", "1048576")]
    )
    embedded.controller.incremental_alter_configs([change], principal=ANONYMOUS, now_ms=NOW_MS)
    return embedded


def ask(
    embedded: Embedded,
    resource_type: int,
    name: str,
    keys: list[str] | None = None,
    *,
    version: int = LATEST,
    synonyms: bool = False,
    documentation: bool = False,
    authorizer: Authorizer | None = None,
) -> DescribeConfigsResult:
    """Ask about one resource; the answer as a client of that version decodes it."""
    request = DescribeConfigsRequest(
        resources=[
            DescribeConfigsResource(
                resource_type=resource_type, resource_name=name, configuration_keys=keys
            )
        ],
        include_synonyms=synonyms,
        include_documentation=documentation,
    )
    response = finished(handle(request, embedded.call(version, authorizer=authorizer)))
    return codec.decode(DescribeConfigsResponse, codec.encode(response, version), version).results[
        0
    ]


def entries(result: DescribeConfigsResult) -> dict[str, DescribeConfigsResourceResult]:
    """The settings by name, of an answer without error."""
    assert result.error_code == ErrorCode.NONE
    return {entry.name: entry for entry in result.configs}


@pytest.mark.parametrize("version", range(LATEST + 1))
def test_every_version_describes_a_topics_configs(embedded: Embedded, version: int) -> None:
    """Version 0 knows only whether a value is the default; later ones know its source."""
    found = entries(ask(embedded, TOPIC, "a", version=version))
    assert found["retention.ms"].value == "77"
    assert found["max.message.bytes"].value == "9999"
    names = ("retention.ms", "segment.bytes", "max.message.bytes", "flush.ms")
    if version == 0:
        assert [found[name].is_default for name in names] == [False, False, False, True]
    else:
        assert [found[name].config_source for name in names] == [1, 3, 4, 5]
    if version >= 3:
        assert [found[name].config_type for name in (*names, "cleanup.policy")] == [5, 3, 3, 5, 7]


def test_synonyms_and_documentation_on_request(embedded: Embedded) -> None:
    """Synonyms are listed strongest first."""
    plain = entries(ask(embedded, TOPIC, "a"))["segment.bytes"]
    assert (plain.synonyms, plain.documentation) == ([], None)
    full = entries(ask(embedded, TOPIC, "a", synonyms=True, documentation=True))["segment.bytes"]
    assert [(each.name, each.value, each.source) for each in full.synonyms] == [
        ("log.segment.bytes", "1048576", 3),
        ("log.segment.bytes", "1073741824", 5),
    ]
    assert full.documentation


@pytest.mark.parametrize("keys", [None, []])
def test_no_keys_mean_all_keys(embedded: Embedded, keys: list[str] | None) -> None:
    """Null and empty alike."""
    assert len(entries(ask(embedded, TOPIC, "a", keys))) > 20


def test_only_the_keys_asked_for(embedded: Embedded) -> None:
    """Unknown ones are passed over in silence, as Kafka does."""
    found = entries(ask(embedded, TOPIC, "a", ["retention.ms", "no.such"]))
    assert list(found) == ["retention.ms"]


def test_a_brokers_settings(embedded: Embedded) -> None:
    """Effective values with their sources; what cannot change at run time is read-only."""
    found = entries(ask(embedded, BROKER, "1"))
    assert (found["log.segment.bytes"].value, found["log.segment.bytes"].config_source) == (
        "1048576",
        3,
    )
    assert (found["message.max.bytes"].value, found["message.max.bytes"].config_source) == (
        "9999",
        4,
    )
    assert (found["num.partitions"].read_only, found["log.retention.ms"].read_only) == (True, False)


def test_the_settings_of_all_brokers_are_those_changed_for_all(embedded: Embedded) -> None:
    """The resource without a name lists nothing else."""
    found = entries(ask(embedded, BROKER, ""))
    assert {name: entry.value for name, entry in found.items()} == {"log.segment.bytes": "1048576"}


def test_loggers(embedded: Embedded) -> None:
    """Every logger with its level, under Kafka's names."""
    logging.getLogger(NAME).setLevel(logging.CRITICAL)
    found = entries(ask(embedded, LOGGER, "1", [NAME, "no.such.logger"]))
    assert [(each.name, each.value, each.config_source) for each in found.values()] == [
        (NAME, "FATAL", 6)
    ]
    assert "root" in entries(ask(embedded, LOGGER, "1"))


@pytest.mark.parametrize(
    ("resource_type", "name", "error"),
    [
        (TOPIC, "none", ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        (TOPIC, "not valid", ErrorCode.INVALID_TOPIC_EXCEPTION),
        (BROKER, "2", ErrorCode.INVALID_REQUEST),
        (BROKER, "one", ErrorCode.INVALID_REQUEST),
        (LOGGER, "", ErrorCode.INVALID_REQUEST),
        (LOGGER, "2", ErrorCode.INVALID_REQUEST),
        (METRICS, "m", ErrorCode.INVALID_REQUEST),
        (METRICS, "", ErrorCode.INVALID_REQUEST),
        (99, "x", ErrorCode.INVALID_REQUEST),
    ],
)
def test_resources_that_are_not_here(
    embedded: Embedded, resource_type: int, name: str, error: ErrorCode
) -> None:
    """The error concerns that resource alone, and the answer repeats which it is."""
    result = ask(embedded, resource_type, name)
    assert (result.error_code, result.resource_type, result.resource_name, result.configs) == (
        error,
        resource_type,
        name,
        [],
    )
    assert result.error_message


def test_rights(embedded: Embedded) -> None:
    """A topic's settings need a right on the topic, a broker's and its loggers' on the cluster."""
    topic = Denying((AclOperation.DESCRIBE_CONFIGS, ResourceType.TOPIC, "a"))
    cluster = Denying((AclOperation.DESCRIBE_CONFIGS, ResourceType.CLUSTER, None))
    results = [
        ask(embedded, TOPIC, "a", authorizer=topic).error_code,
        ask(embedded, BROKER, "1", authorizer=cluster).error_code,
        ask(embedded, LOGGER, "1", authorizer=cluster).error_code,
        ask(embedded, METRICS, "m", authorizer=cluster).error_code,
        ask(embedded, TOPIC, "a", authorizer=cluster).error_code,
    ]
    assert results == [
        ErrorCode.TOPIC_AUTHORIZATION_FAILED,
        ErrorCode.CLUSTER_AUTHORIZATION_FAILED,
        ErrorCode.CLUSTER_AUTHORIZATION_FAILED,
        ErrorCode.CLUSTER_AUTHORIZATION_FAILED,
        ErrorCode.NONE,
    ]
