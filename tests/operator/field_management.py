"""Server-side apply, as an API server does it: who manages which field of an object.

A field is a path of elements in the form of `fieldsV1`: `f:name` in a map, `k:{"name":"x"}` for an
item of a keyed list, `v:"x"` for an item of a set. How lists and maps merge is the schema's to say.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Literal

from tests.operator import openapi
from tests.operator.openapi import Schema

Path = tuple[str, ...]
Fields = frozenset[Path]
Document = dict[str, Any]

# What the server itself fills, or what says which object is meant: nobody manages it.
UNMANAGED: Final = frozenset(
    {("f:apiVersion",), ("f:kind",), ("f:status",)}
    | {
        ("f:metadata", f"f:{name}")
        for name in (
            "name", "namespace", "uid", "generation", "resourceVersion", "creationTimestamp",
            "managedFields", "deletionTimestamp",
        )
    }
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Entry:
    """The fields of one manager, as `metadata.managedFields` has them."""

    manager: str
    operation: Literal["Apply", "Update"]
    fields: Fields
    time: str


class ConflictError(Exception):
    """Fields that another manager has, and that would get another value."""

    def __init__(self, conflicts: Sequence[tuple[str, Path]]) -> None:
        lines = ", ".join(f'"{manager}": {shown(path)}' for manager, path in conflicts)
        count = f"{len(conflicts)} conflict{'s' if len(conflicts) > 1 else ''}"
        super().__init__(f"Apply failed with {count}: conflicts with {lines}")


@dataclass(slots=True)
class Applied:
    """An object after a write, and its managers."""

    body: Document
    entries: list[Entry] = field(default_factory=list)


def shown(path: Path) -> str:
    """A path as an API server writes it: `.spec.containers[name="x"].image`."""
    text = ""
    for element in path:
        kind, _, rest = element.partition(":")
        if kind == "k":
            pairs = ",".join(f"{k}={json.dumps(v)}" for k, v in json.loads(rest).items())
            text += f"[{pairs}]"
        else:
            text += f".{rest}" if kind == "f" else f"[={rest}]"
    return text


def apply(
    live: Document | None, wanted: Document, entries: Sequence[Entry], *,
    manager: str, force: bool, now: str,
) -> Applied:  # fmt: skip
    """The live object after `wanted` was applied. Raises ConflictError."""
    schema = openapi.schema_of(wanted.get("apiVersion", "v1"), wanted["kind"])
    ours = managed(wanted, schema)
    before = next(
        (e.fields for e in entries if (e.manager, e.operation) == (manager, "Apply")), None
    )
    others = [e for e in entries if (e.manager, e.operation) != (manager, "Apply")]
    body = copy.deepcopy(live or {})
    changed = frozenset(path for path in ours if value_at(body, path) != value_at(wanted, path))
    conflicts = [(e.manager, path) for e in others for path in sorted(e.fields & changed)]
    if conflicts and not force:
        raise ConflictError(conflicts)
    others = [Entry(e.manager, e.operation, e.fields - changed, e.time) for e in others]
    kept = frozenset[Path]().union(*(e.fields for e in others)) | ours
    # Items before their fields: without its key an item is not found.
    for path in sorted((before or frozenset()) - ours, key=len):
        if not any(other[: len(path)] == path for other in kept):
            _remove(body, path)
    merged = _merge(body, wanted, schema)
    time = now if changed or before != ours else _time(entries, manager)
    return Applied(merged, [*(e for e in others if e.fields), Entry(manager, "Apply", ours, time)])


def update(
    live: Document | None, new: Document, entries: Sequence[Entry], *, manager: str, now: str
) -> Applied:
    """The object after a plain write: what it changes is the writer's from then on."""
    schema = openapi.schema_of(new.get("apiVersion", "v1"), new["kind"])
    before, after = managed(live or {}, schema), managed(new, schema)
    changed = frozenset(p for p in after if value_at(live or {}, p) != value_at(new, p))
    lost = changed | (before - after)
    left = [Entry(e.manager, e.operation, e.fields - lost, e.time) for e in entries]
    own = next((e for e in left if (e.manager, e.operation) == (manager, "Update")), None)
    fields = changed | (own.fields if own else frozenset())
    others = [e for e in left if e is not own and e.fields]
    if not fields:
        return Applied(copy.deepcopy(new), others)
    time = now if changed or own is None else own.time
    return Applied(copy.deepcopy(new), [*others, Entry(manager, "Update", fields, time)])


