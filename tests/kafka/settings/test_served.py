"""A setting said to be in effect is read by the broker, and one said not to be is not."""

import re
from pathlib import Path
from typing import Any

from barnabas_kafka.settings import broker, topic
from barnabas_kafka.settings.definitions import Key, Served
from barnabas_kafka.settings.effective import synonyms_of

SOURCES = Path(__file__).parents[3] / "broker-image" / "src"

# Settings that take effect through another name than their own, and how.
READ_THROUGH = {
    "listeners": "BrokerSettings.listeners",
    "advertised.listeners": "BrokerSettings.advertised_listeners",
    "listener.security.protocol.map": "BrokerSettings.listeners",
    "inter.broker.listener.name": "checks of what is advertised",
    "security.inter.broker.protocol": "inter.broker.listener.name",
    "broker.id.generation.enable": "checks of broker.id",
    "max.connections.per.ip.overrides": "BrokerSettings.connections_per_address",
    "control.plane.listener.name": "BrokerSettings.control_plane_listener",
    "node.id": "broker.id, its twin",
    "group.consumer.min.session.timeout.ms": "checks of group.consumer.session.timeout.ms",
    "group.consumer.max.session.timeout.ms": "checks of group.consumer.session.timeout.ms",
    "group.consumer.min.heartbeat.interval.ms": "checks of group.consumer.heartbeat.interval.ms",
    "group.consumer.max.heartbeat.interval.ms": "checks of group.consumer.heartbeat.interval.ms",
    "log.dir": "log.dirs",
    "log.message.timestamp.difference.max.ms": "the limits before and after",
    "message.timestamp.difference.max.ms": "the limits before and after",
}


def constants(keys: Any) -> dict[str, str]:
    """The name in Python of each setting of a module."""
    return {value.name: name for name, value in vars(keys).items() if isinstance(value, Key)}


def read_by_the_broker() -> tuple[set[str], set[str]]:
    """The broker and the topic settings that the broker's code names."""
    code = "\n".join(path.read_text("utf-8") for path in SOURCES.rglob("*.py"))
    words = set(re.findall(r"\b[A-Z][A-Z0-9_]+\b", code))
    topics = {name for name, constant in constants(topic).items() if constant in words}
    own = {name for name, constant in constants(broker).items() if constant in words}
    own |= {topic.BEHIND[name].name for name in topics if name in topic.BEHIND}
    return {synonym for name in own for synonym in synonyms_of(name)}, topics


def test_effective_settings_are_read_by_the_broker() -> None:
    """A setting is never promised and forgotten."""
    brokers, topics = read_by_the_broker()
    forgotten = [
        name
        for keys, read in ((broker.KEYS, brokers), (topic.KEYS, topics))
        for name, key in keys.items()
        if key.served is Served.ACTS and name not in read and name not in READ_THROUGH
    ]
    assert forgotten == []


def test_settings_that_the_broker_reads_are_effective() -> None:
    """A setting that works is not listed as one that does not."""
    brokers, topics = read_by_the_broker()
    denied = [
        name
        for keys, read in ((broker.KEYS, brokers), (topic.KEYS, topics))
        for name, key in keys.items()
        if key.served is not Served.ACTS and name in read
    ]
    assert denied == []
