"""What refusals say where Kafka's own programs and tests look for the words."""

import pytest

from barnabas_kafka.errors import ErrorCode
from barnabas_kafka.protocol.messages import alter_configs, incremental_alter_configs
from barnabas_kafka.protocol.messages.alter_configs import AlterConfigsRequest
from barnabas_kafka.protocol.messages.incremental_alter_configs import (
    IncrementalAlterConfigsRequest,
)
from tests.broker.server.running import Wire

TOPIC = 2


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
