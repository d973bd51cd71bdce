"""Mutation testing: changes a module in small ways and runs its tests, which must notice each.

Every mutant is the module with one change: a comparison turned round or moved by one, an operand
of `and` or `or` left out, a statement left out, a number or a truth value changed. The tests are
those where `tools.tested_in` says, or those that are named. A mutant that they do not notice
survives: either a test is missing, or the change makes no difference, which
docs/contributing/mutation.md says of each that is known. The sources are left alone: mutants live
in a copy of the package.

    make mutate MODULES="broker-image/src/barnabas_broker/replica/isr.py"
    make mutate-cores SAMPLE=10 SEED=1

The second takes a sample of each module of the cores, always the same one for a seed.
"""

from __future__ import annotations

import argparse
import ast
import copy
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from time import monotonic
from typing import Final

from tools.tidy import ROOT, places_of_tests

LIMIT_S: Final = 600
"""How long the tests of one mutant may take: one that makes them hang is noticed, too."""

BROKER: Final = ROOT / "broker-image/src/barnabas_broker"
CORES: Final[Mapping[str, Sequence[str]]] = {
    "replica": tuple(
        f"replica/{name}.py"
        for name in ("epoch_checks", "isr", "follower", "partition", "fetch_session")
    ),
    "coordinator": tuple(
        f"coordinator/{name}.py"
        for name in (
            "group/group", "group/joining", "group/membership", "group/rebalancing",
            "group/commits", "transaction/transaction", "transaction/states", "transaction/shard",
        )
    ),
    "log": tuple(
        f"log/{name}.py" for name in ("recovery", "epochs", "future_log_recovery", "producer_state")
    ),
    "controller": tuple(
        f"controller/{name}.py"
        for name in (
            "elections", "careful_election", "isr_changes", "reassignment", "offline_replicas",
        )
    ),
}  # fmt: skip
"""The modules that decide, by core."""

CORE_TESTS: Final[Mapping[str, Sequence[str]]] = {
    "broker-image/src/barnabas_broker/replica": ("tests/broker/replica",),
    "broker-image/src/barnabas_broker/coordinator/group": ("tests/broker/coordinator/group",),
    "broker-image/src/barnabas_broker/coordinator/transaction": (
        "tests/broker/coordinator/transaction",
    ),
    "broker-image/src/barnabas_broker/controller": ("tests/broker/controller",),
    "broker-image/src/barnabas_broker/log/future_log_recovery.py": (
        "tests/broker/log/test_future_log_recovery.py",
        "tests/broker/log/test_replica_move.py",
    ),
}
"""Where cores are tested: as one, by what their parts do together."""

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


def mutants(source: str, *, sample: int | None = None, seed: int = 0) -> Iterator[Mutant]:
    """All mutants of a module's source, or a sample; assertions are left as they are."""
    tree = ast.parse(source)
    parents = {id(child): node for node in ast.walk(tree) for child in ast.iter_child_nodes(node)}
    places = [
        (number, way)
        for number, node in enumerate(ast.walk(tree))
        if isinstance(node, _CHANGED) and not _is_left_alone(node, parents)
        for way in range(_WAYS_MAX)
        if _change(copy.deepcopy(node), way)
    ]
    if sample is not None and sample < len(places):
        places = sorted(random.Random(seed).sample(places, sample))
    for number, way in places:
        mutated = copy.deepcopy(tree)
        node = next(each for at, each in enumerate(ast.walk(mutated)) if at == number)
        before = ast.unparse(node)
        _change(node, way)
        after = ast.unparse(node) or "nothing"
        yield Mutant(getattr(node, "lineno", 0), f"{before}  ->  {after}", ast.unparse(mutated))


_WAYS_MAX: Final = 8
_CHANGED: Final = (
    ast.Compare, ast.BoolOp, ast.Constant, ast.Return, ast.Assign, ast.AugAssign, ast.Expr,
    ast.Delete, ast.Raise,
)  # fmt: skip


