"""Mutants: each is the module with one change, and those that no test notices are told."""

from tools.mutate import mutants

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
