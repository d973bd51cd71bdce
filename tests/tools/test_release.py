"""A release names all that it consists of, and every entry of the changelog finds its place."""

from __future__ import annotations

import json
import re
import subprocess
import tomllib
from pathlib import Path
from typing import Any

import pytest

from tools import release
from tools.release import Release, ReleaseError

PYPROJECT: dict[str, Any] = tomllib.loads((release.ROOT / "pyproject.toml").read_text())


def test_every_file_is_named_with_its_digest(tmp_path: Path) -> None:
    """As `sha256sum --check` reads it, and with what could not be made."""
    (tmp_path / "barnabas-1.tar.gz").write_bytes(b"sources")
    (tmp_path / ".gitignore").write_text("*")
    made = Release("1", "0" * 40, True, "0", missing=["chart: helm is not installed"])
    release.finish(made, tmp_path)
    check = ["sha256sum", "--check", "SHA256SUMS"]
    told = subprocess.run(check, cwd=tmp_path, capture_output=True, text=True, check=True).stdout
    assert told == "barnabas-1.tar.gz: OK\n"
    stored = json.loads((tmp_path / "release.json").read_text())
    assert stored["files"]["barnabas-1.tar.gz"]["size"] == 7
    assert stored["missing"] == made.missing


def test_a_failed_step_shows_the_programs_output() -> None:
    """The command, its status and its words."""
    with pytest.raises(ReleaseError, match=r"sh -c .*: status 3\nlost"):
        release.run("sh", "-c", "echo lost; exit 3")


def test_every_entry_of_the_changelog_has_a_kind() -> None:
    """One that towncrier does not know would be left out of the release."""
    known = "|".join(each["directory"] for each in PYPROJECT["tool"]["towncrier"]["type"])
    name = re.compile(rf"[a-z0-9-]+\.({known})\.md")
    names = [path.name for path in (release.ROOT / "changelog.d").iterdir()]
    assert [each for each in names if not name.fullmatch(each)] == []
    start = PYPROJECT["tool"]["towncrier"]["start_string"]
    assert start in (release.ROOT / "CHANGELOG.md").read_text()
