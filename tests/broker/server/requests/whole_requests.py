"""Requests of every API and version in which each list has an item, for errors of all of one."""

from collections.abc import Iterator
from typing import Any, Final
from uuid import UUID

from barnabas_broker.server.requests.dispatch import collect_handlers
from barnabas_kafka.protocol import registry
from barnabas_kafka.protocol.registry import ApiKey
from barnabas_kafka.protocol.schema import ArrayOf, Field, Primitive, Struct

SAMPLES: Final[dict[str, object]] = {
    "string": "x",
    "bytes": b"b",
    "records": b"",
    "uuid": UUID(int=5),
    "float64": 1.0,
    "bool": True,
}


def filled(kind: type[Struct], version: int) -> Any:
    """A struct with a value in every field of that version."""
    fields = kind.__fields__.items()
    return kind(**{name: _value(it, version) for name, it in fields if version in it.versions})


def _value(field: Field, version: int) -> object:
    if isinstance(field.type, ArrayOf):
        element = field.type.element
        return [_sample(element) if isinstance(element, Primitive) else filled(element, version)]
    return _sample(field.type) if isinstance(field.type, Primitive) else filled(field.type, version)


def _sample(kind: Primitive[Any]) -> object:
    return SAMPLES.get(kind.name, 1)


def whole_requests() -> Iterator[tuple[registry.Api, int, Any]]:
    """One of each API that is served, in each version."""
    for handler in collect_handlers():
        api = registry.api(handler.api_key)
        for version in range(handler.versions.min, handler.versions.max + 1):
            request = filled(api.request, version)
            if api.key is ApiKey.FETCH:
                request.replica_id = -1
            yield api, version, request


def errors_in(message: Struct, version: int) -> set[int]:
    """All error codes of a response."""
    found: set[int] = set()
    for name, field in type(message).__fields__.items():
        value = getattr(message, name)
        if version not in field.versions:
            continue
        if name in ("error_code", "partition_error_code"):
            found.add(value)
        for each in value if isinstance(value, list) else [value]:
            if isinstance(each, Struct):
                found |= errors_in(each, version)
    return found
