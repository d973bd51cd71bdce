"""The refusals that the API server is to show: one for each rule of the CRDs."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from barnabas_operator.api.definitions import DEFINITIONS, crd
from e2e.refusals import REFUSALS, name_of, reasons


def _messages(schema: Any) -> Iterator[str]:
    if isinstance(schema, list):
        for each in schema:
            yield from _messages(each)
    elif isinstance(schema, dict):
        yield from (each["message"] for each in schema.get("x-kubernetes-validations", ()))
        for inner in schema.values():
            yield from _messages(inner)


def test_each_rule_has_a_resource_that_breaks_it() -> None:
    """By its kind and message, which a rule has for itself."""
    rules = [
        (definition.kind, message)
        for definition in DEFINITIONS
        for message in _messages(crd(definition)["spec"]["versions"])
    ]
    assert sorted(rules) == sorted(set(rules))
    assert set(rules) <= {(each.kind, each.message) for each in REFUSALS}


def test_refusals_have_names_of_their_own() -> None:
    """By which they are found in what kubectl says about all of them."""
    names = [name_of(number) for number in range(len(REFUSALS))]
    kinds = [each.kind for each in REFUSALS]
    assert len({*zip(kinds, names, strict=True)}) == len(REFUSALS)
    said = (
        'The KafkaTopic "refused-1" is invalid: \n* spec: Invalid value: "a"\n* spec.b: Invalid\n'
        'The KafkaTopic "refused-10" is invalid: spec.c: Invalid\n'
    )
    assert reasons(said, "KafkaTopic", "refused-1").endswith('"a"\n* spec.b: Invalid')
    assert reasons(said, "KafkaUser", "refused-1") == ""
