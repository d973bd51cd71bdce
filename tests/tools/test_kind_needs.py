"""What kind clusters need, and what is said where it is not there."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from tools import kind_needs

ROOT = Path(__file__).resolve().parents[2]


def test_only_what_debian_has_is_installed() -> None:
    """Helm and kubectl are nobody's package here."""
    assert kind_needs.packages_of(["docker", "helm"]) == ["docker.io", "iptables"]


def test_missing_tools_are_named_in_one_line(tmp_path: Path) -> None:
    """Where nothing is on the path and nothing can be installed, the line names all four."""
    done = subprocess.run(
        [sys.executable, "-m", "tools.kind_needs"],
        cwd=ROOT,
        env={**os.environ, "PATH": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1
    assert "docker, kind, helm, kubectl" in done.stderr
    assert done.stderr.count("\n") == 1