def managed(value: Any, schema: Schema, path: Path = ()) -> Fields:
    """The fields that a value has."""
    if path in UNMANAGED:
        return frozenset()
    if isinstance(value, Mapping) and value and schema.get("x-kubernetes-map-type") != "atomic":
        parts = (
            managed(each, openapi.member(schema, key), (*path, f"f:{key}"))
            for key, each in value.items()
        )
        return frozenset[Path]().union(*parts)
    if isinstance(value, list) and value and (keys := keys_of(schema)):
        found: set[Path] = set()
        for each in value:
            place = (*path, element_of(each, keys))
            found |= {place} | managed(each, openapi.item(schema), place)
        return frozenset(found)
    if isinstance(value, list) and schema.get("x-kubernetes-list-type") == "set":
        return frozenset((*path, f"v:{json.dumps(each)}") for each in value)
    return frozenset({path})


def keys_of(schema: Schema) -> tuple[str, ...]:
    """The fields that tell the items of a keyed list apart; none for another list."""
    if schema.get("x-kubernetes-list-type") != "map":
        return ()
    return tuple(schema["x-kubernetes-list-map-keys"])


def element_of(item: Mapping[str, Any], keys: Sequence[str]) -> str:
    """The path element of an item; the one key with a default is a port's protocol."""
    values = {key: item.get(key, "TCP" if key == "protocol" else None) for key in sorted(keys)}
    return f"k:{json.dumps(values, separators=(',', ':'))}"


def fields_v1(fields: Fields) -> Document:
    """Fields in the nested form in which `metadata.managedFields` has them."""
    tree: Document = {}
    for path in sorted(fields):
        place = tree
        for element in path:
            place = place.setdefault(element, {})
        if path[-1].startswith("k:"):
            place["."] = {}
    return tree


def value_at(body: Any, path: Path) -> Any:
    """The value of a field; of an item of a keyed list only that it is there."""
    for element in path:
        body = _step(body, element)
    return True if path and path[-1].startswith("k:") and body is not None else body


def _step(body: Any, element: str) -> Any:
    kind, _, rest = element.partition(":")
    if kind == "f":
        return body.get(rest) if isinstance(body, Mapping) else None
    if kind == "k":
        keys = json.loads(rest)
        items = body if isinstance(body, list) else ()
        return next((each for each in items if element_of(each, tuple(keys)) == element), None)
    wanted = json.loads(rest)
    return wanted if isinstance(body, list) and wanted in body else None


def _remove(body: Any, path: Path) -> None:
    *parents, last = path
    chain = [body]
    for element in parents:
        chain.append(_step(chain[-1], element))
    for place, element in zip(reversed(chain), reversed(path), strict=True):
        kind, _, rest = element.partition(":")
        if isinstance(place, dict) and kind == "f":
            place.pop(rest, None)
        elif isinstance(place, list) and element == last:
            found = json.loads(rest) if kind == "v" else _step(place, element)
            if found in place:
                place.remove(found)
        # What has become empty goes too.
        if place != {} and place != []:
            return


def _merge(old: Any, new: Any, schema: Schema) -> Any:
    if isinstance(old, dict) and isinstance(new, Mapping):
        if schema.get("x-kubernetes-map-type") == "atomic":
            return copy.deepcopy(dict(new))
        inner = {
            key: _merge(old.get(key), each, openapi.member(schema, key))
            for key, each in new.items()
        }
        return {**old, **inner}
    if isinstance(old, list) and isinstance(new, list):
        if keys := keys_of(schema):
            by_key = {element_of(each, keys): each for each in old}
            items = [
                _merge(by_key.pop(element_of(each, keys), None), each, openapi.item(schema))
                for each in new
            ]
            return items + list(by_key.values())
        if schema.get("x-kubernetes-list-type") == "set":
            return new + [each for each in old if each not in new]
    return copy.deepcopy(new)


def _time(entries: Sequence[Entry], manager: str) -> str:
    return next(e.time for e in entries if (e.manager, e.operation) == (manager, "Apply"))
