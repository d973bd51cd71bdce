"""Checks of a broker's settings taken together: what contradicts, and what this engine refuses.

`contradictions` are Kafka's own (`KafkaConfig.validateValues`). `not_offered` are settings that
protect or fundamentally change a cluster and that this engine does not act on: starting without
them would be worse than not starting, so they are refused instead of listed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, Final

from .definitions import Key, SettingError
from .keys import absent, coordination, identity, log, network, replication, security
from .listeners import (
    Listener,
    check_distinct,
    parse_listeners,
    parse_protocol_map,
)

if TYPE_CHECKING:
    from .broker import BrokerSettings

_DEDUPE_BYTES_PER_CLEANER = 1024 * 1024


def contradictions(settings: BrokerSettings) -> Iterator[SettingError]:
    """Every pair or group of settings that contradict each other."""
    for check in _CHECKS:
        try:
            yield from check(settings)
        except SettingError as problem:
            yield problem


def _error(settings: BrokerSettings, key: Key[Any], message: str) -> SettingError:
    return SettingError(key.name, settings.text(key), message)


def _identity(settings: BrokerSettings) -> Iterator[SettingError]:
    number, largest = settings[identity.BROKER_ID], settings[identity.RESERVED_BROKER_MAX_ID]
    if settings[identity.BROKER_ID_GENERATION_ENABLE]:
        if not -1 <= number <= largest:
            allowed = f"must be between -1 and {largest} (reserved.broker.max.id)"
            yield _error(settings, identity.BROKER_ID, allowed)
    elif number < 0:
        allowed = "must be at least 0 while broker.id.generation.enable is false"
        yield _error(settings, identity.BROKER_ID, allowed)
    if settings[identity.NODE_ID] not in (-1, number):
        yield _error(settings, identity.NODE_ID, f"must be the same as broker.id ({number})")


def _log(settings: BrokerSettings) -> Iterator[SettingError]:
    if not settings[log.LOG_DIRS]:
        yield _error(settings, log.LOG_DIRS, "must name at least one directory")
    retention: tuple[Key[Any], ...] = (
        log.LOG_RETENTION_MS,
        log.LOG_RETENTION_MINUTES,
        log.LOG_RETENTION_HOURS,
    )
    for key in retention:
        if settings.declared(key) == 0:
            yield _error(settings, key, "must be -1 (for ever) or at least 1")
    if settings[log.LOG_ROLL_MS] < 1:
        yield _error(settings, log.LOG_ROLL_MS, "must be at least 1")
    if settings[log.LOG_ROLL_JITTER_MS] < 0:
        yield _error(settings, log.LOG_ROLL_JITTER_MS, "must be at least 0")
    threads = settings[log.LOG_CLEANER_THREADS]
    share = settings[log.LOG_CLEANER_DEDUPE_BUFFER_SIZE] // max(1, threads)
    if settings[log.LOG_CLEANER_ENABLE] and share <= _DEDUPE_BYTES_PER_CLEANER:
        allowed = f"must be more than 1048576 for each of log.cleaner.threads ({threads})"
        yield _error(settings, log.LOG_CLEANER_DEDUPE_BUFFER_SIZE, allowed)


def _replication(settings: BrokerSettings) -> Iterator[SettingError]:
    wait = settings[replication.REPLICA_FETCH_WAIT_MAX_MS]
    for key in (replication.REPLICA_SOCKET_TIMEOUT_MS, replication.REPLICA_LAG_TIME_MAX_MS):
        if settings[key] < wait:
            yield _error(settings, key, f"must be at least replica.fetch.wait.max.ms ({wait})")


def _coordination(settings: BrokerSettings) -> Iterator[SettingError]:
    factor = settings[coordination.OFFSETS_TOPIC_REPLICATION_FACTOR]
    if not -1 <= settings[coordination.OFFSETS_COMMIT_REQUIRED_ACKS] <= factor:
        allowed = f"must be between -1 and offsets.topic.replication.factor ({factor})"
        yield _error(settings, coordination.OFFSETS_COMMIT_REQUIRED_ACKS, allowed)
    yield from _between(
        settings,
        coordination.GROUP_CONSUMER_MIN_SESSION_TIMEOUT_MS,
        coordination.GROUP_CONSUMER_SESSION_TIMEOUT_MS,
        coordination.GROUP_CONSUMER_MAX_SESSION_TIMEOUT_MS,
    )
    yield from _between(
        settings,
        coordination.GROUP_CONSUMER_MIN_HEARTBEAT_INTERVAL_MS,
        coordination.GROUP_CONSUMER_HEARTBEAT_INTERVAL_MS,
        coordination.GROUP_CONSUMER_MAX_HEARTBEAT_INTERVAL_MS,
    )
    session = settings[coordination.GROUP_CONSUMER_SESSION_TIMEOUT_MS]
    if settings[coordination.GROUP_CONSUMER_HEARTBEAT_INTERVAL_MS] >= session:
        # Kafka's from 4.0 on; before, an interval could be longer than the group's own session.
        allowed = f"must be less than group.consumer.session.timeout.ms ({session})"
        yield _error(settings, coordination.GROUP_CONSUMER_HEARTBEAT_INTERVAL_MS, allowed)


def _between(
    settings: BrokerSettings, low: Key[int], chosen: Key[int], high: Key[int]
) -> Iterator[SettingError]:
    """What is chosen lies within its bounds, which are then in order themselves."""
    if not settings[low] <= settings[chosen] <= settings[high]:
        allowed = f"must be between {low.name} ({settings[low]}) and {high.name} ({settings[high]})"
        yield _error(settings, chosen, allowed)


def _network(settings: BrokerSettings) -> Iterator[SettingError]:
    queued, largest = (
        settings[network.QUEUED_MAX_REQUEST_BYTES],
        settings[network.SOCKET_REQUEST_MAX_BYTES],
    )
    if 0 < queued < largest:
        allowed = f"must be at least socket.request.max.bytes ({largest})"
        yield _error(settings, network.QUEUED_MAX_REQUEST_BYTES, allowed)
    idle = settings[network.CONNECTIONS_MAX_IDLE_MS]
    if 0 <= idle <= settings[network.CONNECTION_FAILED_AUTHENTICATION_DELAY_MS]:
        allowed = f"must be less than connections.max.idle.ms ({idle})"
        yield _error(settings, network.CONNECTION_FAILED_AUTHENTICATION_DELAY_MS, allowed)
    overrides = parse_connection_overrides(settings)
    if settings[network.MAX_CONNECTIONS_PER_IP] == 0 and not overrides:
        allowed = "may be 0 only where max.connections.per.ip.overrides names hosts"
        yield _error(settings, network.MAX_CONNECTIONS_PER_IP, allowed)


def parse_connection_overrides(settings: BrokerSettings) -> dict[str, int]:
    """Host to number of connections; raises SettingError for anything but host:count pairs."""
    key = network.MAX_CONNECTIONS_PER_IP_OVERRIDES
    limits: dict[str, int] = {}
    for item in filter(None, (part.strip() for part in settings[key].split(","))):
        host, _, count = item.rpartition(":")
        if not host.strip() or not count.strip().isdecimal():
            raise _error(settings, key, f"{item!r} is not of the form host:count")
        limits[host.strip()] = int(count)
    return limits


def _listeners(settings: BrokerSettings) -> Iterator[SettingError]:
    protocols = parse_protocol_map(
        network.LISTENER_SECURITY_PROTOCOL_MAP.name,
        settings[network.LISTENER_SECURITY_PROTOCOL_MAP],
    )
    key, text = network.LISTENERS.name, settings[network.LISTENERS]
    own = parse_listeners(key, text, protocols=protocols)
    if not own:
        yield SettingError(key, text, "must name at least one listener")
    check_distinct(key, text, own)
    advertised_key = network.ADVERTISED_LISTENERS
    advertised = parse_listeners(advertised_key.name, settings[advertised_key], protocols=protocols)
    yield from _advertised(settings, own, advertised)
    yield from _special_listeners(settings, advertised)


def _advertised(
    settings: BrokerSettings, own: tuple[Listener, ...], advertised: tuple[Listener, ...]
) -> Iterator[SettingError]:
    key = network.ADVERTISED_LISTENERS
    text = settings[key]
    names = {listener.name for listener in own}
    for listener in advertised:
        if listener.name not in names:
            yield SettingError(key.name, text, f"listener {listener.name} is not in listeners")
        if listener.host == "0.0.0.0":  # noqa: S104  (refused here, not bound)
            advice = "0.0.0.0 is no address for clients; set advertised.listeners to one they reach"
            yield SettingError(key.name, text, advice)
    for name in names:
        if sum(listener.name == name for listener in advertised) > 1:
            yield SettingError(key.name, text, f"listener {name} is given twice")


def _special_listeners(
    settings: BrokerSettings, advertised: tuple[Listener, ...]
) -> Iterator[SettingError]:
    names = {listener.name for listener in advertised}
    listener_key = network.INTER_BROKER_LISTENER_NAME
    protocol_key = network.SECURITY_INTER_BROKER_PROTOCOL
    if settings.given(listener_key.name) and settings.given(protocol_key.name):
        yield _error(settings, listener_key, f"excludes {protocol_key.name}; give one of the two")
    inter_broker = settings[listener_key].upper()
    if inter_broker not in names:
        allowed = f"listener {inter_broker}, used among brokers, is not in advertised.listeners"
        chosen = listener_key if settings.given(listener_key.name) else protocol_key
        yield _error(settings, chosen, allowed)
    control = settings.control_plane_listener
    if control is not None and (control not in names or control == inter_broker):
        allowed = "must be a listener of its own in advertised.listeners"
        yield _error(settings, network.CONTROL_PLANE_LISTENER_NAME, allowed)


_CHECKS: Final[tuple[Callable[[BrokerSettings], Iterator[SettingError]], ...]] = (
    _identity, _log, _replication, _coordination, _network, _listeners,
)  # fmt: skip


# Classes that decide who may do what: ignoring one would open what its user wants closed.
_GUARDS: Final[tuple[Key[Any], ...]] = (
    security.PRINCIPAL_BUILDER_CLASS,
    identity.CREATE_TOPIC_POLICY_CLASS_NAME,
    identity.ALTER_CONFIG_POLICY_CLASS_NAME,
)
_SWITCHES: Final[tuple[tuple[Key[Any], str], ...]] = (
    (absent.PROCESS_ROLES, "this broker runs in ZooKeeper mode only"),
    (absent.REMOTE_LOG_STORAGE_SYSTEM_ENABLE, "tiered storage is not offered"),
    (identity.ZOOKEEPER_METADATA_MIGRATION_ENABLE, "this broker runs in ZooKeeper mode only"),
)
_SELECTORS: Final = (None, replication.READ_FROM_LEADER, replication.READ_FROM_SAME_RACK)


def _selector(settings: BrokerSettings) -> Iterator[SettingError]:
    if settings[replication.REPLICA_SELECTOR_CLASS] not in _SELECTORS:
        allowed = "is not served; " + " and ".join(filter(None, _SELECTORS)) + " are"
        yield _error(settings, replication.REPLICA_SELECTOR_CLASS, allowed)


def _authorizer(settings: BrokerSettings) -> Iterator[SettingError]:
    if settings[security.AUTHORIZER_CLASS_NAME] not in ("", *security.AUTHORIZERS):
        allowed = "is not served; " + " and ".join(security.AUTHORIZERS) + " are"
        yield _error(settings, security.AUTHORIZER_CLASS_NAME, allowed)


def not_offered(settings: BrokerSettings) -> Iterator[SettingError]:
    """Settings that must not be passed over in silence, and are not served."""
    for key in _GUARDS:
        if settings[key] != key.default:
            yield _error(settings, key, "is not served; without it the cluster would be open")
    yield from _authorizer(settings)
    yield from _selector(settings)
    for switch, reason in _SWITCHES:
        if settings[switch]:
            yield _error(settings, switch, reason)
    for name in settings.explicit:
        if name == "config.providers":
            yield SettingError(name, settings.explicit[name], "values from providers are not read")
    yield from _among_brokers(settings)
    yield from _password_encoder(settings)


def _password_encoder(settings: BrokerSettings) -> Iterator[SettingError]:
    """How passwords are encrypted, where they are."""
    if settings[security.PASSWORD_ENCODER_SECRET] is None:
        return
    offered: tuple[tuple[Key[Any], tuple[Any, ...]], ...] = (
        (security.PASSWORD_ENCODER_KEYFACTORY_ALGORITHM, security.KEY_DERIVATIONS),
        (security.PASSWORD_ENCODER_CIPHER_ALGORITHM, security.PASSWORD_CIPHERS),
        (security.PASSWORD_ENCODER_KEY_LENGTH, security.CIPHER_KEY_BITS),
    )
    for key, choices in offered:
        if settings[key] is not None and settings[key] not in choices:
            yield _error(settings, key, f"is not offered; choose {', '.join(map(str, choices))}")
    key = security.PASSWORD_ENCODER_ITERATIONS
    if settings[key] > security.PASSWORD_ITERATIONS_MAX:
        yield _error(settings, key, f"at most {security.PASSWORD_ITERATIONS_MAX}")


def _among_brokers(settings: BrokerSettings) -> Iterator[SettingError]:
    """The mechanism by which brokers connect to each other has to be one that they offer."""
    key = security.SASL_MECHANISM_INTER_BROKER_PROTOCOL
    mechanism = settings[key]
    try:
        own = settings.listeners
    except SettingError:
        return  # Reported among the contradictions.
    for listener in own:
        if listener.name not in settings.listeners_among_brokers or not listener.protocol.sasl:
            continue
        if mechanism not in security.MECHANISMS_AMONG_BROKERS:
            offered = ", ".join(security.MECHANISMS_AMONG_BROKERS)
            allowed = f"is not offered among brokers (listener {listener.name}); choose {offered}"
            yield _error(settings, key, allowed)
            return
        enabled = settings.of_listener(listener.name, security.SASL_ENABLED_MECHANISMS)
        if mechanism not in enabled:
            allowed = (
                f"must be included in {security.SASL_ENABLED_MECHANISMS.name} of listener "
                f"{listener.name}, which brokers use among themselves ({', '.join(enabled)})"
            )
            yield _error(settings, key, allowed)
