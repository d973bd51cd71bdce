"""Structural schemas (OpenAPI v3, as CustomResourceDefinitions take them) of declared resources."""

from __future__ import annotations

import typing
from collections.abc import Mapping
from dataclasses import is_dataclass
from enum import StrEnum
from typing import Any, Final

from barnabas_operator.api.declarations import Declared, fields_of, rules_of
from barnabas_operator.api.facts import (
    Between,
    Fewest,
    Keyed,
    Longest,
    NoDefault,
    OneOf,
    Pattern,
    Rule,
)
from barnabas_operator.api.writing import to_json

Schema = dict[str, Any]

_SCALARS: Final[dict[type, Schema]] = {
    bool: {"type": "boolean"},
    int: {"type": "integer", "format": "int64"},
    float: {"type": "number"},
    str: {"type": "string"},
}
_BOUNDS: Final = {
    "string": ("minLength", "maxLength"),
    "array": ("minItems", "maxItems"),
    "object": ("minProperties", "maxProperties"),
}


def schema_of(declaring: type) -> Schema:
    """The schema of a declaring dataclass as an object."""
    declared = fields_of(declaring)
    defaults = getattr(declaring, "DEFAULTS", True)
    schema: Schema = {
        "type": "object",
        "description": (declaring.__doc__ or "").strip().splitlines()[0],
        "properties": {each.name: _schema_of_field(each, defaults=defaults) for each in declared},
    }
    required = [field.name for field in declared if field.required]
    if required:
        schema["required"] = required
    _add_rules(schema, rules_of(declaring))
    return schema


def _schema_of_field(field: Declared, *, defaults: bool = True) -> Schema:
    schema = _schema_of_type(field.hint)
    schema["description"] = field.doc
    _add_bounds(schema, field)
    known = not (field.required or field.default is None)
    if defaults and known and not field.fact(NoDefault):
        schema["default"] = to_json(field.default)
    _add_rules(schema, (*schema.pop("x-kubernetes-validations", ()), *_as_rules(field.rules)))
    return schema


def _schema_of_type(kind: Any) -> Schema:
    if kind in _SCALARS:
        return dict(_SCALARS[kind])
    origin = typing.get_origin(kind)
    if origin is tuple:
        return {"type": "array", "items": _schema_of_type(typing.get_args(kind)[0])}
    if origin is Mapping:
        values = typing.get_args(kind)[1]
        if values is Any:
            # A part of a Kubernetes object, which the API server checks where it is used.
            return {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
        return {"type": "object", "additionalProperties": _schema_of_type(values)}
    if isinstance(kind, type) and issubclass(kind, StrEnum):
        return {"type": "string", "enum": [member.value for member in kind]}
    if is_dataclass(kind) and isinstance(kind, type):
        return schema_of(kind)
    raise TypeError(f"{kind}: no schema for this type")


def _add_bounds(schema: Schema, field: Declared) -> None:
    between, pattern, one_of = field.fact(Between), field.fact(Pattern), field.fact(OneOf)
    if between:
        schema["minimum"], schema["maximum"] = between.minimum, between.maximum
    if pattern:
        schema["pattern"] = pattern.expression
    if one_of:
        schema["enum"] = list(one_of.values)
    fewest, longest, keyed = field.fact(Fewest), field.fact(Longest), field.fact(Keyed)
    if fewest:
        schema[_BOUNDS[schema["type"]][0]] = fewest.count
    if longest:
        schema[_BOUNDS[schema["type"]][1]] = longest.count
    if keyed:
        schema["x-kubernetes-list-type"] = "map"
        schema["x-kubernetes-list-map-keys"] = list(keyed.fields)


def _as_rules(rules: tuple[Rule, ...]) -> list[dict[str, str]]:
    return [{"rule": rule.expression, "message": rule.message} for rule in rules]


def _add_rules(schema: Schema, rules: tuple[Any, ...]) -> None:
    written = [rule if isinstance(rule, dict) else _as_rules((rule,))[0] for rule in rules]
    if written:
        schema["x-kubernetes-validations"] = written
