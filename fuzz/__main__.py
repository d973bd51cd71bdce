"""Fuzzes targets one after another: `python -m fuzz [TARGET ...] --seconds N`.

Every target starts from its kept inputs and its seeds and runs in a process of its own under
atheris. What breaks a promise, takes too long or too much memory is written to `fuzz/findings`,
from where the unit tests replay it; status 1 then. With `--keep` the corpus becomes the smallest
of the inputs that reached something new, beside those that did before.
"""

from __future__ import annotations

import argparse
import hashlib
import importlib.util
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterable
from pathlib import Path
from typing import Final

from fuzz.oracle import INPUT_BYTES_MAX
from fuzz.targets import CORPUS, FINDINGS, NAMES, target

#: What one input may take: far above what any does, far below what would hurt.
SECONDS_PER_INPUT: Final = 10
MEMORY_MIB: Final = 1024
#: What is kept of one target, smallest inputs first.
KEPT_BYTES: Final = 24_000
KEPT_FILES: Final = 150


def main() -> int:
    """Run the targets that are named; returns the exit status."""
    parser = argparse.ArgumentParser(prog="python -m fuzz", description=__doc__)
    parser.add_argument("targets", nargs="*", choices=[[], *NAMES], help="all where none is named")
    parser.add_argument("--seconds", type=int, default=10, help="for each target")
    parser.add_argument("--runs", type=int, default=-1, help="end after so many inputs")
    parser.add_argument("--seed", type=int, default=0, help="libFuzzer's; 0 draws one")
    parser.add_argument("--keep", action="store_true", help="replace the kept corpus")
    asked = parser.parse_args()
    if importlib.util.find_spec("atheris") is None:
        print(
            "fuzz: atheris has no wheel for this Python or machine (it has for Linux on x86-64, "
            "Python 3.11 to 3.14): nothing was fuzzed",
            file=sys.stderr,
        )
        return 2
    broken = [name for name in asked.targets or NAMES if not fuzz(name, asked)]
    if broken:
        print(f"fuzz: broken promises in {', '.join(broken)}; see {FINDINGS}", file=sys.stderr)
    return 1 if broken else 0


def fuzz(name: str, asked: argparse.Namespace) -> bool:
    """Fuzz one target; returns whether it kept its promises."""
    with tempfile.TemporaryDirectory(prefix=f"fuzz-{name}-") as directory:
        grown, seeds = Path(directory, "grown"), Path(directory, "seeds")
        grown.mkdir()
        seeds.mkdir()
        write_inputs(seeds, target(name).seeds())
        findings = FINDINGS / name
        findings.mkdir(parents=True, exist_ok=True)
        flags = [
            f"-max_total_time={asked.seconds}",
            f"-artifact_prefix={findings}/",
            f"-runs={asked.runs}",
            f"-seed={asked.seed}",
            *_flags(),
        ]
        corpora = [grown, *(path for path in (CORPUS / name, seeds) if path.is_dir())]
        kept = _guided(name, flags, corpora)
        if asked.keep and kept:
            keep(name, corpora)
        if not any(findings.iterdir()):
            findings.rmdir()
    return kept


def _flags() -> list[str]:
    return [
        f"-max_len={INPUT_BYTES_MAX}",
        f"-timeout={SECONDS_PER_INPUT}",
        f"-rss_limit_mb={MEMORY_MIB}",
        "-print_final_stats=1",
        "-verbosity=0",
    ]


def _guided(name: str, flags: list[str], corpora: list[Path]) -> bool:
    command = [sys.executable, "-m", "fuzz.guided", name, *flags, *map(str, corpora)]
    print(f"fuzz: {name}", flush=True)
    ran = subprocess.run(command, check=False, capture_output=True, text=True, errors="replace")
    reported = (ran.stderr + ran.stdout).splitlines()
    if ran.returncode:
        print("\n".join(reported[-60:]))
    else:
        print("\n".join(line for line in reported if line.startswith("stat::number_of_executed")))
    return ran.returncode == 0


def write_inputs(directory: Path, inputs: Iterable[bytes]) -> None:
    """Write each input to a file that is named by its content."""
    for each in inputs:
        name = hashlib.sha1(each, usedforsecurity=False).hexdigest()[:16]
        (directory / name).write_bytes(each)


def keep(name: str, corpora: Iterable[Path]) -> None:
    """Make what reached something new the kept corpus of a target, as far as it is small."""
    directory = CORPUS / name
    found = {path.read_bytes() for corpus in corpora for path in corpus.iterdir()}
    found -= set(target(name).seeds())
    if directory.is_dir():
        shutil.rmtree(directory)
    directory.mkdir(parents=True)
    room = KEPT_BYTES
    for each in sorted(found, key=lambda each: (len(each), each))[:KEPT_FILES]:
        room -= len(each)
        if room < 0:
            break
        write_inputs(directory, [each])


if __name__ == "__main__":
    sys.exit(main())
