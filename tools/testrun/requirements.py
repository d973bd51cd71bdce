"""What suites need that is missing on this machine, and the command that installs it."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from typing import Final

from e2e.cluster import CannotRunKindError, check_kind_can_run
from tools import kind_needs, needs

KIND: Final = ("docker", "kind", "helm", "kubectl")
ROOT: Final = "root"
_APT: Final = "apt-get install"


@dataclass(frozen=True, slots=True)
class Lack:
    """A program that is missing, and what brings it."""

    program: str
    remedy: str

    def __str__(self) -> str:
        return f"{self.program} ({self.remedy})"


def missing(programs: Iterable[str]) -> dict[str, Lack]:
    """Those of the programs that this machine lacks, by name."""
    wanted = tuple(dict.fromkeys(programs))
    lacking = _lacking(wanted)
    found = {need.program: Lack(need.program, f"{_APT} {need.package}") for need in lacking}
    if ROOT in wanted and os.geteuid() != 0:
        found[ROOT] = Lack(ROOT, "the tests mount file systems: sudo make test")
    return found | _missing_for_kind([program for program in wanted if program in KIND])


def _lacking(wanted: Collection[str]) -> list[needs.Need]:
    return needs.missing(tuple(need for need in needs.NEEDS if need.program in wanted))


def _missing_for_kind(wanted: list[str]) -> dict[str, Lack]:
    found = {program: _lack_for_kind(program) for program in wanted if not shutil.which(program)}
    if wanted and not found:
        try:
            check_kind_can_run()
        except CannotRunKindError as error:
            found["docker"] = Lack("docker", str(error).splitlines()[0])
    return found


def _lack_for_kind(program: str) -> Lack:
    packages = " ".join(kind_needs.packages_of([program]))
    return Lack(program, f"{_APT} {packages}" if packages else "see docs/kubernetes.md")


def install(programs: Iterable[str]) -> None:
    """Install what packages of Debian bring, if this process may; the rest stays missing."""
    if not needs.can_install():
        return
    wanted = set(programs)
    packages = [need.package for need in _lacking(wanted)]
    if packages:
        sys.stderr.write(f"barnabas: installing {' '.join(packages)}\n")
        needs.install(packages)
    if wanted & set(KIND):
        kind_needs.install_missing()
