"""Whether an object is as it should be, and if not, where it differs first.

What is wanted must be found in what there is; what others added (defaults of the API server, fields
and list items of other managers) does not count. Items of a keyed list are compared by their keys,
so that a sidecar or a variable that an admission webhook adds is no drift. A field that is wanted
no longer leaves no trace in that comparison: for it the object carries the hash of what was last
applied.

A value that differs although the operator still manages its field was altered by the API server
itself while it was written, as by a mutating webhook. To apply it again would change nothing: that
is a warning. So is a value that another program takes back right after each apply, for a while.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final

from barnabas_operator.api.amounts import same_quantity
from barnabas_operator.names import APPLIED_HASH, FIELD_MANAGER

# Where a text is a quantity, which the API server may write in another way.
AMOUNTS: Final = frozenset({"memory", "cpu", "storage", "ephemeral-storage", "sizeLimit"})
# The keys of the lists that server-side apply merges, as Kubernetes' OpenAPI has them. Two lists
# are called `ports`, of containers and of Services; the item says which.
MERGE_KEYS: Final[Mapping[str, tuple[tuple[str, ...], ...]]] = {
    "containers": (("name",),),
    "initContainers": (("name",),),
    "env": (("name",),),
    "volumes": (("name",),),
    "volumeMounts": (("mountPath",),),
    "volumeDevices": (("devicePath",),),
    "imagePullSecrets": (("name",),),
    "ports": (("containerPort", "protocol"), ("port", "protocol")),
    "topologySpreadConstraints": (("topologyKey", "whenUnsatisfiable"),),
    "ownerReferences": (("uid",),),
}
# These are one value each: a label more selects other pods.
ATOMIC: Final = ("selector", "matchLabels")
# A program that takes a field so soon after our apply will do so again; it is overruled again only
# after the longer time. A change by kubectl is reverted at once.
AT_ONCE: Final = timedelta(seconds=10)
TRUCE: Final = timedelta(minutes=5)
TYPED: Final = "kubectl"

Path = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Difference:
    """Where an object differs: `reason` to apply it, or a `warning` that applying will not help."""

    reason: str = ""
    warning: str = ""


def drift(wanted: Mapping[str, Any], found: Mapping[str, Any] | None) -> str | None:
    """The reason to apply an object, or None."""
    return compare(wanted, found).reason or None


def compare(
    wanted: Mapping[str, Any], found: Mapping[str, Any] | None, *, now: str = ""
) -> Difference:
    """What to do about an object; `now` is RFC 3339, and lets fights be noticed."""
    if found is None:
        return Difference(reason="missing")
    applied = (found["metadata"].get("annotations") or {}).get(APPLIED_HASH)
    if applied != wanted["metadata"]["annotations"][APPLIED_HASH]:
        return Difference(reason="the resource asks for something else than before")
    warning = ""
    for path in differences(wanted, found):
        managers = list(_managers(found, path))
        ours = FIELD_MANAGER in (name for name, _ in managers)
        if ours and _left_out(wanted, found, path):
            continue
        if ours:
            cause = "is not what was applied: the API server or a mutating webhook alters it"
        elif rival := _rival(found, managers, now):
            cause = f"was applied and {rival} changed it at once: stop one of the two"
        else:
            return Difference(reason=f"{shown(path)} was changed")
        warning = warning or f"{shown(path)} {cause}"
    return Difference(warning=warning)


def differences(wanted: Any, found: Any, path: Path = ()) -> Iterator[Path]:
    """The paths of values that are wanted and not there, in the form of `fieldsV1`."""
    if isinstance(wanted, Mapping) and isinstance(found, Mapping):
        yield from _in_mapping(wanted, found, path)
    elif isinstance(wanted, list) and isinstance(found, list):
        yield from _in_list(wanted, found, path)
    elif wanted != found and not _same_amount(wanted, found, path):
        yield path


def shown(path: Path) -> str:
    """A path for people: `spec.containers[name=x].image`."""
    text = ""
    for element in path:
        kind, _, rest = element.partition(":")
        if kind == "f":
            text += f".{rest}" if text else rest
        else:
            text += f"[{','.join(f'{k}={v}' for k, v in json.loads(rest).items())}]"
    return text


def _in_mapping(wanted: Mapping[str, Any], found: Mapping[str, Any], path: Path) -> Iterator[Path]:
    if path and path[-1].removeprefix("f:") in ATOMIC and _plain(wanted) and wanted != found:
        yield path
        return
    for key, value in wanted.items():
        inner = (*path, f"f:{key}")
        if key in found:
            yield from differences(value, found[key], inner)
        # The API server may leave out what is empty.
        elif value not in ({}, [], None):
            yield inner


def _plain(value: Mapping[str, Any]) -> bool:
    """Whether this is a map of labels, and not a selector with `matchLabels` inside."""
    return all(isinstance(each, str) for each in value.values())


def _in_list(wanted: Sequence[Any], found: Sequence[Any], path: Path) -> Iterator[Path]:
    keys = _keys(path, wanted)
    if keys:
        present = {_element(each, keys): each for each in found if isinstance(each, Mapping)}
        for each in wanted:
            element = _element(each, keys)
            if element in present:
                yield from differences(each, present[element], (*path, element))
            else:
                yield (*path, element)
        return
    # A list without keys is one value.
    pairs = zip(wanted, found, strict=False)
    if len(wanted) != len(found) or any(any(True for _ in differences(*pair)) for pair in pairs):
        yield path


def _keys(path: Path, items: Sequence[Any]) -> tuple[str, ...]:
    choices = MERGE_KEYS.get(path[-1].removeprefix("f:"), ()) if path else ()
    if not all(isinstance(each, Mapping) for each in items):
        return ()
    return next((keys for keys in choices if all(keys[0] in each for each in items)), ())


def _element(item: Mapping[str, Any], keys: Sequence[str]) -> str:
    """An item's element of a path; of the keys `protocol` alone has a default."""
    values = {key: item.get(key, "TCP" if key == "protocol" else None) for key in sorted(keys)}
    return f"k:{json.dumps(values, separators=(',', ':'))}"


