"""A setting: its name, type, default, range, documentation and the module that uses it.

Every broker and topic setting is one `Key` object. A key knows how its text in a properties file, a
request or a znode becomes a value (`parse`) and how the value is shown again (`format`), and it
refuses what Kafka refuses, in one line that names the key, the value and what would have been
allowed.

`Served` keeps us honest: a setting that this engine parses but does not act on says so, and the
broker lists it at start if it is set.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum, IntEnum
from typing import Any, Generic, TypeVar

T_co = TypeVar("T_co", covariant=True)
T_contra = TypeVar("T_contra", contravariant=True)


class SettingError(ValueError):
    """A setting was given a value that it cannot have.

    `str()` is one line fit for a user: key, value (unless secret) and what is allowed.
    """

    def __init__(self, key: str, value: str | None, message: str) -> None:
        self.key = key
        self.value = value
        self.message = message
        super().__init__(f"{key}={value}: {message}" if value is not None else f"{key}: {message}")

    @property
    def to_clients(self) -> str:
        """The same in the form of Kafka's `ConfigException`, which tools and tests look for."""
        if self.value is None:
            return str(self)
        return f"Invalid value {self.value} for configuration {self.key}: {self.message}"


class Kind(IntEnum):
    """The declared type of a setting; the numbers are those of DescribeConfigs (KIP-569)."""

    UNKNOWN = 0
    BOOLEAN = 1
    STRING = 2
    INT = 3
    SHORT = 4
    LONG = 5
    DOUBLE = 6
    LIST = 7
    CLASS = 8
    PASSWORD = 9


class Importance(Enum):
    """How much attention Kafka's own reference asks for."""

    HIGH = "high"
    MEDIUM = "medium"
    LOW = "low"


class UpdateMode(Enum):
    """How a change takes effect (KIP-226): at restart, per broker, or also cluster-wide."""

    READ_ONLY = "read-only"
    PER_BROKER = "per-broker"
    CLUSTER_WIDE = "cluster-wide"


class Served(Enum):
    """What this engine does with a setting."""

    ACTS = "in effect"
    OTHERWISE = "decided otherwise here"
    LATER = "not yet in effect"
    NEVER = "no counterpart in this engine"


@dataclass(frozen=True, slots=True)
class Rule(Generic[T_contra]):
    """What a parsed value must satisfy: `allows` decides, `text` is shown to the user."""

    text: str
    allows: Callable[[T_contra], bool]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Key(Generic[T_co]):
    """One setting.

    `default` is None where Kafka declares none; a key whose value is then taken from another key
    (for example `log.dirs` from `log.dir`) still promises one, which `BrokerSettings` works out.
    `note` says what the engine does instead when `served` is not ACTS.
    """

    name: str
    kind: Kind
    default: T_co | None
    doc: str
    read: Callable[[str], T_co]
    show: Callable[[Any], str]
    rule: Rule[Any] | None = None
    importance: Importance = Importance.MEDIUM
    update: UpdateMode = UpdateMode.READ_ONLY
    served: Served = Served.ACTS
    note: str = ""
    internal: bool = False

    @property
    def sensitive(self) -> bool:
        """Whether the value must never be shown."""
        return self.kind is Kind.PASSWORD

    @property
    def allowed(self) -> str:
        """The values this key takes, in words."""
        return self.rule.text if self.rule else ""

    @property
    def default_text(self) -> str | None:
        """The default as it would be written in a properties file, or None where there is none."""
        return None if self.default is None else self.show(self.default)

    def parse(self, text: str) -> T_co:
        """Read a value; raises SettingError for malformed text or a value out of range."""
        shown = None if self.sensitive else text
        try:
            value = self.read(text.strip())
        except ValueError as problem:
            raise SettingError(self.name, shown, self._sentence(str(problem))) from None
        if self.rule is not None and not self.rule.allows(value):
            raise SettingError(self.name, shown, f"must be {self.rule.text}")
        return value

    def format(self, value: object) -> str:
        """Write a value the way Kafka shows it."""
        return self.show(value)

    def _sentence(self, problem: str) -> str:
        return f"{problem}; allowed: {self.allowed}" if self.allowed else problem
