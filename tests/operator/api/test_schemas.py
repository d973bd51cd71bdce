"""Schemas: structural, documented, with bounds and rules."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pytest

from barnabas_operator.api import schemas
from barnabas_operator.api.clusters import KafkaCluster
from barnabas_operator.api.declarations import Declared
from barnabas_operator.api.definitions import DEFINITIONS
from barnabas_operator.api.schemas import schema_of


def _walk(schema: dict[str, Any], path: str = "") -> Iterator[tuple[str, dict[str, Any]]]:
    yield path, schema
    for name, inner in schema.get("properties", {}).items():
        yield from _walk(inner, f"{path}.{name}")
    for name in ("items", "additionalProperties"):
        if isinstance(schema.get(name), dict):
            yield from _walk(schema[name], f"{path}.{name}")


@pytest.mark.parametrize("definition", DEFINITIONS, ids=lambda each: each.kind)
def test_every_field_has_type_and_explanation(definition: Any) -> None:
    """Structural schemas have a type everywhere; `kubectl explain` answers everywhere."""
    for path, schema in _walk(schema_of(definition.body)):
        assert "type" in schema, path
        if not path.endswith((".items", ".additionalProperties")):
            assert schema["description"], path


@pytest.mark.parametrize("definition", DEFINITIONS, ids=lambda each: each.kind)
def test_whatever_cel_goes_over_has_a_bound(definition: Any) -> None:
    """The API server refuses rules whose cost it cannot bound."""
    for path, schema in _walk(schema_of(definition.body)):
        rules = " ".join(r["rule"] for r in schema.get("x-kubernetes-validations", ()))
        for field in re.findall(r"self(?:\.(\w+))?\.(?:all|exists)\(", rules):
            gone_over = schema["properties"][field] if field else schema
            assert {"maxItems", "maxProperties"} & gone_over.keys(), path


def test_rules_and_bounds_of_a_cluster() -> None:
    """One of each sort."""
    spec = schema_of(KafkaCluster)["properties"]["spec"]["properties"]
    assert spec["zookeeper"]["properties"]["replicas"]["enum"] == [1, 3]
    brokers = spec["brokers"]
    rules = schema_of(KafkaCluster)["properties"]["spec"]["x-kubernetes-validations"]
    assert "may not change" in rules[0]["message"]
    assert brokers["properties"]["storage"]["properties"]["sizing"]["required"] == [
        "messagesPerDay",
        "averageMessageBytes",
    ]
    listeners = spec["listeners"]
    assert listeners["x-kubernetes-list-map-keys"] == ["name"]
    # It depends on what the cluster was created as, which the schema cannot know.
    assert "default" not in listeners
    assert listeners["items"]["properties"]["type"]["enum"][:2] == ["internal", "nodeport"]


def test_a_type_without_schema_is_an_error() -> None:
    """As soon as somebody declares it, not when a user meets it."""
    odd = Declared(
        attribute="a", name="a", hint=bytes, facts=(), optional=False, required=True, default=None
    )
    with pytest.raises(TypeError, match="no schema"):
        schemas._schema_of_field(odd)
