"""The reference of custom resources: every field of every CRD, with what the schema says of it."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from barnabas_operator.api.definitions import DEFINITIONS, crd

Schema = Mapping[str, Any]

_LIMITS: Final = {
    "minimum": "≥ {}",
    "maximum": "≤ {}",
    "minLength": "{} characters or more",
    "maxLength": "{} characters at most",
    "minItems": "{} items or more",
    "maxItems": "{} items at most",
    "maxProperties": "{} entries at most",
    "pattern": "`{}`",
}


def page(generated: str, definition: Any) -> str:
    """The page of one kind: `spec` and `status`, a row for each field."""
    document = crd(definition)["spec"]
    version = document["versions"][0]
    schema = version["schema"]["openAPIV3Schema"]
    names = document["names"]
    lines = [
        f"# {names['kind']}",
        "",
        generated,
        "",
        schema["description"],
        "",
        f"`apiVersion: {document['group']}/{version['name']}`, `kind: {names['kind']}`.",
        "",
        f"`kubectl get {names['plural']}`, or `kubectl get {names['shortNames'][0]}`, lists them.",
        "",
        "`[]` stands for each item of a list, `<name>` for each key of a map.",
    ]
    for part in ("spec", "status"):
        section = schema["properties"][part]
        lines += ["", f"## {part}", "", section.get("description", ""), ""]
        lines += ["| Field | Type | Default | Allowed | Meaning |", "|---|---|---|---|---|"]
        lines += [_row(cells) for cells in _fields(section, "")]
        lines += _rules(section)
    return "\n".join(lines) + "\n"


def pages(generated: str) -> dict[str, str]:
    """The pages of all kinds by the name of their file."""
    return {f"{each.kind.lower()}.md": page(generated, each) for each in DEFINITIONS}


def _fields(schema: Schema, path: str) -> Iterator[tuple[str, ...]]:
    required = set(schema.get("required", ()))
    for name, field in schema.get("properties", {}).items():
        place = f"{path}.{name}" if path else name
        yield _cells(place, field, required=name in required)
        yield from _fields(*_inside(field, place))


def _inside(field: Schema, place: str) -> tuple[Schema, str]:
    """The schema whose properties are below a field, and how they are written."""
    if "items" in field:
        return _inside(field["items"], f"{place}[]")
    values = field.get("additionalProperties")
    if isinstance(values, Mapping):
        return _inside(values, f"{place}.<name>")
    return field, place


def _cells(place: str, field: Schema, *, required: bool) -> tuple[str, ...]:
    default = f"`{json.dumps(field['default'])}`" if "default" in field else ""
    allowed = "; ".join(_allowed(field))
    meaning = field.get("description", "")
    return (f"`{place}`", _type(field), "*required*" if required else default, allowed, meaning)


def _type(field: Schema) -> str:
    if "items" in field:
        return f"list of {_type(field['items'])}"
    if isinstance(field.get("additionalProperties"), Mapping):
        return f"map of {_type(field['additionalProperties'])}"
    if field.get("x-kubernetes-int-or-string"):
        return "integer or string"
    return str(field.get("type", "any"))


def _allowed(field: Schema) -> Iterator[str]:
    if "enum" in field:
        yield ", ".join(f"`{value}`" for value in field["enum"])
    for name, words in _LIMITS.items():
        if name in field:
            yield words.format(field[name])


def _rules(section: Schema) -> list[str]:
    """What the API server refuses, in its words: rules that hold between fields."""
    messages = list(dict.fromkeys(_messages(section, "spec")))
    if not messages:
        return []
    return ["", "The API server refuses an object that breaks one of these rules:", "", *messages]


def _messages(schema: Schema, path: str) -> Iterator[str]:
    for rule in schema.get("x-kubernetes-validations", ()):
        if "message" in rule:
            yield f"* `{path}`: {rule['message']}"
    for name, field in schema.get("properties", {}).items():
        place = f"{path}.{name}"
        yield from _messages(field, place)
        inside, below = _inside(field, place)
        if inside is not field:
            yield from _messages(inside, below)


def _row(cells: Iterable[str]) -> str:
    return "| " + " | ".join(_cell(cell) for cell in cells) + " |"


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")
