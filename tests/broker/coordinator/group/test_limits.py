"""The settings of a group coordinator."""

from barnabas_broker.coordinator.group.limits import Limits
from barnabas_kafka.settings.broker import BrokerSettings


def test_the_defaults_are_kafkas() -> None:
    """But for the size of a group, which is bounded here; minutes of retention become ms."""
    assert Limits.from_settings(BrokerSettings.from_mapping({})) == Limits(
        session_min_ms=6000,
        session_max_ms=1_800_000,
        initial_delay_ms=3000,
        members_max=10_000,
        metadata_bytes_max=4096,
        retention_ms=7 * 24 * 3600 * 1000,
    )


def test_the_size_of_a_group_is_what_is_given() -> None:
    """More than the default as well, up to Kafka's own."""
    sizes = {"group.max.size": str(2**31 - 1), "group.consumer.max.size": "20000"}
    limits = Limits.from_settings(BrokerSettings.from_mapping(sizes))
    assert (limits.members_max, limits.consumers.members_max) == (2**31 - 1, 20_000)
    limits = Limits.from_settings(BrokerSettings.from_mapping({}))
    assert (limits.members_max, limits.consumers.members_max) == (10_000, 10_000)


def test_large_batches_allow_for_large_groups() -> None:
    """The record of a group is one of them."""
    settings = BrokerSettings.from_mapping({"message.max.bytes": str(100 << 20)})
    assert Limits.from_settings(settings).told_bytes_max == 400 << 20
