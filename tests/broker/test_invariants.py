"""Invariants in the code: what an assertion that fails tells, and how many there are."""

import ast
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

import barnabas_broker
from barnabas_broker.invariants import on_violation, violated

SOURCES = Path(barnabas_broker.__file__).parent


class Mark:
    """Something with an invariant."""

    __slots__ = ("end", "mark", "unset")

    def __init__(self, mark: int, end: int) -> None:
        self.mark, self.end = mark, end

    def check(self, note: bytes) -> int:
        """Assert it."""
        assert self.mark <= self.end, violated("the mark is within the log")
        return len(note)


def test_watchers_get_invariant_stack_and_variables(violations: list[str]) -> None:
    """The invariant, the stack, the variables there and the object's parts; of bytes the size."""
    reported: list[tuple[str, str]] = []
    with on_violation(lambda *each: reported.append(each)):
        with pytest.raises(AssertionError, match="invariant violated: the mark is within the log"):
            Mark(8, 5).check(b"somebody's record")
        assert Mark(5, 5).check(b"") == 0
    [(invariant, state)] = reported
    violations.clear()
    assert invariant == "the mark is within the log"
    assert "in check" in state
    assert "  note = <bytes of 17 bytes>" in state
    assert "  self.mark = 8\n  self.end = 5" in state or "  self.end = 5\n  self.mark = 8" in state
    assert "somebody" not in state.partition("  note =")[2]


def test_watchers_are_notified_of_caught_assertions(violations: list[str]) -> None:
    """Whatever a caller catches, who watches knows; and nobody does after the block."""
    reported: list[str] = []
    with on_violation(lambda invariant, _state: reported.append(invariant)):
        for _ in range(2):
            with pytest.raises(AssertionError):
                Mark(1, 0).check(b"")
    with pytest.raises(AssertionError):
        Mark(1, 0).check(b"")
    assert reported == ["the mark is within the log"] * 2
    assert len(violations) == 3
    violations.clear()


def test_the_report_is_bounded(violations: list[str]) -> None:
    """A large value does not make a large log line, and one that cannot be told hides no other."""

    class Mute:
        def __repr__(self) -> str:
            raise ValueError("no")

    reported: list[str] = []
    names = ["x" * 100] * 10_000
    mute = Mute()
    with on_violation(lambda _invariant, state: reported.append(state)):
        violated("nothing is too large")
    violations.clear()
    assert "  mute = <Mute instance" in reported[0]
    assert "  names = ['xxx" in reported[0]
    assert len(reported[0]) < 100_000
    assert (len(names), type(mute)) == (10_000, Mute)


def test_watchers_are_called_without_a_state(violations: list[str]) -> None:
    """What fails while the state is told must not keep the process alive."""

    class Broken:
        __slots__ = ()

        def __getattr__(self, name: str) -> object:
            raise ValueError(name)

        def check(self) -> None:
            violated("objects can be told")

    reported: list[str] = []
    with on_violation(lambda _invariant, state: reported.append(state)):
        Broken().check()
    violations.clear()
    assert reported == ["its state cannot be described: ValueError('__dict__')"]


def assertions() -> Iterator[tuple[Path, ast.Assert]]:
    """Every assertion in the broker's code."""
    for path in SOURCES.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Assert):
                yield path, node


def test_every_assertion_names_its_invariant() -> None:
    """Else it would end one request instead of the process."""
    wrong = [
        f"{path.relative_to(SOURCES)}:{node.lineno}"
        for path, node in assertions()
        if not (isinstance(node.msg, ast.Call) and ast.unparse(node.msg.func) == "violated")
    ]
    assert wrong == []


def test_the_cores_assert_their_invariants() -> None:
    """Where a wrong state would lose or alter records, it ends the broker instead."""
    counts = Counter(path.relative_to(SOURCES).parts[0] for path, _ in assertions())
    assert counts.total() >= 200
    assert counts["log"] >= 40
    assert counts["replica"] >= 25
    assert counts["coordinator"] >= 70
    assert counts["controller"] >= 25
