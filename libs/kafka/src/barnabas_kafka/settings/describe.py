"""Describes settings the way DescribeConfigs answers: value, where it comes from, what it hides.

A setting's synonyms are listed strongest first, and the first one's source is the setting's source
(Kafka's `ConfigHelper`): a topic's own value, then a value changed at run time for this broker,
then for all brokers, then the properties file, then the default. Names that Kafka does not know are
shown without their value, because they may be secrets of a plugin.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import IntEnum
from typing import Any

from .broker import KEYS, BrokerSettings
from .definitions import Key, Kind, UpdateMode
from .dynamic import find_setting
from .effective import synonyms_of


class ConfigSource(IntEnum):
    """Where a value comes from; the numbers are those of DescribeConfigs."""

    UNKNOWN = 0
    TOPIC = 1
    DYNAMIC_BROKER = 2
    DYNAMIC_DEFAULT_BROKER = 3
    STATIC_BROKER = 4
    DEFAULT = 5


@dataclass(frozen=True, slots=True)
class ConfigSynonym:
    """One name that could give the value, and what it says; None for a secret."""

    name: str
    value: str | None
    source: ConfigSource


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfigEntry:
    """One setting as a client sees it; `value` is None for secrets and for what has no value."""

    name: str
    value: str | None
    source: ConfigSource
    is_sensitive: bool
    read_only: bool
    synonyms: tuple[ConfigSynonym, ...]
    type: Kind
    doc: str

    @property
    def is_default(self) -> bool:
        """Version 0 of DescribeConfigs knows only this."""
        return self.source is ConfigSource.DEFAULT


def describe_broker(settings: BrokerSettings) -> list[ConfigEntry]:
    """Every setting of a broker: all that Kafka declares, and what the user gave beyond."""
    declared = [
        describe_key(key, settings)
        for key in KEYS.values()
        if not key.internal or settings.given(key.name)
    ]
    beyond = {**settings.explicit, **settings.cluster_wide, **settings.per_broker}
    return declared + [_describe_undeclared(name, settings) for name in beyond if name not in KEYS]


def describe_cluster_wide(settings: BrokerSettings) -> list[ConfigEntry]:
    """What was changed for all brokers (the resource of type BROKER with an empty name)."""
    entries = []
    for name, text in settings.cluster_wide.items():
        key = find_setting(name)
        secret = key is None or key.sensitive
        value = None if secret else text
        entries.append(
            ConfigEntry(
                name=name,
                value=value,
                source=ConfigSource.DYNAMIC_DEFAULT_BROKER,
                is_sensitive=secret,
                # Also what has no line in Kafka's list of those that can change, as rates.
                read_only=name not in KEYS or KEYS[name].update is UpdateMode.READ_ONLY,
                synonyms=(ConfigSynonym(name, value, ConfigSource.DYNAMIC_DEFAULT_BROKER),),
                type=Kind.UNKNOWN if key is None else key.kind,
                doc="" if key is None else key.doc,
            )
        )
    return entries


def describe_key(key: Key[Any], settings: BrokerSettings) -> ConfigEntry:
    """One declared setting of a broker."""
    synonyms = tuple(broker_synonyms(key.name, settings))
    return ConfigEntry(
        name=key.name,
        value=None if key.sensitive else settings.text(key),
        source=synonyms[0].source if synonyms else ConfigSource.DEFAULT,
        is_sensitive=key.sensitive,
        read_only=key.update is UpdateMode.READ_ONLY,
        synonyms=synonyms,
        type=key.kind,
        doc=key.doc,
    )


def broker_synonyms(name: str, settings: BrokerSettings) -> Iterator[ConfigSynonym]:
    """The values given for a setting, strongest first, from its own name on.

    So a setting that only other names decide has no synonyms: those that come before the name say
    nothing about it.
    """
    said = list(_said_about(_names_of(name), settings))
    own = next((place for place, synonym in enumerate(said) if synonym.name == name), len(said))
    yield from said[own:]


def _names_of(name: str) -> tuple[str, ...]:
    """The names that may give a setting its value; a listener's own goes before that of all."""
    key = find_setting(name)
    return synonyms_of(name) if key is None or key.name == name else (name, key.name)


def _said_about(names: tuple[str, ...], settings: BrokerSettings) -> Iterator[ConfigSynonym]:
    layers: tuple[tuple[ConfigSource, Mapping[str, str]], ...] = (
        (ConfigSource.DYNAMIC_BROKER, settings.per_broker),
        (ConfigSource.DYNAMIC_DEFAULT_BROKER, settings.cluster_wide),
        (ConfigSource.STATIC_BROKER, settings.static),
    )
    for source, layer in layers:
        for synonym in names:
            if synonym in layer:
                key = find_setting(synonym)
                shown = None if key is None or key.sensitive else layer[synonym]
                yield ConfigSynonym(synonym, shown, source)
    for synonym in names:
        key = KEYS.get(synonym)
        if key is not None and key.default_text is not None:
            shown = None if key.sensitive else key.default_text
            yield ConfigSynonym(synonym, shown, ConfigSource.DEFAULT)


def _describe_undeclared(name: str, settings: BrokerSettings) -> ConfigEntry:
    """A name given by the user that is no setting of its own, `listener.name.…` ones included."""
    key = find_setting(name)
    secret = key is None or key.sensitive
    synonyms = tuple(broker_synonyms(name, settings))
    layers = (settings.per_broker, settings.cluster_wide, settings.explicit)
    text = next(layer[name] for layer in layers if name in layer)
    return ConfigEntry(
        name=name,
        value=None if secret else text,
        source=synonyms[0].source,
        is_sensitive=secret,
        read_only=True,
        synonyms=synonyms,
        type=Kind.UNKNOWN if key is None else key.kind,
        doc="" if key is None else key.doc,
    )
