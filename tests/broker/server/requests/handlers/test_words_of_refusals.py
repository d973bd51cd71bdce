"""What refusals say where Kafka's own programs and tests look for the words."""

import pytest

from barnabas_kafka.errors import ErrorCode
from barnabas_kafka.protocol.messages import alter_configs, incremental_alter_configs
from barnabas_kafka.protocol.messages.alter_configs import AlterConfigsRequest
from barnabas_kafka.protocol.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
)
from barnabas_kafka.protocol.messages.incremental_alter_configs import (
    IncrementalAlterConfigsRequest,
)
from tests.broker.server.running import Wire

TOPIC, LOGGER, METRICS, GROUP = 2, 8, 16, 32


@pytest.mark.parametrize("incremental", [True, False])
def test_a_topic_that_cannot_have_a_setting_is_named(
    wire: Wire, topic: str, incremental: bool
) -> None:
    """And what is wrong with the value after it."""
    if incremental:
        change = incremental_alter_configs.AlterableConfig(
            name="retention.ms", config_operation=0, value="soon"
        )
        changed = incremental_alter_configs.AlterConfigsResource(
            resource_type=TOPIC, resource_name=topic, configs=[change]
        )
        answer = wire.ask(IncrementalAlterConfigsRequest(resources=[changed]), 1)
    else:
        entry = alter_configs.AlterableConfig(name="retention.ms", value="soon")
        replaced = alter_configs.AlterConfigsResource(
            resource_type=TOPIC, resource_name=topic, configs=[entry]
        )
        answer = wire.ask(AlterConfigsRequest(resources=[replaced]), 2)
    (refused,) = answer.responses
    assert refused.error_code == ErrorCode.INVALID_CONFIG
    where = f"ConfigResource(type=TOPIC, name='{topic}')"
    start = f"Invalid config value for resource {where}: retention.ms=soon: "
    assert refused.error_message.startswith(start)


@pytest.mark.parametrize(
    ("kind", "reason"),
    [
        (METRICS, "AlterConfigs is only supported for topics and brokers, but resource type is"),
        (GROUP, "Unknown resource type 32"),
        (LOGGER, "Unknown resource type 8"),
    ],
)
def test_a_resource_that_cannot_be_altered_is_named(wire: Wire, kind: int, reason: str) -> None:
    """Client metrics and groups have their settings in KRaft mode only."""
    resource = alter_configs.AlterConfigsResource(resource_type=kind, resource_name="0")
    (refused,) = wire.ask(AlterConfigsRequest(resources=[resource]), 2).responses
    assert refused.error_code == ErrorCode.INVALID_REQUEST
    assert refused.error_message.startswith(reason)


def test_a_type_that_cannot_be_described_refuses_the_whole_request(wire: Wire, topic: str) -> None:
    """As by Apache, the resources beside it too; client metrics concern themselves alone."""

    def described(*wanted: tuple[int, str]) -> list[tuple[int, str | None]]:
        resources = [
            DescribeConfigsResource(resource_type=kind, resource_name=name) for kind, name in wanted
        ]
        answer = wire.ask(DescribeConfigsRequest(resources=resources), 4)
        return [(each.error_code, each.error_message) for each in answer.results]

    reason = "Unexpected resource type GROUP for resource g"
    assert described((TOPIC, topic), (GROUP, "g")) == [(ErrorCode.INVALID_REQUEST, reason)] * 2
    reason = "Config type client-metrics is only supported on KRaft clusters"
    (one, _), other = described((TOPIC, topic), (METRICS, "m"))
    assert (one, other) == (ErrorCode.NONE, (ErrorCode.INVALID_REQUEST, reason))
