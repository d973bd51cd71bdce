"""A broker's settings: every key by name, and the values one broker runs with.

`BrokerSettings` is made of what the user gave (a properties file and `--set`), checked as a whole,
and answers `settings[NUM_PARTITIONS]` with a typed value. A setting that another one decides is
worked out: `settings[LOG_RETENTION_MS]` is the retention in effect, whichever of the three names
gave it.

Unknown names are kept, not refused, as Kafka does (its plugins read them): `unknown` has them with
the nearest known name. `without_effect` has the settings given that this engine does not act on.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from types import ModuleType
from typing import Any, Final, TypeVar, cast

from . import checks
from .definitions import Key, Served, SettingError
from .effective import EFFECTIVE, RENAMED, synonyms_of, with_twins
from .keys import (
    absent,
    coordination,
    identity,
    log,
    network,
    observation,
    own,
    replication,
    security,
)
from .keys.absent import *
from .keys.coordination import *
from .keys.identity import *
from .keys.log import *
from .keys.network import *
from .keys.observation import *
from .keys.own import *
from .keys.replication import *
from .keys.security import *
from .listeners import Listener, parse_listeners, parse_protocol_map
from .old_names import explain, nearest_name

T = TypeVar("T")


def _collect(*families: ModuleType) -> dict[str, Key[Any]]:
    keys = (value for family in families for value in vars(family).values())
    return {key.name: key for key in keys if isinstance(key, Key)}


FAMILIES: Final = (
    identity, network, log, replication, coordination, security, observation, own, absent,
)  # fmt: skip
KEYS: Final[Mapping[str, Key[Any]]] = _collect(*FAMILIES)

_LISTENER_PREFIX = "listener.name."
# Families of names that plugins and Kafka's own helpers read without declaring them one by one.
_OPEN_PREFIXES = ("rsm.config.", "rlmm.config.", "authorizer.zookeeper.")
# What Kafka's authorizers read of the same file (`AclAuthorizer`, `StandardAuthorizer`).
_OF_AUTHORIZERS = frozenset({"super.users", "allow.everyone.if.no.acl.found"})


def find_key(name: str) -> Key[Any] | None:
    """The key of a name; `listener.name.<listener>.[<mechanism>.]<key>` finds the last part."""
    name = RENAMED.get(name, name)
    if name in KEYS:
        return KEYS[name]
    if not name.startswith(_LISTENER_PREFIX):
        return None
    rest = name.removeprefix(_LISTENER_PREFIX).split(".")[1:]
    suffixes = (".".join(rest[start:]) for start in range(min(2, len(rest))))
    return next((KEYS[suffix] for suffix in suffixes if suffix in KEYS), None)


class BrokerSettings:
    """The settings of one broker, immutable.

    `explicit` is what the user gave, and `static` the same with twin names; `per_broker` and
    `cluster_wide` are what was changed at run time (KIP-226). The strongest is in effect, in the
    order per broker, cluster-wide, given, default.
    """

    __slots__ = (
        "_effective",
        "_values",
        "cluster_wide",
        "explicit",
        "per_broker",
        "static",
        "unknown",
    )

    def __init__(
        self,
        explicit: Mapping[str, str],
        *,
        per_broker: Mapping[str, str] | None = None,
        cluster_wide: Mapping[str, str] | None = None,
    ) -> None:
        self.explicit: Final = dict(explicit)
        self.static: Final = with_twins(explicit)
        self.per_broker: Final = dict(per_broker or {})
        self.cluster_wide: Final = dict(cluster_wide or {})
        self.unknown: Final = {
            name: nearest_name(name, KEYS)
            for name in explicit
            if find_key(name) is None
            and name not in _OF_AUTHORIZERS
            and not name.startswith(_OPEN_PREFIXES)
        }
        self._values: Final = self._parse_all()
        self._effective: Final = {
            name: work_out(self._values) for name, work_out in EFFECTIVE.items()
        }

    @classmethod
    def from_mapping(cls, mapping: Mapping[str, str], *, strict: bool = False) -> BrokerSettings:
        """Check and take settings; raises the first SettingError (see `problems` for all).

        `strict` also refuses names that Kafka does not know.
        """
        problems = cls.problems(mapping, strict=strict)
        if problems:
            raise problems[0]
        return cls(mapping)

    @classmethod
    def problems(cls, mapping: Mapping[str, str], *, strict: bool = False) -> list[SettingError]:
        """Everything wrong with the settings: single values first, then those that contradict.

        What contradicts a wrong value is not known yet.
        """
        problems = list(_value_problems(mapping))
        wrong = {problem.key for problem in problems}
        settings = cls({name: text for name, text in mapping.items() if name not in wrong})
        problems += [
            each
            for each in (*checks.contradictions(settings), *checks.not_offered(settings))
            if each.key not in wrong and not any(name in each.message for name in wrong)
        ]
        if strict:
            problems += [SettingError(name, None, explain(name, KEYS)) for name in settings.unknown]
        return problems

    def with_dynamic(
        self,
        per_broker: Mapping[str, str],
        cluster_wide: Mapping[str, str] | None = None,
    ) -> BrokerSettings:
        """These settings with other run-time changes in place of the present ones.

        Raises SettingError where a value is malformed or contradicts another; the old object stays.
        """
        for problem in _value_problems({**(cluster_wide or {}), **per_broker}):
            raise problem
        changed = BrokerSettings(self.explicit, per_broker=per_broker, cluster_wide=cluster_wide)
        for problem in (*checks.contradictions(changed), *checks.not_offered(changed)):
            raise problem
        return changed

    def __getitem__(self, key: Key[T]) -> T:
        """The value in effect."""
        if key.name in self._effective:
            return cast("T", self._effective[key.name])
        return cast("T", self._values[key.name])

    def declared(self, key: Key[T]) -> T | None:
        """The value given to this very name or its default, before other names are considered."""
        return cast("T | None", self._values[key.name])

    def given(self, name: str) -> bool:
        """Whether this name was set, at start or at run time."""
        return name in self.explicit or name in self.per_broker or name in self.cluster_wide

    def own_of_listener(
        self, listener: str, key: Key[Any], *, mechanism: str | None = None
    ) -> str | None:
        """The text given for one listener, or for one of its SASL mechanisms, or None.

        Its name is `listener.name.<listener>.[<mechanism>.]<key>` (KIP-103, KIP-226).
        """
        parts = [listener.lower(), *([] if mechanism is None else [mechanism.lower()]), key.name]
        name = _LISTENER_PREFIX + ".".join(parts)
        layers = (self.per_broker, self.cluster_wide, self.explicit)
        return next((layer[name] for layer in layers if name in layer), None)

    def of_listener(self, listener: str, key: Key[T]) -> T:
        """The value in effect for one listener: its own, else the broker's."""
        text = self.own_of_listener(listener, key)
        return self[key] if text is None else key.parse(text)

    @property
    def renamed(self) -> dict[str, str]:
        """Old names that were given, and what each is called today."""
        return {name: RENAMED[name] for name in self.explicit if name in RENAMED}

    @property
    def without_effect(self) -> dict[str, Key[Any]]:
        """Settings given that this engine does not act on, or not in the way the name says."""
        found = ((name, find_key(name)) for name in self.explicit)
        return {name: key for name, key in found if key and key.served is not Served.ACTS}

    @property
    def changed(self) -> dict[str, str]:
        """Known settings whose value is not the default, as text; secrets are not shown."""
        return {
            name: "[hidden]" if key.sensitive else str(text)
            for name, key in KEYS.items()
            if self.given(name) and (text := self.text(key)) != key.default_text
        }

    def text(self, key: Key[Any]) -> str | None:
        """The declared value as text, or None where there is none."""
        value = self._values[key.name]
        return None if value is None else key.format(value)

    @property
    def listeners(self) -> tuple[Listener, ...]:
        """Where to listen; checked, so that it does not fail."""
        return self._addresses(network.LISTENERS)

    @property
    def advertised_listeners(self) -> tuple[Listener, ...]:
        """The advertised listeners; an empty host means the machine's own name."""
        return self._addresses(network.ADVERTISED_LISTENERS)

    @property
    def inter_broker_listener(self) -> str:
        """The name of the listener that brokers use among themselves."""
        return self[network.INTER_BROKER_LISTENER_NAME].upper()

    @property
    def control_plane_listener(self) -> str | None:
        """The name of the listener between controller and brokers, None where it has none."""
        name = self[network.CONTROL_PLANE_LISTENER_NAME]
        return None if name is None else name.upper()

    @property
    def listeners_among_brokers(self) -> frozenset[str]:
        """The listeners through which brokers connect to each other; none without others."""
        if not self[identity.ZOOKEEPER_CONNECT]:
            return frozenset()
        names = (self.inter_broker_listener, self.control_plane_listener)
        return frozenset(name for name in names if name is not None)

    @property
    def connections_per_address(self) -> dict[str, int]:
        """`max.connections.per.ip.overrides` by host."""
        return checks.parse_connection_overrides(self)

    def _addresses(self, key: Key[str]) -> tuple[Listener, ...]:
        mapping = network.LISTENER_SECURITY_PROTOCOL_MAP
        protocols = parse_protocol_map(mapping.name, self[mapping])
        return parse_listeners(key.name, self[key], protocols=protocols)

    def _parse_all(self) -> dict[str, Any]:
        """Parsed values of every key; a stronger layer removes the synonyms a weaker one gave."""
        texts = dict(self.static)
        for layer in (self.cluster_wide, self.per_broker):
            for given, text in layer.items():
                name = RENAMED.get(given, given)
                if name != given and name in layer:
                    continue  # As at start, the old name is read where the new one is not given.
                for synonym in synonyms_of(name):
                    texts.pop(synonym, None)
                texts[name] = text
        return {
            name: key.parse(texts[name]) if name in texts else key.default
            for name, key in KEYS.items()
        }


def _value_problems(mapping: Mapping[str, str]) -> Iterator[SettingError]:
    for name, text in mapping.items():
        key = find_key(name)
        if key is None:
            continue
        try:
            key.parse(text)
        except SettingError as problem:
            yield SettingError(name, problem.value, problem.message)
