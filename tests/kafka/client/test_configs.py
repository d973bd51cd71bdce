"""What operations on settings send and read."""

from __future__ import annotations

from barnabas_kafka.client.cluster import ANY_BROKER, OneBroker
from barnabas_kafka.client.configs import (
    AlterConfigOp,
    ConfigChange,
    ConfigSource,
    alter_configs,
    broker_resource,
    describe_configs,
    topic_resource,
)
from barnabas_kafka.client.operation import Ask
from barnabas_kafka.errors import ErrorCode
from barnabas_kafka.protocol.messages.describe_configs import (
    DescribeConfigsResourceResult,
    DescribeConfigsResponse,
    DescribeConfigsResult,
)
from barnabas_kafka.protocol.messages.incremental_alter_configs import (
    IncrementalAlterConfigsRequest,
)


def test_a_brokers_settings_are_asked_of_itself() -> None:
    """Those of topics and of all brokers are known everywhere."""
    target = describe_configs([]).target
    assert target(topic_resource("t")) == ANY_BROKER
    assert target(broker_resource(None)) == ANY_BROKER
    assert target(broker_resource(2)) == OneBroker(2)


def test_settings_are_read_with_their_source() -> None:
    """One of a newer Kafka is UNKNOWN; an error is that of its resource alone."""
    topic, broken = topic_resource("t"), topic_resource("u")
    response = DescribeConfigsResponse(
        results=[
            DescribeConfigsResult(
                resource_type=2,
                resource_name="t",
                configs=[
                    DescribeConfigsResourceResult(name="a", value="1", config_source=1),
                    DescribeConfigsResourceResult(
                        name="b", value=None, config_source=99, is_sensitive=True
                    ),
                ],
            ),
            DescribeConfigsResult(resource_type=2, resource_name="u", error_code=3),
        ]
    )
    operation = describe_configs([topic, broken])
    read = operation.read(Ask([topic, broken], 4, 1, 1), response)
    assert read[topic]["a"].source is ConfigSource.DYNAMIC_TOPIC_CONFIG
    assert (read[topic]["b"].source, read[topic]["b"].value) == (ConfigSource.UNKNOWN, None)
    assert read[broken].code is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def test_a_removed_setting_has_no_value() -> None:
    """Whatever the caller gave."""
    topic = topic_resource("t")
    changes = [
        ConfigChange("a", AlterConfigOp.SET, "1"),
        ConfigChange("b", AlterConfigOp.DELETE, "1"),
    ]
    request = alter_configs({topic: changes}).request(Ask([topic], 1, 1, 1))
    assert isinstance(request, IncrementalAlterConfigsRequest)
    sent = request.resources[0].configs
    assert [(each.name, each.config_operation, each.value) for each in sent] == [
        ("a", 0, "1"), ("b", 1, None),
    ]  # fmt: skip
