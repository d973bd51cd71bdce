"""Random messages: every field that a version carries takes any value that the version allows."""

from typing import Any

from hypothesis import strategies as st

from barnabas_kafka.protocol.schema import (
    BOOLEAN,
    BYTES,
    FLOAT64,
    RECORDS,
    STRING,
    UUID_BYTES,
    ArrayOf,
    Field,
    FieldType,
    Message,
    Primitive,
    Struct,
)

_TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=8) | st.sampled_from(
    ["x" * 126, "y" * 127, "z" * 16_400]
)
_VARIABLE: dict[Primitive[Any], st.SearchStrategy[Any]] = {
    BOOLEAN: st.booleans(),
    FLOAT64: st.floats(allow_nan=False),
    UUID_BYTES: st.uuids(allow_nil=True),
    STRING: _TEXT,
    BYTES: st.binary(max_size=8) | st.just(bytes(128)),
    RECORDS: st.binary(max_size=8) | st.just(bytes(16_400)),
}


def messages(cls: type[Message], version: int) -> st.SearchStrategy[Message]:
    """Messages of a class that one version can carry."""
    return _structs(cls, version)


def _structs(cls: type[Any], version: int) -> st.SearchStrategy[Any]:
    present = {
        name: _field(field, version)
        for name, field in cls.__fields__.items()
        if version in field.versions
    }
    return st.builds(cls, **present)


def _field(field: Field, version: int) -> st.SearchStrategy[Any]:
    value = _value(field.type, version)
    if version in field.nullable:
        value = st.none() | value
    if field.tag is not None and not isinstance(field.default, Struct):
        # Defaults of tagged fields do not travel, so they must come up often.
        value = value | (st.just(field.default) if _is_plain(field) else st.just([]))
    return value


def _is_plain(field: Field) -> bool:
    return not isinstance(field.type, ArrayOf)


def _value(kind: FieldType, version: int) -> st.SearchStrategy[Any]:
    if isinstance(kind, ArrayOf):
        items = _value(kind.element, version)
        few = st.lists(items, max_size=3)
        if isinstance(kind.element, Primitive) and kind.element.format:
            return few | st.lists(items, min_size=16, max_size=20)
        return few
    if not isinstance(kind, Primitive):
        return _structs(kind, version)
    if kind in _VARIABLE:
        return _VARIABLE[kind]
    bits = 8 * kind.size
    low = 0 if kind.format.isupper() else -(1 << bits - 1)
    return st.integers(low, low + (1 << bits) - 1)
