"""The rules by which the operator does no harm: their page, and a search with each switched off.

`operator_rules.toml` has what each rule says and the tests that show it. `make mutate-operator` has
the operator do without each rule in turn (`tests/operator/without_rule.py`): the model test must
fail where it is named, and one of the rule's unit tests. What failed is kept in
docs/contributing/operator-rules.json; `make gen` makes the page of both.

    make mutate-operator                        all rules
    make mutate-operator RULES="leaders last"   one of them; rules are separated by commas
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

ROOT: Final = Path(__file__).resolve().parent.parent
ENTRIES: Final = Path(__file__).with_suffix(".toml")
PAGE: Final = ROOT / "docs" / "contributing" / "operator-rules.md"
RESULTS: Final = PAGE.with_suffix(".json")
BELOW: Final = "tests/operator"
MODEL: Final = "model"
MODEL_TEST: Final = f"{BELOW}/test_model.py::test_the_operator_does_no_harm_and_comes_to_an_end"
# Is passed where the model test finds that a rule is switched off.
MODEL_SEARCH: Final = f"{BELOW}/test_model.py::test_each_rule_switched_off_is_found"
PLUGIN: Final = "tests.operator.without_rule"
# These run an operator in this process; all others run an operator's image, or whole programs.
IN_PROCESS: Final = (BELOW, "tests/broker/")
LIMIT_S: Final = 900
FAILED: Final = re.compile(r"^FAILED (\S+?)(?:\[.*)?(?: - .*)?$", re.MULTILINE)

INTRODUCTION: Final = f"""# The rules of the operator

{{generated}}

An operator is trusted with everything that its users have. These rules keep it from harm. Each has
the tests that show it; those of `e2e/` run on [kind](https://kind.sigs.k8s.io) (`make e2e`).

`make mutate-operator` runs the operator without each rule in turn. The model test
(`{MODEL_TEST.partition("::")[0]}`) must fail then where it is named, and a unit test of the rule.
The last column has what failed; a dash is a rule that no single change switches off.
`make mutate-operator RULES="leaders last"` is the search for one rule.

A new rule has an entry in `tools/operator_rules.toml` and a change in
`tests/operator/without_rule.py`.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """One rule: the heading it stands under, what it says, and its tests as pytest names them."""

    name: str
    about: str
    says: str
    tests: tuple[str, ...]
    by_model: bool

    @property
    def units(self) -> tuple[str, ...]:
        """The tests that notice in their own process that the rule is switched off."""
        return tuple(each for each in self.tests if each.startswith(IN_PROCESS))


def rules() -> tuple[Rule, ...]:
    """All rules, in the order of the page."""
    entries = tomllib.loads(ENTRIES.read_text(encoding="utf-8"))
    return tuple(_rule(name, entry) for name, entry in entries.items())


def _rule(name: str, entry: Mapping[str, Any]) -> Rule:
    roots = ("tests/", "e2e/")
    named = [each for each in entry["tests"] if each != MODEL]
    return Rule(
        name=name,
        about=entry["about"],
        says=entry["says"],
        tests=tuple(each if each.startswith(roots) else f"{BELOW}/{each}" for each in named),
        by_model=MODEL in entry["tests"],
    )


# --- the page -------------------------------------------------------------------------------------


def results() -> dict[str, Any]:
    """What the last searches found: for each rule its date and the tests that failed."""
    found: dict[str, Any] = json.loads(RESULTS.read_text(encoding="utf-8"))
    return found


def page(generated: str) -> str:
    """The page, with a line that says what it is generated from."""
    found = results()
    lines = [INTRODUCTION.format(generated=generated)]
    about = ""
    for rule in rules():
        if rule.about != about:
            about = rule.about
            lines += [f"## {about}\n", "| Rule | Shown by | Without it fails |", "|---|---|---|"]
        tests = (["the model test"] if rule.by_model else []) + [_shown(t) for t in rule.tests]
        failed = [_shown(each) for each in found.get(rule.name, {}).get("failed", ())]
        lines.append(f"| {rule.says} | {'<br>'.join(tests)} | {'<br>'.join(failed) or '–'} |")
    text = re.sub(r"(?m)^(\|.*)\n(## )", r"\1\n\n\2", "\n".join(lines))
    days = sorted({each["date"] for each in found.values()})
    return f"{text}\n\nSearched {' to '.join(sorted({days[0], days[-1]}))}.\n" if days else text


def _shown(test: str) -> str:
    if test == MODEL:
        return "the model test"
    path, _, name = test.partition("::")
    return f"`{path.removeprefix(f'{BELOW}/')}::{name}`"


# --- the search -----------------------------------------------------------------------------------


def search(rule: Rule) -> Iterator[str]:
    """The tests that fail without the rule."""
    if rule.by_model:
        command = ["-m", "soak", f"{MODEL_SEARCH}[{rule.name}]"]
        if _pytest(command).returncode == 0:
            yield MODEL
    if rule.units:
        reported = _pytest(
            ["-m", "not soak", "-p", PLUGIN, "--without-rule", rule.name, *rule.units]
        )
        yield from dict.fromkeys(FAILED.findall(reported.stdout))


def _pytest(arguments: Sequence[str]) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "pytest", "-q", "-rf", "-p", "no:cacheprovider", *arguments]
    return subprocess.run(
        command, cwd=ROOT, capture_output=True, text=True, check=False, timeout=LIMIT_S
    )


def missed(rule: Rule, failed: Iterable[str]) -> bool:
    """Whether a rule that was switched off is not found by all that must find it."""
    found = set(failed)
    return (rule.by_model and MODEL not in found) or (bool(rule.units) and not found - {MODEL})


def main() -> int:
    """Search, and keep what was found; the exit status says whether everything was."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rules", default="", help="names, separated by commas; all by default")
    chosen = [each.strip() for each in parser.parse_args().rules.split(",") if each.strip()]
    known = {rule.name: rule for rule in rules()}
    if unknown := [name for name in chosen if name not in known]:
        parser.error(f"no such rules: {', '.join(unknown)}")
    from tests.operator.without_rule import WITHOUT

    kept = {name: each for name, each in results().items() if name in WITHOUT}
    survivors = []
    for name in chosen or WITHOUT:
        failed = list(search(known[name]))
        today = datetime.now(tz=UTC).date().isoformat()
        kept[name] = {"date": today, "failed": failed}
        print(f"{name}: {', '.join(failed) or 'nothing fails'}", flush=True)
        if missed(known[name], failed):
            survivors.append(name)
    ordered = {name: kept[name] for name in known if name in kept}
    RESULTS.write_text(json.dumps(ordered, indent=1) + "\n", encoding="utf-8")
    if survivors:
        print(f"not found: {', '.join(survivors)}", file=sys.stderr)
    return 1 if survivors else 0


if __name__ == "__main__":
    sys.exit(main())
