"""Whether an object is as it should be, and if not, where it differs first.

What is wanted must be found in what is there; what others added (defaults of the API server, other
managers' fields) does not count. A field that is wanted no longer leaves no trace in that
comparison: for it the object carries the hash of what was last applied.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from barnabas_operator.api.amounts import same_quantity
from barnabas_operator.names import APPLIED_HASH

# Where a text is a quantity, which the API server may write in another way.
AMOUNTS: Final = frozenset({"memory", "cpu", "storage", "sizeLimit"})


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
    if isinstance(wanted, Mapping) and isinstance(found, Mapping):
        return _in_mapping(wanted, found, path)
    if isinstance(wanted, list) and isinstance(found, list) and len(wanted) == len(found):
        pairs = enumerate(zip(wanted, found, strict=True))
        places = (first_difference(ours, theirs, f"{path}[{i}]") for i, (ours, theirs) in pairs)
        return next((place for place in places if place is not None), None)
    return None if wanted == found or _same_amount(wanted, found, path) else path


def _same_amount(wanted: Any, found: Any, path: str) -> bool:
    both = isinstance(wanted, str) and isinstance(found, str)
    return both and path.rpartition(".")[2] in AMOUNTS and same_quantity(wanted, found)


def _in_mapping(wanted: Mapping[str, Any], found: Mapping[str, Any], path: str) -> str | None:
    for key, value in wanted.items():
        inner = f"{path}.{key}" if path else key
        if key in found:
            if (where := first_difference(value, found[key], inner)) is not None:
                return where
        # The API server may leave out what is empty.
        elif value not in ({}, [], None):
            return inner
    return None
