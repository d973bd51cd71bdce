"""Declares settings in one line each: how texts become values, ranges, and one function per type.

The text rules are those of Kafka's `ConfigDef.parseType`: surrounding blanks are dropped, booleans
are `true` or `false` in any case, numbers are decimal and must fit the declared width, lists are
split at commas and an empty text is an empty list.

A default is a value, None where the setting may be absent (the key is then a `Key[T | None]`), or
`ELSEWHERE` where an absent value is taken from another key (the key stays a `Key[T]`, because
`BrokerSettings` always works the value out).
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from enum import Enum
from typing import Any, Final, Literal, TypedDict, TypeVar, Unpack, overload

from .definitions import Importance, Key, Kind, Rule, Served, UpdateMode

T = TypeVar("T")

INT_MAX: Final = 2**31 - 1
LONG_MAX: Final = 2**63 - 1
DOUBLE_MAX: Final = 1.7976931348623157e308

_DECIMAL = re.compile(r"[+-]?[0-9]+")
_COMMA = re.compile(r"\s*,\s*")


class _Elsewhere(Enum):
    ELSEWHERE = "taken from another key"


ELSEWHERE: Final = _Elsewhere.ELSEWHERE
_FromOther = Literal[_Elsewhere.ELSEWHERE]


class Traits(TypedDict, total=False):
    """What may be said of a key beside its name, default and meaning."""

    rule: Rule[Any] | None
    importance: Importance
    update: UpdateMode
    served: Served
    note: str
    internal: bool


# --- ranges ---------------------------------------------------------------------------------------


def at_least(low: float) -> Rule[float]:
    """A number not below `low`."""
    return Rule(f"at least {low}", lambda value: value >= low)


def between(low: float, high: float) -> Rule[float]:
    """A number from `low` to `high`, both included."""
    return Rule(f"between {low} and {high}", lambda value: low <= value <= high)


def one_of(*choices: str, ignore_case: bool = False) -> Rule[str]:
    """One of the given words."""
    known = {choice.lower() for choice in choices} if ignore_case else set(choices)
    text = "one of " + ", ".join(choices)
    return Rule(text, lambda value: (value.lower() if ignore_case else value) in known)


def all_of(*choices: str) -> Rule[tuple[str, ...]]:
    """A list made only of the given words."""
    return Rule("a list made of " + ", ".join(choices), lambda value: set(value) <= set(choices))


def not_empty() -> Rule[str]:
    """Any text but the empty one."""
    return Rule("not empty", lambda value: value != "")


# --- text to value and back -----------------------------------------------------------------------


def _read_boolean(text: str) -> bool:
    lowered = text.lower()
    if lowered not in ("true", "false"):
        raise ValueError("must be true or false")
    return lowered == "true"


def _show_boolean(value: bool) -> str:
    return "true" if value else "false"


def _integer_reader(bits: int) -> Callable[[str], int]:
    """A reader of signed decimal numbers, as strict as Java's parseInt and its kin."""

    def read(text: str) -> int:
        if _DECIMAL.fullmatch(text) is None:
            raise ValueError("must be a whole number")
        value = int(text)
        if not -(2 ** (bits - 1)) <= value < 2 ** (bits - 1):
            raise ValueError(f"must fit {bits} bits (to {2 ** (bits - 1) - 1})")
        return value

    return read


