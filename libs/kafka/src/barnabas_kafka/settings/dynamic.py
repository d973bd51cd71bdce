"""Which settings may change while a broker runs, for one broker or for all, and which changes pass.

The rules are KIP-226's (Kafka's `DynamicBrokerConfig`): read-only settings are refused, those of
one broker's listeners and keys cannot be set for all, keys and certificates change only for one
listener, whose prefix they carry, and a pool of threads may at most double or halve in one step.
Names that Kafka does not know pass, because plugins read them.

One rule is our own: ports are opened and closed at a restart only, so a change of listeners is
refused rather than accepted without effect.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from typing import Any, Final

from .broker import (
    ADVERTISED_LISTENERS,
    BACKGROUND_THREADS,
    LISTENER_SECURITY_PROTOCOL_MAP,
    LISTENERS,
    LOG_CLEANER_THREADS,
    NUM_IO_THREADS,
    NUM_NETWORK_THREADS,
    NUM_RECOVERY_THREADS_PER_DATA_DIR,
    NUM_REPLICA_FETCHERS,
    BrokerSettings,
    find_key,
)
from .declare import LONG_MAX, at_least, long
from .definitions import Key, SettingError, UpdateMode


class Scope(Enum):
    """The brokers that a change at run time is for."""

    BROKER = "one broker"
    CLUSTER = "all brokers"


# Rates that exist only as run-time changes, never in a properties file (`DynamicConfig.Broker`).
LEADER_THROTTLED_RATE = long(
    "leader.replication.throttled.rate",
    LONG_MAX,
    "Bytes per second that a leader sends for throttled replicas.",
    rule=at_least(0),
    update=UpdateMode.PER_BROKER,
)
FOLLOWER_THROTTLED_RATE = long(
    "follower.replication.throttled.rate",
    LONG_MAX,
    "Bytes per second that a follower fetches for throttled replicas.",
    rule=at_least(0),
    update=UpdateMode.PER_BROKER,
)
MOVE_THROTTLED_RATE = long(
    "replica.alter.log.dirs.io.max.bytes.per.second",
    LONG_MAX,
    "Bytes per second that are moved between directories; with 0 nothing moves on.",
    rule=at_least(0),
    update=UpdateMode.PER_BROKER,
)
RATES: Final[Mapping[str, Key[int]]] = {
    key.name: key for key in (LEADER_THROTTLED_RATE, FOLLOWER_THROTTLED_RATE, MOVE_THROTTLED_RATE)
}


def find_setting(name: str) -> Key[Any] | None:
    """The declaration of a broker's setting, those included that exist at run time only."""
    return RATES.get(name) or find_key(name)


def is_cluster_wide(name: str) -> bool:
    """Whether a setting of a properties file can also change for all brokers while they run."""
    key = find_key(name)
    if key is None or key.name != name or key.sensitive:
        return False
    return key.update is UpdateMode.CLUSTER_WIDE


def rate_in(configs: Mapping[str, str], key: Key[int]) -> int:
    """The rate that a broker's settings of run time have for `key`; no limit without one."""
    try:
        return key.parse(configs[key.name])
    except (KeyError, SettingError):  # A tool that writes past the brokers may write anything.
        return LONG_MAX


POOLS: Final[tuple[Key[int], ...]] = (
    NUM_NETWORK_THREADS,
    NUM_IO_THREADS,
    NUM_REPLICA_FETCHERS,
    NUM_RECOVERY_THREADS_PER_DATA_DIR,
    BACKGROUND_THREADS,
    LOG_CLEANER_THREADS,
)

AT_A_RESTART: Final[tuple[Key[Any], ...]] = (
    LISTENERS,
    ADVERTISED_LISTENERS,
    LISTENER_SECURITY_PROTOCOL_MAP,
)


def validate_change(name: str, value: str, *, scope: Scope) -> None:
    """Check one change by itself; raises SettingError."""
    if name in RATES:
        RATES[name].parse(value)
        return
    key = find_key(name)
    if key is None:
        return
    if key.update is UpdateMode.READ_ONLY:
        raise SettingError(name, _shown(key, value), "cannot change while the broker runs")
    per_listener = name != key.name
    if not per_listener and _is_of_a_listener(name):
        prefixed = f"can change for one listener, as listener.name.NAME.{name}"
        raise SettingError(name, _shown(key, value), prefixed)
    if scope is Scope.CLUSTER and (per_listener or key.update is UpdateMode.PER_BROKER):
        raise SettingError(name, _shown(key, value), "can change for one broker, not for all")
    key.parse(value)


def validate_changes(
    settings: BrokerSettings, changes: Mapping[str, str], *, scope: Scope
) -> BrokerSettings:
    """Check all changes of one scope, which replace those before; returns the settings they make.

    Raises SettingError for the first change that cannot be; `settings` is left as it is.
    """
    for name, value in changes.items():
        validate_change(name, value, scope=scope)
    if scope is Scope.BROKER:
        changed = settings.with_dynamic(changes, settings.cluster_wide)
    else:
        changed = settings.with_dynamic(settings.per_broker, changes)
    for key in POOLS:
        _check_pool(key, settings[key], changed[key])
    for fixed in AT_A_RESTART:
        if settings[fixed] != changed[fixed]:
            message = "takes effect at a restart only: set it where the broker starts"
            raise SettingError(fixed.name, changes.get(fixed.name), message)
    return changed


def _check_pool(key: Key[int], before: int, after: int) -> None:
    if after != before and not before // 2 <= after <= before * 2:
        allowed = f"may change from {before} to between {max(1, before // 2)} and {before * 2}"
        raise SettingError(key.name, str(after), allowed)


def _is_of_a_listener(name: str) -> bool:
    """Kafka's `SslConfigs.RECONFIGURABLE_CONFIGS`."""
    return name == "ssl.key.password" or name.startswith(("ssl.keystore.", "ssl.truststore."))


def _shown(key: Key[Any], value: str) -> str | None:
    return None if key.sensitive else value
