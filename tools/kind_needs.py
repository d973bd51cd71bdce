"""Brings what kind clusters need where that can be done: Docker and kind from Debian, as root.

kubectl and helm are in no release of Debian in a version that fits; docs/kubernetes.md says where
they are from.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Sequence
from typing import Final

from tools.needs import can_install, install

PACKAGES: Final = {"docker": ("docker.io", "iptables"), "kind": ("kind",)}
STARTS: Final = (("systemctl", "start", "docker"), ("service", "docker", "start"))


def packages_of(programs: Sequence[str]) -> list[str]:
    """Debian's packages of those programs, as far as there are any."""
    return [package for program in programs for package in PACKAGES.get(program, ())]


def install_missing() -> None:
    """Install and start what is missing, if this process may; says nothing of what stays so."""
    lacking = [program for program in PACKAGES if shutil.which(program) is None]
    if lacking and can_install():
        wanted = packages_of(lacking)
        sys.stderr.write(f"barnabas: installing {' '.join(wanted)}\n")
        install(wanted)
    if can_install() and shutil.which("docker") and not _docker_answers():
        for start in STARTS:
            if shutil.which(start[0]):
                subprocess.run(start, check=False, stdout=sys.stderr)
            if _docker_answers():
                return


def _docker_answers() -> bool:
    return subprocess.run(["docker", "info"], capture_output=True, check=False).returncode == 0