def _read_double(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        raise ValueError("must be a number") from None
    if not math.isfinite(value) or "_" in text:
        raise ValueError("must be a number")
    return value


def _show_double(value: float) -> str:
    """Java's spelling, which has a capital E and no plus sign."""
    return repr(float(value)).replace("e+", "E").replace("e", "E")


def _read_list(text: str) -> tuple[str, ...]:
    return tuple(_COMMA.split(text)) if text else ()


def _show_list(value: tuple[str, ...]) -> str:
    return ",".join(value)


_READ_SHORT, _READ_INT, _READ_LONG = (_integer_reader(bits) for bits in (16, 32, 64))


# --- one function per type ------------------------------------------------------------------------


def _key(
    name: str,
    kind: Kind,
    default: T | _FromOther | None,
    *,
    doc: str,
    codec: tuple[Callable[[str], T], Callable[[T], str]],
    traits: Traits,
) -> Key[T]:
    """The key of one declaration; a default found elsewhere is kept as None."""
    read, show = codec
    own = None if isinstance(default, _Elsewhere) else default
    return Key(name=name, kind=kind, default=own, doc=doc, read=read, show=show, **traits)


@overload
def short(name: str, default: int | _FromOther, doc: str, **traits: Unpack[Traits]) -> Key[int]: ...
@overload
def short(name: str, default: None, doc: str, **traits: Unpack[Traits]) -> Key[int | None]: ...
def short(
    name: str, default: int | _FromOther | None, doc: str, **traits: Unpack[Traits]
) -> Key[int] | Key[int | None]:
    """A 16-bit number."""
    return _key(name, Kind.SHORT, default, doc=doc, codec=(_READ_SHORT, str), traits=traits)


@overload
def integer(
    name: str, default: int | _FromOther, doc: str, **traits: Unpack[Traits]
) -> Key[int]: ...
@overload
def integer(name: str, default: None, doc: str, **traits: Unpack[Traits]) -> Key[int | None]: ...
def integer(
    name: str, default: int | _FromOther | None, doc: str, **traits: Unpack[Traits]
) -> Key[int] | Key[int | None]:
    """A 32-bit number."""
    return _key(name, Kind.INT, default, doc=doc, codec=(_READ_INT, str), traits=traits)


@overload
def long(name: str, default: int | _FromOther, doc: str, **traits: Unpack[Traits]) -> Key[int]: ...
@overload
def long(name: str, default: None, doc: str, **traits: Unpack[Traits]) -> Key[int | None]: ...
def long(
    name: str, default: int | _FromOther | None, doc: str, **traits: Unpack[Traits]
) -> Key[int] | Key[int | None]:
    """A 64-bit number."""
    return _key(name, Kind.LONG, default, doc=doc, codec=(_READ_LONG, str), traits=traits)


@overload
def double(
    name: str, default: float | _FromOther, doc: str, **traits: Unpack[Traits]
) -> Key[float]: ...
@overload
def double(name: str, default: None, doc: str, **traits: Unpack[Traits]) -> Key[float | None]: ...
def double(
    name: str, default: float | _FromOther | None, doc: str, **traits: Unpack[Traits]
) -> Key[float] | Key[float | None]:
    """A fraction."""
    return _key(
        name, Kind.DOUBLE, default, doc=doc, codec=(_read_double, _show_double), traits=traits
    )


@overload
def string(
    name: str, default: str | _FromOther, doc: str, **traits: Unpack[Traits]
) -> Key[str]: ...
@overload
def string(name: str, default: None, doc: str, **traits: Unpack[Traits]) -> Key[str | None]: ...
def string(
    name: str, default: str | _FromOther | None, doc: str, **traits: Unpack[Traits]
) -> Key[str] | Key[str | None]:
    """A text."""
    return _key(name, Kind.STRING, default, doc=doc, codec=(str, str), traits=traits)


@overload
def words(
    name: str, default: tuple[str, ...] | _FromOther, doc: str, **traits: Unpack[Traits]
) -> Key[tuple[str, ...]]: ...
@overload
def words(
    name: str, default: None, doc: str, **traits: Unpack[Traits]
) -> Key[tuple[str, ...] | None]: ...
def words(
    name: str, default: tuple[str, ...] | _FromOther | None, doc: str, **traits: Unpack[Traits]
) -> Key[tuple[str, ...]] | Key[tuple[str, ...] | None]:
    """A list of texts."""
    return _key(name, Kind.LIST, default, doc=doc, codec=(_read_list, _show_list), traits=traits)


@overload
def java_class(
    name: str, default: str | _FromOther, doc: str, **traits: Unpack[Traits]
) -> Key[str]: ...
@overload
def java_class(name: str, default: None, doc: str, **traits: Unpack[Traits]) -> Key[str | None]: ...
def java_class(
    name: str, default: str | _FromOther | None, doc: str, **traits: Unpack[Traits]
) -> Key[str] | Key[str | None]:
    """The name of a Java class, which this engine can only recognise, not load."""
    return _key(name, Kind.CLASS, default, doc=doc, codec=(str, str), traits=traits)


@overload
def password(
    name: str, default: str | _FromOther, doc: str, **traits: Unpack[Traits]
) -> Key[str]: ...
@overload
def password(name: str, default: None, doc: str, **traits: Unpack[Traits]) -> Key[str | None]: ...
def password(
    name: str, default: str | _FromOther | None, doc: str, **traits: Unpack[Traits]
) -> Key[str] | Key[str | None]:
    """A secret text, never shown."""
    return _key(name, Kind.PASSWORD, default, doc=doc, codec=(str, str), traits=traits)


def boolean(name: str, default: bool, doc: str, **traits: Unpack[Traits]) -> Key[bool]:
    """A switch."""
    codec = (_read_boolean, _show_boolean)
    return _key(name, Kind.BOOLEAN, default, doc=doc, codec=codec, traits=traits)


def texts(
    name: str, default: _FromOther, doc: str, **traits: Unpack[Traits]
) -> Key[tuple[str, ...]]:
    """A list that Kafka declares as one text (`log.dirs`), so that clients see the type STRING."""
    codec = (_read_list, _show_list)
    return _key(name, Kind.STRING, default, doc=doc, codec=codec, traits=traits)
