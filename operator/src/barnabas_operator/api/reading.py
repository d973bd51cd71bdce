"""Resources as the API server or a file gives them, made into declared objects.

On Kubernetes the API server has checked the schema before; a file that `barnabas local` reads has
met nobody yet. So the same declarations are checked here, and an error says where it is, what is
wrong and what would be right. CEL rules need a CEL interpreter and stay with the API server; what
must hold for our own arithmetic is checked where it is used.
"""

from __future__ import annotations

import difflib
import re
import typing
from collections.abc import Mapping
from dataclasses import dataclass, is_dataclass
from enum import StrEnum
from typing import Any, Final, TypeVar

from barnabas_operator.api import API_VERSION
from barnabas_operator.api.clusters import KafkaCluster
from barnabas_operator.api.declarations import Declared, fields_of
from barnabas_operator.api.facts import Between, Fewest, Longest, OneOf, Pattern
from barnabas_operator.api.pipelines import KafkaPipeline
from barnabas_operator.api.storage import Sizing
from barnabas_operator.api.topics import KafkaTopic

T = TypeVar("T", KafkaCluster, KafkaTopic, KafkaPipeline)


class ResourceError(ValueError):
    """A resource does not say what it must; `path` is where, `message` what is wrong."""

    def __init__(self, path: str, message: str) -> None:
        self.path = path
        self.message = message
        super().__init__(f"{path}: {message}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Metadata:
    """What of a resource's metadata the operator acts on."""

    name: str
    namespace: str
    uid: str
    generation: int
    created: str
    labels: Mapping[str, str]
    annotations: Mapping[str, str]
    deleting: bool


@dataclass(frozen=True, slots=True)
class Resource(typing.Generic[T]):
    """A custom resource: who it is and what it says."""

    meta: Metadata
    body: T

    @property
    def kind(self) -> str:
        """KafkaCluster, KafkaTopic or KafkaPipeline."""
        return type(self.body).__name__


KINDS: Final[Mapping[str, type]] = {
    kind.__name__: kind for kind in (KafkaCluster, KafkaTopic, KafkaPipeline)
}


def read_cluster(document: Mapping[str, Any]) -> Resource[KafkaCluster]:
    """A KafkaCluster; raises ResourceError."""
    return _read(document, KafkaCluster)


def read_topic(document: Mapping[str, Any]) -> Resource[KafkaTopic]:
    """A KafkaTopic; raises ResourceError."""
    return _read(document, KafkaTopic)


def read_pipeline(document: Mapping[str, Any]) -> Resource[KafkaPipeline]:
    """A KafkaPipeline; raises ResourceError."""
    return _read(document, KafkaPipeline)


def _read(document: Mapping[str, Any], kind: type[T]) -> Resource[T]:
    meta = read_metadata(document)
    where = f"{kind.__name__} {meta.name}"
    if document.get("apiVersion") != API_VERSION or document.get("kind") != kind.__name__:
        found = f"{document.get('apiVersion')} {document.get('kind')}"
        raise ResourceError(where, f"is {found}, must be {API_VERSION} {kind.__name__}")
    if document.get("spec") is None:
        raise ResourceError(f"{where}: spec", "is missing")
    fields = {field.name: field for field in fields_of(kind)}
    spec = _value(document["spec"], fields["spec"], f"{where}: spec")
    status = document.get("status")
    # A status is our own and may be of an older version: what does not fit is not our past.
    try:
        read = _value(status or {}, fields["status"], f"{where}: status")
    except ResourceError:
        read = fields["status"].default
    return Resource(meta, kind(spec=spec, status=read))


def read_sizing(factors: Mapping[str, Any], path: str) -> Sizing:
    """The factors of a disk's size, given outside of any resource; raises ResourceError."""
    sizing: Sizing = _object(factors, Sizing, path)
    return sizing


def read_metadata(document: Mapping[str, Any]) -> Metadata:
    """The metadata of any resource; raises ResourceError if it has no name."""
    meta = document.get("metadata")
    if not isinstance(meta, Mapping) or not meta.get("name"):
        raise ResourceError(f"{document.get('kind', 'resource')}: metadata.name", "is missing")
    return Metadata(
        name=meta["name"],
        namespace=meta.get("namespace") or "default",
        uid=meta.get("uid", ""),
        generation=meta.get("generation", 0),
        created=meta.get("creationTimestamp") or "",
        labels=dict(meta.get("labels") or {}),
        annotations=dict(meta.get("annotations") or {}),
        deleting=bool(meta.get("deletionTimestamp")),
    )


def _object(value: Any, kind: type, path: str) -> Any:
    if not isinstance(value, Mapping):
        raise ResourceError(path, f"is {_shown(value)}, must be a mapping of fields")
    declared = {field.name: field for field in fields_of(kind)}
    for name in value:
        if name not in declared:
            near = difflib.get_close_matches(str(name), declared, n=1)
            hint = f"did you mean {near[0]}?" if near else f"there are {', '.join(declared)}"
            raise ResourceError(f"{path}.{name}", f"is no field; {hint}")
    given: dict[str, Any] = {}
    for name, field in declared.items():
        if value.get(name) is not None:
            given[field.attribute] = _value(value[name], field, f"{path}.{name}")
        elif field.required:
            raise ResourceError(f"{path}.{name}", f"is missing: {field.doc}")
    return kind(**given)


def _value(value: Any, field: Declared, path: str) -> Any:
    result = _typed(value, field.hint, path)
    _check(result, field, path)
    return result


def _typed(value: Any, kind: Any, path: str) -> Any:
    origin = typing.get_origin(kind)
    if origin is tuple:
        if not isinstance(value, list | tuple):
            raise ResourceError(path, f"is {_shown(value)}, must be a list")
        (item, _) = typing.get_args(kind)
        return tuple(_typed(each, item, f"{path}[{i}]") for i, each in enumerate(value))
    if origin is Mapping:
        if not isinstance(value, Mapping):
            raise ResourceError(path, f"is {_shown(value)}, must be a mapping")
        item = typing.get_args(kind)[1]
        return {str(key): _typed(each, item, f"{path}.{key}") for key, each in value.items()}
    if is_dataclass(kind) and isinstance(kind, type):
        return _object(value, kind, path)
    if issubclass(kind, StrEnum):
        return _member(value, kind, path)
    return _scalar(value, kind, path)


def _member(value: Any, kind: type[StrEnum], path: str) -> StrEnum:
    try:
        return kind(value)
    except ValueError:
        allowed = " or ".join(member.value for member in kind)
        raise ResourceError(path, f"is {_shown(value)}, must be {allowed}") from None


_WORDS: Final = {
    int: "a whole number",
    float: "a number",
    bool: "true or false",
    str: "a text; put it in quotes",
}


def _scalar(value: Any, kind: type, path: str) -> Any:
    if kind is float and isinstance(value, int) and not isinstance(value, bool):
        return float(value)
    # In Python a truth value is a number; in a resource it is not.
    if isinstance(value, kind) and isinstance(value, bool) == (kind is bool):
        return value
    raise ResourceError(path, f"is {_shown(value)}, must be {_WORDS[kind]}")


def _check(value: Any, field: Declared, path: str) -> None:
    between, one_of, pattern = field.fact(Between), field.fact(OneOf), field.fact(Pattern)
    if between and not between.minimum <= value <= between.maximum:
        allowed = f"between {between.minimum} and {between.maximum}"
        raise ResourceError(path, f"is {_shown(value)}, must be {allowed}")
    if one_of and value not in one_of.values:
        allowed = " or ".join(map(str, one_of.values))
        raise ResourceError(path, f"is {_shown(value)}, must be {allowed}")
    if pattern and re.search(pattern.expression, value) is None:
        raise ResourceError(path, f"is {_shown(value)}, must be {pattern.hint}")
    fewest, longest = field.fact(Fewest), field.fact(Longest)
    if fewest and len(value) < fewest.count:
        raise ResourceError(path, f"has {len(value)} entries, must have {fewest.count} or more")
    if longest and len(value) > longest.count:
        raise ResourceError(path, f"has a length of {len(value)}, at most {longest.count}")


def _shown(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."