def _is_left_alone(node: ast.AST, parents: dict[int, ast.AST]) -> bool:
    """Whether a node is part of an assertion, an annotation, a docstring or a declaration."""
    while (parent := parents.get(id(node))) is not None:
        if isinstance(parent, ast.Assert):
            return True
        if isinstance(parent, ast.AnnAssign | ast.arg) and parent.annotation is node:
            return True
        if isinstance(parent, ast.FunctionDef) and node in (parent.returns, *parent.decorator_list):
            return True
        if isinstance(parent, ast.ClassDef) and node in parent.decorator_list:
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


def survivors(
    module: Path, tests: Sequence[str], *, sample: int | None = None, seed: int = 0
) -> list[Mutant]:
    """The mutants of a module that its tests do not notice. Prints what becomes of each."""
    package = next(each for each in module.parents if each.parent.name == "src")
    found = []
    with tempfile.TemporaryDirectory() as directory:
        copied = Path(directory) / package.name
        shutil.copytree(package, copied)  # With what is compiled, which stays valid.
        target = copied / module.relative_to(package)
        began = monotonic()
        if not _pass(tests, directory, limit_s=LIMIT_S):
            raise SystemExit(f"{' '.join(tests)} fail without a change")
        # A mutant that makes its tests hang is noticed, too.
        limit_s = min(LIMIT_S, 20 + 10 * (monotonic() - began))
        source = module.read_text(encoding="utf-8")
        for mutant in mutants(source, sample=sample, seed=seed):
            target.write_text(mutant.source, encoding="utf-8")
            # Place by place: to collect all takes longer than the module's own tests.
            survives = all(_pass([place], directory, limit_s=limit_s) for place in tests)
            verdict = "SURVIVES" if survives else "noticed"
            print(f"{module.name}:{mutant.line}: {verdict}: {mutant.change}", flush=True)
            if survives:
                found.append(mutant)
    return found


def _pass(tests: Sequence[str], directory: str, *, limit_s: float) -> bool:
    options = ("-x", "-q", "-p", "no:cacheprovider", "-p", "no:randomly", "-m", "not soak")
    command = [sys.executable, "-B", "-m", "pytest", *options, *tests]
    environment = os.environ | {"PYTHONPATH": directory}
    with subprocess.Popen(
        command,
        cwd=ROOT,
        env=environment,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    ) as running:
        try:
            return running.wait(limit_s) == 0
        except subprocess.TimeoutExpired:
            os.killpg(running.pid, signal.SIGKILL)
            return False


def modules_of(names: Sequence[str]) -> list[Path]:
    """The modules of these cores, all where none is named."""
    return [BROKER / module for name in names or CORES for module in CORES[name]]


def tests_of(module: Path) -> list[str]:
    """Where a module is tested: its mirror, which notices most mutants soonest, and its core."""
    path = module.relative_to(ROOT)
    mirror, *elsewhere = places_of_tests(PurePosixPath(path.as_posix()))
    places = [mirror, *elsewhere]
    for place, tests in CORE_TESTS.items():
        if path.is_relative_to(place):
            places = [mirror, *(each for each in tests if each != mirror)]
    return [place for place in places if (ROOT / place).exists()]


def main(arguments: Sequence[str] | None = None) -> int:
    """The command line; 1 if a mutant survives."""
    parser = argparse.ArgumentParser(prog="python -m tools.mutate", description=__doc__)
    parser.add_argument("modules", nargs="*", type=Path)
    parser.add_argument("--cores", nargs="*", choices=list(CORES), help="all modules of these")
    parser.add_argument("--tests", nargs="+", help="instead of the module's own")
    parser.add_argument("--sample", type=int, help="only so many mutants of each module")
    parser.add_argument("--seed", type=int, default=0, help="of the sample")
    given = parser.parse_args(arguments)
    modules = [each.resolve() for each in given.modules]
    if given.cores is not None:
        modules += modules_of(given.cores)
    left = 0
    for module in modules:
        tests = given.tests or tests_of(module)
        left += len(survivors(module, tests, sample=given.sample, seed=given.seed))
    print(f"{left} mutants survive")
    return 1 if left else 0


if __name__ == "__main__":
    sys.exit(main())
