"""The reference of custom resources has every field that the schemas have."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import pytest

from barnabas_operator.api.definitions import DEFINITIONS, crd
from tools.reference_crds import page, pages


def field_names(schema: Mapping[str, Any]) -> Iterator[str]:
    """The names of all fields below a schema, in maps and lists too."""
    for name, field in schema.get("properties", {}).items():
        yield name
        yield from field_names(field)
    for inside in (schema.get("items"), schema.get("additionalProperties")):
        if isinstance(inside, Mapping):
            yield from field_names(inside)


@pytest.mark.parametrize("definition", DEFINITIONS, ids=lambda each: each.kind)
def test_every_field_has_a_row(definition: Any) -> None:
    """A reader finds each field by its name, as a path from spec or status."""
    schema = crd(definition)["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]
    rows = [line.split("|")[1] for line in page("", definition).splitlines() if "| `" in line]
    for part in ("spec", "status"):
        for name in field_names(schema[part]):
            assert any(row.rstrip("` ").endswith(name) for row in rows), name


def test_lists_maps_defaults_and_rules_are_shown() -> None:
    """What a user needs to write a field without trying."""
    topic = pages("")["kafkatopic.md"]
    assert "| `cluster` | string | *required* |" in topic
    assert "| `partitions` | integer | `1` | ≥ 1; ≤ " in topic
    assert "| `conditions[].reason` |" in topic
    assert "`Retain`, `Delete`" in topic
    assert "* `spec`: partitions may not shrink" in topic
