"""Resources as the API server or a file gives them, made into declared objects.

On Kubernetes the API server has checked the schema before; a file that `barnabas local` reads has
has not been checked. So the same declarations are checked here, and an error says where it is, what
is wrong and what would be right. An unknown field is an error in a file, where it is a misspelt
one; from the API server it is one of a newer version, which is ignored and named in a warning.

CEL rules need a CEL interpreter and stay with the API server; what must hold for our own arithmetic
is checked where it is used.
"""

from __future__ import annotations

import difflib
import functools
import re
import typing
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, is_dataclass
from enum import StrEnum
from typing import Any, Final, TypeVar

from barnabas_operator.api import API_VERSION
from barnabas_operator.api.clusters import KafkaCluster
from barnabas_operator.api.declarations import Declared, fields_of
from barnabas_operator.api.facts import Between, Fewest, Longest, OneOf, Pattern
from barnabas_operator.api.pipelines import KafkaPipeline
from barnabas_operator.api.profiles import with_profile
from barnabas_operator.api.storage import Sizing
from barnabas_operator.api.topics import KafkaTopic
from barnabas_operator.api.users import KafkaUser

T = TypeVar("T", KafkaCluster, KafkaTopic, KafkaUser, KafkaPipeline)


class ResourceError(ValueError):
    """A resource does not say what it must; `path` is where, `message` what is wrong.

    `each` are all that is wrong with it, this one first.
    """

    def __init__(self, path: str, message: str, others: Sequence[ResourceError] = ()) -> None:
        self.path = path
        self.message = message
        self.each: tuple[ResourceError, ...] = (self, *others)
        own = f"{path}: {message}"
        super().__init__("; ".join([own, *(f"{it.path}: {it.message}" for it in others)]))


class _Problems:
    """What is wrong with the parts of a value: all parts are checked before it is refused."""

    def __init__(self) -> None:
        self._found: list[ResourceError] = []

    @contextmanager
    def part(self) -> Iterator[None]:
        """Check one part."""
        try:
            yield
        except ResourceError as error:
            self._found.extend(error.each)

    def check(self) -> None:
        """Raise ResourceError where a part was wrong."""
        if self._found:
            first, *others = self._found
            raise ResourceError(first.path, first.message, others)


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
    """A custom resource: its identity and its contents.

    `unknown_fields` are the paths of fields that this version does not know and has ignored.
    """

    meta: Metadata
    body: T
    unknown_fields: tuple[str, ...] = ()

    @property
    def kind(self) -> str:
        """KafkaCluster, KafkaTopic, KafkaUser or KafkaPipeline."""
        return type(self.body).__name__


KINDS: Final[Mapping[str, type]] = {
    kind.__name__: kind for kind in (KafkaCluster, KafkaTopic, KafkaUser, KafkaPipeline)
}


def read_cluster(document: Mapping[str, Any], *, lenient: bool = False) -> Resource[KafkaCluster]:
    """A KafkaCluster; raises ResourceError. `lenient` ignores unknown fields and lists them."""
    filled = {**document, "spec": with_profile(document.get("spec"))}
    return _read(filled, KafkaCluster, lenient=lenient)


def read_topic(document: Mapping[str, Any], *, lenient: bool = False) -> Resource[KafkaTopic]:
    """A KafkaTopic; raises ResourceError. `lenient` ignores unknown fields and lists them."""
    return _read(document, KafkaTopic, lenient=lenient)


def read_user(document: Mapping[str, Any], *, lenient: bool = False) -> Resource[KafkaUser]:
    """A KafkaUser; raises ResourceError. `lenient` ignores unknown fields and lists them."""
    return _read(document, KafkaUser, lenient=lenient)


def read_pipeline(document: Mapping[str, Any], *, lenient: bool = False) -> Resource[KafkaPipeline]:
    """A KafkaPipeline; raises ResourceError. `lenient` ignores unknown fields and lists them."""
    return _read(document, KafkaPipeline, lenient=lenient)


def _read(document: Mapping[str, Any], kind: type[T], *, lenient: bool) -> Resource[T]:
    meta = read_metadata(document)
    where = f"{kind.__name__} {meta.name}"
    if document.get("apiVersion") != API_VERSION or document.get("kind") != kind.__name__:
        found = f"{document.get('apiVersion')} {document.get('kind')}"
        raise ResourceError(where, f"is {found}, must be {API_VERSION} {kind.__name__}")
    if document.get("spec") is None:
        raise ResourceError(f"{where}: spec", "is missing")
    fields = {field.name: field for field in fields_of(kind)}
    unknown: list[str] | None = [] if lenient else None
    spec = _parser(fields["spec"].hint)(document["spec"], f"{where}: spec", unknown)
    status = document.get("status")
    # A status is our own and may be of another version: what does not fit is not our past.
    try:
        read = _parser(fields["status"].hint)(status or {}, f"{where}: status", [])
    except ResourceError:
        read = fields["status"].default
    paths = tuple(path.removeprefix(f"{where}: ") for path in unknown or ())
    return Resource(meta, kind(spec=spec, status=read), paths)


