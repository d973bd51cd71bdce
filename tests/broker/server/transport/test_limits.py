"""Bounds worked out from settings and machine."""

import resource

from barnabas_broker.server.transport.limits import (
    CONNECTIONS,
    FRAME_MEMORY_MAX,
    FRAME_MEMORY_MIN,
    ConnectionLimits,
    frame_memory_bytes,
    memory_bytes,
)
from barnabas_kafka.settings.broker import BrokerSettings

UNLIMITED = str(2**31 - 1)
TWO_LISTENERS = {
    "listeners": "CLIENT://:9092,BROKERS://:9093",
    "listener.security.protocol.map": "CLIENT:PLAINTEXT,BROKERS:PLAINTEXT",
    "inter.broker.listener.name": "BROKERS",
}


def limits(**given: str) -> ConnectionLimits:
    """The limits by these settings; names have underscores for dots."""
    settings = {name.replace("_", "."): value for name, value in given.items()}
    return ConnectionLimits.from_settings(BrokerSettings.from_mapping(settings))


def test_connections_are_bounded_by_default() -> None:
    """Apache's "no limit" is taken only from somebody who says it."""
    descriptors, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    assert limits().total == min(CONNECTIONS, descriptors // 2)
    assert limits(max_connections=UNLIMITED).total == 2**31 - 1
    assert limits(max_connections_per_ip="7").of_address == 7


def test_overrides_name_hosts_or_addresses() -> None:
    """Names are looked up, as connections come from addresses."""
    found = limits(max_connections_per_ip_overrides="localhost:5,10.1.2.3:6").of_named_address
    assert found["127.0.0.1"] == 5
    assert found["10.1.2.3"] == 6


def test_a_host_that_is_not_known_is_left_out() -> None:
    """A typing error does not keep a broker from starting."""
    assert limits(max_connections_per_ip_overrides="no.such.host.invalid:5").of_named_address == {}


def test_listeners_have_their_own_limits() -> None:
    """`listener.name.<listener>.` in lower case goes before the key."""
    settings = {
        **TWO_LISTENERS,
        "listener.name.client.max.connections": "5",
        "listener.name.client.max.connection.creation.rate": "2",
    }
    found = ConnectionLimits.from_settings(BrokerSettings.from_mapping(settings))
    assert found.of_listener == {"CLIENT": 5}
    assert found.rate_of_listener == {"CLIENT": 2}


def test_the_listener_of_brokers_is_protected_where_clients_have_another() -> None:
    """With a single listener nobody can be told from anybody."""
    assert limits().protected == set()
    found = ConnectionLimits.from_settings(BrokerSettings.from_mapping(TWO_LISTENERS))
    assert found.protected == {"BROKERS"}


def test_the_controllers_listener_is_protected_too() -> None:
    """That of brokers only where clients still have another."""
    control = {"control.plane.listener.name": "CLIENT"}
    found = ConnectionLimits.from_settings(BrokerSettings.from_mapping(TWO_LISTENERS | control))
    assert found.protected == {"CLIENT"}
    third = {
        "listeners": TWO_LISTENERS["listeners"] + ",CONTROLLER://127.0.0.1:0",
        "listener.security.protocol.map": TWO_LISTENERS["listener.security.protocol.map"]
        + ",CONTROLLER:PLAINTEXT",
        "control.plane.listener.name": "controller",
    }
    found = ConnectionLimits.from_settings(BrokerSettings.from_mapping(TWO_LISTENERS | third))
    assert found.protected == {"BROKERS", "CONTROLLER"}


def test_requests_may_use_a_part_of_memory() -> None:
    """Unless the setting says how much."""
    settings = BrokerSettings.from_mapping({})
    assert FRAME_MEMORY_MIN <= frame_memory_bytes(settings) <= FRAME_MEMORY_MAX
    assert frame_memory_bytes(settings) <= max(FRAME_MEMORY_MIN, memory_bytes() // 4)
    given = BrokerSettings.from_mapping({"queued.max.request.bytes": "123456789"})
    assert frame_memory_bytes(given) == 123_456_789
