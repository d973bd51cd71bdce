"""CustomResourceDefinitions: names, columns, sizes."""

from __future__ import annotations

import json
from typing import Any

import pytest

from barnabas_operator.api.definitions import DEFINITIONS, crd

EACH = pytest.mark.parametrize("definition", DEFINITIONS, ids=lambda each: each.kind)


def _version(definition: Any) -> dict[str, Any]:
    (version,) = crd(definition)["spec"]["versions"]
    assert isinstance(version, dict)
    return version


@EACH
def test_columns_point_at_declared_fields(definition: Any) -> None:
    """A column whose path leads nowhere would stay empty without anybody noticing."""
    properties = _version(definition)["schema"]["openAPIV3Schema"]["properties"]
    for column in _version(definition)["additionalPrinterColumns"]:
        head, *path = column["jsonPath"].removeprefix(".").split("[")[0].split(".")
        if head == "metadata":
            continue
        schema = properties[head]
        for name in path:
            schema = schema["properties"][name]


@EACH
def test_status_has_no_defaults(definition: Any) -> None:
    """A default in a status would be a claim about what nobody has looked at."""
    schema = _version(definition)["schema"]["openAPIV3Schema"]
    assert "default" not in json.dumps(schema["properties"]["status"])
    assert _version(definition)["subresources"] == {"status": {}}


def test_short_names_do_not_collide() -> None:
    """Neither with each other nor with those of the operator that most people know."""
    short = [definition.short for definition in DEFINITIONS]
    assert len(set(short)) == len(short)
    assert not {"k", "kt", "ku", "kc", "kctr", "kb", "kr", "kmm2", "kp"} & set(short)
