"""Random messages from their declarations: the first generator, which the others spoil.

Values lean towards what breaks readers: ends of ranges, null, empty, and lengths at which an
encoding changes.
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from typing import Any, Final
from uuid import UUID

from barnabas_kafka.protocol.registry import Api, ApiKey, api
from barnabas_kafka.protocol.schema import (
    BOOLEAN,
    BYTES,
    FLOAT64,
    RECORDS,
    STRING,
    UUID_BYTES,
    ArrayOf,
    FieldType,
    Message,
    Primitive,
)

APIS: Final[tuple[Api, ...]] = tuple(api(key) for key in ApiKey)
_TEXTS: Final = ("", "t", "topic", "näme", "a" * 127, "a" * 250, "..", "a/b", "\x00")


ByName = Mapping[str, Sequence[Any]]


def random_message(
    cls: type[Message], version: int, chance: random.Random, by_name: ByName | None = None
) -> Message:
    """A message that `version` can carry. `by_name` has what fields of that name choose from."""
    message: Message = _struct(cls, version, chance, by_name or {})
    return message


def _struct(cls: type[Any], version: int, chance: random.Random, by_name: ByName) -> Any:
    values: dict[str, Any] = {}
    for name, field in cls.__fields__.items():
        if version not in field.versions:
            continue
        if name in by_name and not isinstance(field.type, ArrayOf):
            values[name] = chance.choice(by_name[name])
        elif version in field.nullable and chance.random() < 0.15:
            values[name] = None
        elif chance.random() < 0.9:
            values[name] = _value(field.type, version, chance, by_name)
    return cls(**values)


def _value(kind: FieldType, version: int, chance: random.Random, by_name: ByName) -> Any:
    if isinstance(kind, ArrayOf):
        count = chance.choice((0, 1, 1, 1, 2))
        return [_value(kind.element, version, chance, by_name) for _ in range(count)]
    if not isinstance(kind, Primitive):
        return _struct(kind, version, chance, by_name)
    return _primitive(kind, chance)


def _primitive(kind: Primitive[Any], chance: random.Random) -> Any:
    if kind is BOOLEAN:
        return chance.random() < 0.5
    if kind is FLOAT64:
        return chance.choice((0.0, -1.5, 1e300, float("inf")))
    if kind is UUID_BYTES:
        return UUID(int=chance.choice((0, 1, chance.getrandbits(128))))
    if kind is STRING:
        return chance.choice(_TEXTS)
    if kind is BYTES or kind is RECORDS:
        return chance.randbytes(chance.choice((0, 1, 8, 130)))
    bits = 8 * kind.size
    low = 0 if kind.format.isupper() else -(1 << bits - 1)
    high = low + (1 << bits) - 1
    return chance.choice((0, 1, chance.randrange(100), low, high, max(low, -1)))
