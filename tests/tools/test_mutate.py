"""Mutants: each is the module with one change, and those that no test notices are told."""

import pytest

from tools import mutate
from tools.mutate import BROKER, CORES, modules_of, mutants

SOURCE = '''
"""A module."""

LIMIT = 3


def is_in(low: int, value: int, high: int) -> bool:
    """Whether it is."""
    assert low <= high
    if low < value and value is not None:
        return True
    seen = value
    return low == seen
'''


def test_every_kind_of_change_is_made_once() -> None:
    """Comparisons, operands, numbers, truth values and statements; docstrings and asserts stay."""
    found = [mutant.change for mutant in mutants(SOURCE)]
    assert len(found) == len(set(found))
    assert {
        "3  ->  4",
        "low < value  ->  low <= value",
        "value is not None  ->  value is None",
        "low < value and value is not None  ->  value is not None",
        "True  ->  False",
        "seen = value  ->  pass",
        "low == seen  ->  low != seen",
        "return low == seen  ->  return",
    } <= set(found)
    assert not any("module" in change or "low <= high" in change for change in found)


def test_each_mutant_is_python_and_differs() -> None:
    """One that cannot be compiled would be noticed by any test."""
    for mutant in mutants(SOURCE):
        compile(mutant.source, "mutant", "exec")
        assert "assert low <= high" in mutant.source
        assert mutant.line > 0


def test_a_sample_is_the_same_for_a_seed() -> None:
    """And some of all, in their order."""
    every = [mutant.change for mutant in mutants(SOURCE)]
    some = [mutant.change for mutant in mutants(SOURCE, sample=4, seed=7)]
    assert some == [mutant.change for mutant in mutants(SOURCE, sample=4, seed=7)]
    assert len(some) == 4
    assert [change for change in every if change in some] == some
    assert [mutant.change for mutant in mutants(SOURCE, sample=1000)] == every


@pytest.mark.parametrize("core", CORES)
def test_each_module_of_a_core_has_tests(core: str) -> None:
    """A module that has moved would be left out, or its tests."""
    for module in modules_of([core]):
        assert module.is_file()
        assert mutate.tests_of(module), module.relative_to(BROKER)
