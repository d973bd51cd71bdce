"""Settings as files, topics and clients give them.

Input: as a properties file; its first entry is also a change of a topic and of a broker.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache

from barnabas_kafka.settings import topic
from barnabas_kafka.settings.broker import BrokerSettings
from barnabas_kafka.settings.definitions import SettingError
from barnabas_kafka.settings.dynamic import Scope, validate_changes
from barnabas_kafka.settings.properties import parse_properties


@cache
def _broker() -> BrokerSettings:
    return BrokerSettings.from_mapping({"log.dirs": "/d", "broker.id": "1"})


def check(data: bytes) -> None:
    """Any entry is taken or refused with SettingError, and what is taken can be described."""
    try:
        entries = parse_properties(data, origin="input")
    except SettingError:
        return
    for name, value in list(entries.items())[:4]:
        try:
            topic.validate_overrides(_broker(), {name: value})
            topic.describe_topic(_broker(), {name: value})
        except SettingError:
            pass
        for scope in Scope:
            try:
                validate_changes(_broker(), {name: value}, scope=scope)
            except SettingError:
                pass
        try:
            BrokerSettings.from_mapping({"log.dirs": "/d", "broker.id": "1", name: value})
        except SettingError:
            pass


def seeds() -> Iterator[bytes]:
    """Each topic setting at its default, and some of the broker's."""
    for name, key in topic.KEYS.items():
        yield f"{name}={key.format(key.default) if key.default is not None else ''}".encode()
    yield b"listeners=PLAINTEXT://:9092,SSL://[::1]:9093\nadvertised.listeners=PLAINTEXT://h:1"
    yield b"listener.name.plaintext.max.connections=5\nmax.connections.per.ip.overrides=a:1,b:2"
