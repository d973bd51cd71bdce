"""Changes at run time pass or are refused by the rules of KIP-226."""

import pytest

from barnabas_kafka.settings import broker
from barnabas_kafka.settings.broker import BrokerSettings
from barnabas_kafka.settings.definitions import SettingError
from barnabas_kafka.settings.dynamic import (
    Scope,
    validate_change,
    validate_changes,
)

DEFAULTS = BrokerSettings.from_mapping({})


@pytest.mark.parametrize(
    ("name", "value", "scope"),
    [
        ("message.max.bytes", "5", Scope.CLUSTER),
        ("message.max.bytes", "5", Scope.BROKER),
        ("log.retention.ms", "5", Scope.CLUSTER),
        ("listeners", "PLAINTEXT://:1", Scope.BROKER),
        ("listener.name.inside.ssl.keystore.location", "/k", Scope.BROKER),
        ("leader.replication.throttled.rate", "1000", Scope.BROKER),
        ("acme.plugin.depth", "9", Scope.CLUSTER),
    ],
)
def test_changes_that_pass(name: str, value: str, scope: Scope) -> None:
    """Cluster-wide settings anywhere, per-broker ones for a broker, unknown names always."""
    validate_change(name, value, scope=scope)


@pytest.mark.parametrize(
    ("name", "value", "scope"),
    [
        ("num.partitions", "5", Scope.BROKER),
        ("broker.id", "5", Scope.BROKER),
        ("listeners", "PLAINTEXT://:1", Scope.CLUSTER),
        ("listener.name.inside.ssl.keystore.location", "/k", Scope.CLUSTER),
        ("message.max.bytes", "-1", Scope.CLUSTER),
        ("ssl.keystore.type", "JKS", Scope.BROKER),
        ("ssl.truststore.location", "/k", Scope.BROKER),
        ("ssl.key.password", "secret", Scope.BROKER),
        ("leader.replication.throttled.rate", "-1", Scope.BROKER),
    ],
)
def test_changes_that_are_refused(name: str, value: str, scope: Scope) -> None:
    """Read-only settings, those of a broker for all or of a listener for a broker, bad values."""
    with pytest.raises(SettingError):
        validate_change(name, value, scope=scope)


def test_a_refused_secret_is_not_shown() -> None:
    """Not even where the change is refused for its scope."""
    with pytest.raises(SettingError) as refused:
        validate_change("ssl.key.password", "s3cret", scope=Scope.CLUSTER)
    assert "s3cret" not in str(refused.value)


@pytest.mark.parametrize(
    ("threads", "passes"), [("4", True), ("16", True), ("17", False), ("3", False)]
)
def test_a_pool_changes_by_a_factor_of_two(threads: str, passes: bool) -> None:
    """Eight threads may become four to sixteen in one step."""
    if passes:
        changed = validate_changes(DEFAULTS, {"num.io.threads": threads}, scope=Scope.CLUSTER)
        assert changed[broker.NUM_IO_THREADS] == int(threads)
    else:
        with pytest.raises(SettingError, match="between 4 and 16"):
            validate_changes(DEFAULTS, {"num.io.threads": threads}, scope=Scope.CLUSTER)


def test_changes_replace_those_of_the_same_scope() -> None:
    """What is no longer among them falls back; the other scope stays."""
    first = validate_changes(DEFAULTS, {"message.max.bytes": "5"}, scope=Scope.CLUSTER)
    second = validate_changes(first, {"log.segment.bytes": "50"}, scope=Scope.BROKER)
    third = validate_changes(second, {}, scope=Scope.CLUSTER)
    assert third.cluster_wide == {}
    assert third.per_broker == {"log.segment.bytes": "50"}
