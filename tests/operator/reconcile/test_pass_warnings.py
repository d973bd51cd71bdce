"""Warnings of passes: said when they are new, and again when they come back."""

from __future__ import annotations

import dataclasses
import logging

import pytest

from barnabas_operator.reconcile.pass_warnings import PassWarnings
from barnabas_operator.reconcile.reconciler import Key, reconcile
from tests.operator import examples
from tests.operator.memory_kube import MemoryKube
from tests.operator.ports import MemoryBrokers, context_on

KEY = Key("default", "quickstart")


def test_a_repeated_warning_is_not_new() -> None:
    """What it no longer finds is, once it is there again."""
    warnings = PassWarnings()
    for finds, new in (("ab", "ab"), ("ab", ""), ("b", ""), ("ab", "a"), ("", ""), ("b", "b")):
        warnings.begin()
        assert "".join(filter(warnings.is_new, finds)) == new
    assert not warnings.is_new("b")


@pytest.mark.parametrize("kind", ["KafkaTopic", "KafkaUser"])
def test_entries_held_back_are_logged_on_changes(
    kind: str, caplog: pytest.LogCaptureFixture
) -> None:
    """Entries of a definition that was deleted, and lines that cannot be parsed: once, not in each
    pass; again with another entry."""
    plural = f"{kind.lower()}s"
    names = ("a", "b")
    made = [
        examples.topic(name, deletionPolicy="Delete")
        if kind == "KafkaTopic"
        else examples.user(name)
        for name in names
    ]
    kube, brokers = MemoryKube(examples.secured(), examples.definition(plural)), MemoryBrokers()
    warnings = PassWarnings()

    def passes(count: int) -> list[str]:
        caplog.clear()
        with caplog.at_level(logging.WARNING):
            for _ in range(count):
                context = dataclasses.replace(context_on(kube, brokers), warnings=warnings)
                reconcile(KEY, context)
                kube.settle()
        return [each.getMessage() for each in caplog.records]

    passes(2)
    for each in made:
        kube.put(each)
    assert passes(2) == []
    kube.remove("CustomResourceDefinition", f"{plural}.barnabas.io", "")
    kube.put(examples.definition(plural, "definition-2"))
    kube.remove(kind, "a")
    (held,) = passes(3)
    assert "a are not deleted" in held
    kube.remove(kind, "b")
    (held,) = passes(3)
    assert "a, b are not deleted" in held
    ledger = kube.find("ConfigMap", f"quickstart-{plural.removeprefix('kafka')}-0")
    key = plural.removeprefix("kafka")
    ledger["data"][key] += "no entry\n"
    (unparsed,) = passes(3)
    assert "ledger entry cannot be parsed" in unparsed