def _same_amount(wanted: Any, found: Any, path: Path) -> bool:
    """Whether two ways to write a quantity, which may also be a plain number, are the same one."""
    numbers = (str, int, float)
    both = isinstance(wanted, numbers) and isinstance(found, numbers)
    name = path[-1].removeprefix("f:") if path else ""
    return both and name in AMOUNTS and same_quantity(str(wanted), str(found))


def _left_out(wanted: Any, found: Any, path: Path) -> bool:
    """Whether a false, empty or zero value is absent, which is how most fields of Go write it."""
    return not _at(wanted, path) and _at(found, path) is None


def _at(body: Any, path: Path) -> Any:
    for element in path:
        kind, _, rest = element.partition(":")
        if kind == "f":
            body = body.get(rest) if isinstance(body, Mapping) else None
        else:
            keys = tuple(json.loads(rest))
            items = body if isinstance(body, list) else ()
            body = next((each for each in items if _element(each, keys) == element), None)
    return body


# --- managers of fields ---------------------------------------------------------------------------


def _managers(found: Mapping[str, Any], path: Path) -> Iterator[tuple[str, str]]:
    """Name and time of each manager of a field; applied fields count for us, others' either way."""
    for entry in found["metadata"].get("managedFields") or ():
        ours = entry.get("manager") == FIELD_MANAGER
        if (not ours or entry.get("operation") == "Apply") and _has(entry.get("fieldsV1"), path):
            yield entry["manager"], entry.get("time") or ""


def _has(fields: Any, path: Path) -> bool:
    for element in path:
        if not isinstance(fields, Mapping) or element not in fields:
            return False
        fields = fields[element]
        # A value that is managed as a whole: what is inside has no entry of its own.
        if fields == {}:
            return True
    return True


def _rival(found: Mapping[str, Any], managers: Sequence[tuple[str, str]], now: str) -> str:
    """The manager that took a field at once after our last apply, not long ago; empty if none."""
    entries = found["metadata"].get("managedFields") or ()
    ours = [each for each in entries if each.get("manager") == FIELD_MANAGER]
    applied = [each.get("time") or "" for each in ours if each.get("operation") == "Apply"]
    if not now or not applied or not applied[0]:
        return ""
    for name, time in managers:
        if not time or name.startswith(TYPED):
            continue
        taken, present = datetime.fromisoformat(time), datetime.fromisoformat(now)
        at_once = timedelta(0) <= taken - datetime.fromisoformat(applied[0]) <= AT_ONCE
        if at_once and present - taken < TRUCE:
            return name
    return ""
