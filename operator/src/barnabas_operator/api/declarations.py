"""What a declaring dataclass says, field by field, in a form that others can walk.

The one place that reads annotations; the schema, the parser and the writer go over its result.
"""

from __future__ import annotations

import dataclasses
import functools
import types
import typing
from collections.abc import Iterator
from dataclasses import MISSING, dataclass
from typing import Any, TypeVar

from barnabas_operator.api.facts import Doc, Rule

Fact = TypeVar("Fact")


@dataclass(frozen=True, slots=True)
class Declared:
    """One field: its name in Python and in the resource, its type, facts and default."""

    attribute: str
    name: str
    hint: Any
    facts: tuple[object, ...]
    optional: bool
    required: bool
    default: Any

    @property
    def doc(self) -> str:
        """What the field means."""
        found = self.fact(Doc)
        return found.text if found else ""

    @property
    def rules(self) -> tuple[Rule, ...]:
        """The CEL rules about this field alone."""
        return tuple(fact for fact in self.facts if isinstance(fact, Rule))

    def fact(self, kind: type[Fact]) -> Fact | None:
        """The field's fact of a kind, if it has one."""
        return next((fact for fact in self.facts if isinstance(fact, kind)), None)


def fields_of(declaring: type) -> tuple[Declared, ...]:
    """The fields of a declaring dataclass, in the order of the source."""
    return _fields_of(declaring)


@functools.cache
def _fields_of(declaring: Any) -> tuple[Declared, ...]:
    hints = typing.get_type_hints(declaring, include_extras=True)
    return tuple(_fields(declaring, hints))


def _fields(declaring: type, hints: dict[str, Any]) -> Iterator[Declared]:
    for field in dataclasses.fields(declaring):
        hint = hints[field.name]
        facts: tuple[object, ...] = ()
        if typing.get_origin(hint) is typing.Annotated:
            hint, *extras = typing.get_args(hint)
            facts = tuple(extras)
        plain, optional = _without_none(hint)
        default = field.default
        if field.default_factory is not MISSING:
            default = field.default_factory()
        yield Declared(
            attribute=field.name,
            name=camel_case(field.name),
            hint=plain,
            facts=facts,
            optional=optional,
            required=default is MISSING,
            default=default,
        )


def _without_none(hint: Any) -> tuple[Any, bool]:
    if typing.get_origin(hint) not in (types.UnionType, typing.Union):
        return hint, False
    plain = [part for part in typing.get_args(hint) if part is not type(None)]
    if len(plain) != 1:
        raise TypeError(f"{hint}: a field has one type, or one type and None")
    return plain[0], True


def camel_case(name: str) -> str:
    """The resource's spelling of an attribute's name."""
    first, *rest = name.split("_")
    return first + "".join(word.capitalize() for word in rest)


def rules_of(declaring: type) -> tuple[Rule, ...]:
    """The CEL rules between the fields of a declaring class."""
    rules: tuple[Rule, ...] = getattr(declaring, "RULES", ())
    return rules
