"""KafkaCluster: what its declaration promises."""

from __future__ import annotations

from barnabas_operator.api.clusters import OPERATOR_SETTINGS, ClusterSpec, Listener
from barnabas_operator.api.declarations import fields_of


def test_brokers_know_a_listener_in_capitals() -> None:
    """As Kafka's own configuration has it."""
    assert Listener(name="plain", port=9092).kafka_name == "PLAIN"


def test_every_setting_that_follows_from_the_resource_is_refused() -> None:
    """The CEL rule of `config` names each prefix."""
    (config,) = [field for field in fields_of(ClusterSpec) if field.name == "config"]
    (rule,) = config.rules
    assert all(f"'{prefix}'" in rule.expression for prefix in OPERATOR_SETTINGS)
