"""All messages, and one well-filled example of each."""

from typing import Any
from uuid import UUID

from barnabas_kafka.protocol.registry import ApiKey, api
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

MESSAGES: list[type[Message]] = [
    message for key in ApiKey for message in (api(key).request, api(key).response)
]
_FILLED: dict[Primitive[Any], Any] = {
    BOOLEAN: True,
    FLOAT64: 1.5,
    UUID_BYTES: UUID(int=7),
    STRING: "näme",
    BYTES: b"bytes",
    RECORDS: b"records",
}


def filled(cls: type[Any], version: int) -> Any:
    """A message whose fields all differ from their defaults, with one element in each array."""
    values = {
        name: _filled_value(field.type, version)
        for name, field in cls.__fields__.items()
        if version in field.versions
    }
    return cls(**values)


def _filled_value(kind: FieldType, version: int) -> Any:
    if isinstance(kind, ArrayOf):
        return [_filled_value(kind.element, version)]
    if not isinstance(kind, Primitive):
        return filled(kind, version)
    return _FILLED.get(kind, 3)