def read_sizing(factors: Mapping[str, Any], path: str) -> Sizing:
    """The factors of a disk's size, given outside of any resource; raises ResourceError."""
    sizing: Sizing = _parser(Sizing)(factors, path, None)
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


# A parser appends the paths of unknown fields to its last argument; where that is None it raises.
Parser = Callable[[Any, str, list[str] | None], Any]


@functools.cache
def _parser(kind: Any) -> Parser:
    """The parser of a type. Declarations are walked once: there may be ten thousand topics."""
    if kind is Any:
        return _anything
    origin = typing.get_origin(kind)
    if origin is tuple:
        return functools.partial(_tuple, _parser(typing.get_args(kind)[0]))
    if origin is Mapping:
        return functools.partial(_mapping, _parser(typing.get_args(kind)[1]))
    if is_dataclass(kind) and isinstance(kind, type):
        fields = {field.name: (field, _value_parser(field)) for field in fields_of(kind)}
        return functools.partial(_object, kind, fields)
    if issubclass(kind, StrEnum):
        return functools.partial(_member, kind)
    return functools.partial(_scalar, kind)


def _value_parser(field: Declared) -> Parser:
    parse, checks = _parser(field.hint), tuple(_checks(field))
    if not checks:
        return parse

    def checked(value: Any, path: str, unknown: list[str] | None) -> Any:
        result = parse(value, path, unknown)
        for check in checks:
            if problem := check(result):
                raise ResourceError(path, problem)
        return result

    return checked


def _object(
    kind: type,
    fields: Mapping[str, tuple[Declared, Parser]],
    value: Any,
    path: str,
    unknown: list[str] | None,
) -> Any:
    if not isinstance(value, Mapping):
        raise ResourceError(path, f"is {_shown(value)}, must be a mapping of fields")
    problems = _Problems()
    for name in value:
        if name not in fields:
            if unknown is not None:
                unknown.append(f"{path}.{name}")
                continue
            near = difflib.get_close_matches(str(name), fields, n=1)
            hint = f"did you mean {near[0]}?" if near else f"there are {', '.join(fields)}"
            with problems.part():
                raise ResourceError(f"{path}.{name}", f"is no field; {hint}")
    given: dict[str, Any] = {}
    for name, (field, parse) in fields.items():
        with problems.part():
            if (found := value.get(name)) is not None:
                given[field.attribute] = parse(found, f"{path}.{name}", unknown)
            elif field.required:
                raise ResourceError(f"{path}.{name}", f"is missing: {field.doc}")
    problems.check()
    return kind(**given)


def _tuple(item: Parser, value: Any, path: str, unknown: list[str] | None) -> Any:
    if not isinstance(value, list | tuple):
        raise ResourceError(path, f"is {_shown(value)}, must be a list")
    problems = _Problems()
    parsed = []
    for index, each in enumerate(value):
        with problems.part():
            parsed.append(item(each, f"{path}[{index}]", unknown))
    problems.check()
    return tuple(parsed)


def _mapping(item: Parser, value: Any, path: str, unknown: list[str] | None) -> Any:
    if not isinstance(value, Mapping):
        raise ResourceError(path, f"is {_shown(value)}, must be a mapping")
    problems = _Problems()
    parsed = {}
    for key, each in value.items():
        with problems.part():
            parsed[str(key)] = item(each, f"{path}.{key}", unknown)
    problems.check()
    return parsed


def _anything(value: Any, _: str, __: list[str] | None) -> Any:
    return value


def _member(kind: type[StrEnum], value: Any, path: str, _: list[str] | None) -> StrEnum:
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


def _scalar(kind: type, value: Any, path: str, _: list[str] | None) -> Any:
    if kind is float and isinstance(value, int) and not isinstance(value, bool):
        return float(value)
    # In Python a truth value is a number; in a resource it is not.
    if isinstance(value, kind) and isinstance(value, bool) == (kind is bool):
        return value
    raise ResourceError(path, f"is {_shown(value)}, must be {_WORDS[kind]}")


def _checks(field: Declared) -> Iterator[Callable[[Any], str]]:
    """What a field's facts ask of its value; each check returns what is wrong, empty if nothing."""
    between, one_of, pattern = field.fact(Between), field.fact(OneOf), field.fact(Pattern)
    fewest, longest = field.fact(Fewest), field.fact(Longest)
    if between:
        low, high = between.minimum, between.maximum
        text = f"must be between {low} and {high}"
        yield lambda value: "" if low <= value <= high else f"is {_shown(value)}, {text}"
    if one_of:
        values, allowed = one_of.values, " or ".join(map(str, one_of.values))
        yield lambda value: "" if value in values else f"is {_shown(value)}, must be {allowed}"
    if pattern:
        search, hint = re.compile(pattern.expression).search, pattern.hint
        yield lambda value: "" if search(value) else f"is {_shown(value)}, must be {hint}"
    if fewest:
        least = fewest.count
        few = f"entries, must have {least} or more"
        yield lambda value: "" if len(value) >= least else f"has {len(value)} {few}"
    if longest:
        most = longest.count
        yield (
            lambda value: (
                "" if len(value) <= most else f"has a length of {len(value)}, at most {most}"
            )
        )


def _shown(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."
