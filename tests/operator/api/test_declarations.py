"""Declarations: what is read from an annotated dataclass."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, ClassVar

import pytest

from barnabas_operator.api.declarations import camel_case, fields_of, rules_of
from barnabas_operator.api.facts import Between, Doc, Pattern, Rule


@dataclass(frozen=True, kw_only=True)
class Sample:
    """A sample."""

    RULES: ClassVar = (Rule("true", "always"),)

    how_many: Annotated[int, Doc("How many."), Between(1, 2), Rule("self != 3", "not 3")]
    name: Annotated[str | None, Doc("A name.")] = None
    notes: Annotated[Mapping[str, str], Doc("Notes.")] = field(default_factory=dict)


@dataclass(frozen=True)
class Ambiguous:
    """A field of two types."""

    value: Annotated[int | str, Doc("Either.")]


def test_fields() -> None:
    """Names, types, facts, defaults."""
    many, name, notes = fields_of(Sample)
    assert (many.name, many.hint, many.required, many.doc) == ("howMany", int, True, "How many.")
    assert many.fact(Between) == Between(1, 2)
    assert many.fact(Pattern) is None
    assert [rule.message for rule in many.rules] == ["not 3"]
    assert (name.hint, name.optional, name.required) == (str, True, False)
    assert notes.default == {}
    assert [rule.message for rule in rules_of(Sample)] == ["always"]


def test_a_field_has_one_type() -> None:
    """A schema has one, too."""
    with pytest.raises(TypeError, match="one type"):
        fields_of(Ambiguous)


def test_camel_case() -> None:
    """Python's names in the resource's spelling."""
    assert [camel_case(name) for name in ("a", "node_port", "max_offsets_per_trigger")] == [
        "a",
        "nodePort",
        "maxOffsetsPerTrigger",
    ]
