"""The words with which a field of a resource is declared: what it means and what it may hold.

They are in the field's annotation, next to its type, so that a resource stays an ordinary frozen
dataclass with ordinary defaults:

    replicas: Annotated[int, Doc("How many copies."), Between(1, 9)] = 1

A class lists in `RULES` what holds between its fields, in CEL, the language in which the API server
checks it (`self` is the object, `oldSelf` what it was before).
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Doc:
    """What a user reads in `kubectl explain` and in the reference."""

    text: str


@dataclass(frozen=True, slots=True)
class Between:
    """A number is in this range, both ends included."""

    minimum: int | float
    maximum: int | float


@dataclass(frozen=True, slots=True)
class Pattern:
    """A text matches this regular expression; `hint` says the same to a person."""

    expression: str
    hint: str


@dataclass(frozen=True, slots=True)
class Longest:
    """At most so many characters, items or entries; CEL's cost estimate needs such a bound."""

    count: int


@dataclass(frozen=True, slots=True)
class Fewest:
    """At least so many characters, items or entries."""

    count: int


@dataclass(frozen=True, slots=True)
class OneOf:
    """One of these numbers."""

    values: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class NoDefault:
    """The API server fills in no default: it depends on the profile, or is to ask for nothing."""


@dataclass(frozen=True, slots=True)
class Keyed:
    """A list whose items have these fields as keys, so that server-side apply merges them."""

    fields: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Rule:
    """A CEL expression that holds, and the message for the user if it does not."""

    expression: str
    message: str


QUANTITY = Pattern(
    r"^[0-9]+(\.[0-9]+)?(Ki|Mi|Gi|Ti|Pi|k|M|G|T|P)?$", "a quantity such as 512Mi or 20Gi"
)
CPU = Pattern(r"^[0-9]+(\.[0-9]+)?m?$", "an amount of CPU such as 500m or 2")
DURATION = Pattern(r"^([0-9]+(ms|s|m|h|d))+$", "a duration such as 5s, 12h or 7d")
NAME = Pattern(r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?$", "lower-case letters, digits and dashes")
RESOURCE_NAME = Pattern(
    r"^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$", "lower-case letters, digits, dashes and dots"
)
