"""Declared objects as JSON values: what is sent to the API server and what defaults look like."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import is_dataclass
from enum import Enum
from typing import Any

from barnabas_operator.api.declarations import fields_of
from barnabas_operator.api.facts import NoDefault


def to_json(value: Any) -> Any:
    """The JSON value of a declared object, without what is None or asks for nothing."""
    if is_dataclass(value) and not isinstance(value, type):
        return {
            field.name: to_json(found)
            for field in fields_of(type(value))
            if (found := getattr(value, field.attribute)) is not None
            and not (field.fact(NoDefault) and found == field.default)
        }
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, Mapping):
        return {str(key): to_json(item) for key, item in value.items()}
    if isinstance(value, tuple | list):
        return [to_json(item) for item in value]
    return value
