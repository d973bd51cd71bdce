"""Whether an object is as it should be, and if not, where it differs first.

What is wanted must be found in what is there; what others added (defaults of the API server, other
managers' fields) does not count. A field that is wanted no longer leaves no trace in that
comparison: for it the object carries the hash of what was last applied.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from barnabas_operator.names import APPLIED_HASH


def drift(wanted: Mapping[str, Any], found: Mapping[str, Any] | None) -> str | None:
    """The reason to apply an object, or None."""
    if found is None:
        return "missing"
    applied = (found["metadata"].get("annotations") or {}).get(APPLIED_HASH)
    if applied != wanted["metadata"]["annotations"][APPLIED_HASH]:
        return "the resource asks for something else than before"
    where = first_difference(wanted, found)
    return f"{where} was changed" if where else None


def first_difference(wanted: Any, found: Any, path: str = "") -> str | None:
    """The path of the first value that is wanted and not there; None if all are."""
    if isinstance(wanted, Mapping):
        if not isinstance(found, Mapping):
            return path
        for key, value in wanted.items():
            # An empty value may be left out by the API server.
            if key not in found and value in ({}, [], None):
                continue
            inner = f"{path}.{key}" if path else str(key)
            if key not in found:
                return inner
            if (where := first_difference(value, found[key], inner)) is not None:
                return where
        return None
    if isinstance(wanted, list):
        if not isinstance(found, list) or len(found) != len(wanted):
            return path
        for position, (value, other) in enumerate(zip(wanted, found, strict=True)):
            where = first_difference(value, other, f"{path}[{position}]")
            if where is not None:
                return where
        return None
    return None if wanted == found else path
