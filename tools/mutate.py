"""Mutation testing: changes a module in small ways and runs its tests, which must notice each.

Every mutant is the module with one change: a comparison turned round or moved by one, an operand
of `and` or `or` left out, a statement left out, a number or a truth value changed. The tests are
those where `tools.tested_in` says, or those that are named. A mutant that they do not notice
survives: either a test is missing, or the change makes no difference, which
docs/contributing/mutation.md says of each that is known. The sources are left alone: mutants live
in a copy of the package.

    make mutate MODULES="broker-image/src/barnabas_broker/replica/isr.py"
"""

from __future__ import annotations

import argparse
import ast
import copy
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Final

from tools.tidy import ROOT, places_of_tests

LIMIT_S: Final = 600
"""How long the tests of one mutant may take: one that makes them hang is noticed, too."""

_TURNED: Final[dict[type[ast.cmpop], type[ast.cmpop]]] = {
    ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq, ast.Is: ast.IsNot, ast.IsNot: ast.Is, ast.In: ast.NotIn, ast.NotIn: ast.In,
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Mutant:
    """A module with one change."""

    line: int
    change: str
    source: str


def mutants(source: str) -> Iterator[Mutant]:
    """All mutants of a module's source; assertions are left as they are."""
    tree = ast.parse(source)
    count = sum(1 for _ in ast.walk(tree))
    for number in range(count):
        for way in range(_WAYS_MAX):
            mutated = copy.deepcopy(tree)
            parents = {id(c): p for p in ast.walk(mutated) for c in ast.iter_child_nodes(p)}
            node = next(each for at, each in enumerate(ast.walk(mutated)) if at == number)
            if _is_left_alone(node, parents):
                break
            before = ast.unparse(node)
            if not _change(node, way):
                break
            after = ast.unparse(node) or "nothing"
            yield Mutant(getattr(node, "lineno", 0), f"{before}  ->  {after}", ast.unparse(mutated))


_WAYS_MAX: Final = 8


def _is_left_alone(node: ast.AST, parents: dict[int, ast.AST]) -> bool:
    """Whether a node is part of an assertion, an annotation, a docstring or a declaration."""
    while (parent := parents.get(id(node))) is not None:
        if isinstance(parent, ast.Assert):
            return True
        if isinstance(parent, ast.AnnAssign | ast.arg) and parent.annotation is node:
            return True
        if isinstance(parent, ast.FunctionDef) and node in (parent.returns, *parent.decorator_list):
            return True
        node = parent
    return False


def _change(node: ast.AST, way: int) -> bool:
    """Change a node in the way of that number; false where there is none."""
    if isinstance(node, ast.Compare):
        if way >= len(node.ops) or type(node.ops[way]) not in _TURNED:
            return False
        node.ops[way] = _TURNED[type(node.ops[way])]()
    elif isinstance(node, ast.BoolOp):
        if way >= len(node.values):
            return False
        del node.values[way]
    elif isinstance(node, ast.Constant) and way == 0 and isinstance(node.value, int):
        node.value = not node.value if isinstance(node.value, bool) else node.value + 1
    elif isinstance(node, ast.Return) and way == 0 and node.value is not None:
        if isinstance(node.value, ast.Constant) and node.value.value is None:
            return False
        node.value = None
    elif isinstance(node, ast.Assign | ast.AugAssign | ast.Expr | ast.Delete | ast.Raise):
        return way == 0 and _leave_out(node)
    else:
        return False
    return True


def _leave_out(node: ast.stmt) -> bool:
    """Make a statement do nothing, except for a docstring, which does nothing already."""
    if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
        return False
    node.__class__ = ast.Pass
    return True


def survivors(module: Path, tests: Sequence[str], *, limit: int | None) -> list[Mutant]:
    """The mutants of a module that its tests do not notice. Prints what becomes of each."""
    package = next(each for each in module.parents if each.parent.name == "src")
    found = []
    with tempfile.TemporaryDirectory() as directory:
        copied = Path(directory) / package.name
        shutil.copytree(package, copied)
        target = copied / module.relative_to(package)
        if not _pass(tests, directory):
            raise SystemExit(f"{' '.join(tests)} fail without a change")
        for number, mutant in enumerate(mutants(module.read_text(encoding="utf-8"))):
            if number == limit:
                break
            target.write_text(mutant.source, encoding="utf-8")
            survives = _pass(tests, directory)
            verdict = "SURVIVES" if survives else "noticed"
            print(f"{module.name}:{mutant.line}: {verdict}: {mutant.change}", flush=True)
            if survives:
                found.append(mutant)
    return found


def _pass(tests: Sequence[str], directory: str) -> bool:
    command = [sys.executable, "-B", "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", *tests]
    environment = os.environ | {"PYTHONPATH": directory}
    try:
        done = subprocess.run(
            command, cwd=ROOT, env=environment, capture_output=True, check=False, timeout=LIMIT_S
        )
    except subprocess.TimeoutExpired:
        return False
    return done.returncode == 0


def main(arguments: Sequence[str] | None = None) -> int:
    """The command line; 1 if a mutant survives."""
    parser = argparse.ArgumentParser(prog="python -m tools.mutate", description=__doc__)
    parser.add_argument("modules", nargs="+", type=Path)
    parser.add_argument("--tests", nargs="+", help="instead of the module's own")
    parser.add_argument("--limit", type=int, help="only so many mutants of each module")
    given = parser.parse_args(arguments)
    left = 0
    for each in given.modules:
        module = each.resolve()
        places = places_of_tests(PurePosixPath(module.relative_to(ROOT).as_posix()))
        tests = given.tests or [place for place in places if (ROOT / place).exists()]
        left += len(survivors(module, tests, limit=given.limit))
    print(f"{left} mutants survive")
    return 1 if left else 0


if __name__ == "__main__":
    sys.exit(main())
