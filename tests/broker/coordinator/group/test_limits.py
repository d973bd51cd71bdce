"""The settings of a group coordinator."""

from barnabas_broker.coordinator.group.limits import Limits
from barnabas_kafka.settings.broker import BrokerSettings


def test_the_defaults_are_kafkas() -> None:
    """Minutes of retention become milliseconds."""
    assert Limits.from_settings(BrokerSettings.from_mapping({})) == Limits(
        session_min_ms=6000,
        session_max_ms=1_800_000,
        initial_delay_ms=3000,
        members_max=2**31 - 1,
        metadata_bytes_max=4096,
        retention_ms=7 * 24 * 3600 * 1000,
    )
