"""The settings that a transaction coordinator goes by."""

from barnabas_broker.coordinator.transaction.limits import Limits
from barnabas_kafka.settings.broker import BrokerSettings


def test_defaults_are_kafkas() -> None:
    """A quarter of an hour, and seven days."""
    limits = Limits.from_settings(BrokerSettings.from_mapping({}))
    assert limits == Limits(timeout_max_ms=900_000, expiration_ms=604_800_000)
