"""The table of the operator's rules: complete, with tests that exist, and searched."""

from __future__ import annotations

import inspect
import re

import pytest

from tests.operator.without_rule import WITHOUT
from tools.operator_rules import FAILED, MODEL, ROOT, Rule, missed, page, results, rules


def test_each_rule_has_a_test_that_exists() -> None:
    """By its path and name."""
    for rule in rules():
        assert rule.tests, rule.name
        for test in rule.tests:
            path, _, name = test.partition("::")
            text = (ROOT / path).read_text(encoding="utf-8")
            assert re.search(rf"^def {name}\(", text, re.MULTILINE), test


def test_each_rule_that_can_be_switched_off_was_found() -> None:
    """By the model test where it is named, and by a test of its own."""
    known = {rule.name: rule for rule in rules()}
    assert known.keys() >= WITHOUT.keys()
    found = results()
    assert found.keys() == WITHOUT.keys()
    survivors = [name for name in WITHOUT if missed(known[name], found[name]["failed"])]
    assert survivors == []
    for rule in known.values():
        assert rule.says in page("")


@pytest.mark.parametrize("name", WITHOUT)
def test_each_rule_can_be_switched_off(name: str) -> None:
    """Where a module has no such name the search ends before a test, and finds nothing."""
    for each in WITHOUT[name]:
        assert inspect.getattr_static(each.where, each.name) is not None


@pytest.mark.parametrize(
    ("by_model", "tests", "failed", "verdict"),
    [
        (True, ("tests/operator/a.py::b",), [MODEL, "tests/operator/a.py::b"], False),
        (True, ("tests/operator/a.py::b",), ["tests/operator/a.py::b"], True),
        (True, ("tests/operator/a.py::b",), [MODEL], True),
        (False, ("tests/operator/a.py::b", "e2e/c.py::d"), [], True),
        (True, ("e2e/c.py::d",), [MODEL], False),
    ],
)
def test_missed_rules(
    by_model: bool, tests: tuple[str, ...], failed: list[str], verdict: bool
) -> None:
    """Tests on Kubernetes are not run without a rule."""
    rule = Rule(name="r", about="a", says="s", tests=tests, by_model=by_model)
    assert missed(rule, failed) is verdict


def test_failures_are_read_off_pytests_summary() -> None:
    """With parameters and reasons, which are left out; an error of a collection is no failure."""
    reported = (
        "FAILED tests/a.py::test_b[1-x] - assert 1 == 2\nERROR tests/c.py\nFAILED tests/d.py::e\n"
    )
    assert FAILED.findall(reported) == ["tests/a.py::test_b", "tests/d.py::e"]
