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
    reported = subprocess.run(
        check, cwd=tmp_path, capture_output=True, text=True, check=True
    ).stdout
    assert reported == "barnabas-1.tar.gz: OK\n"
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


DIGEST = f"sha256:{'ab' * 32}"
OTHER = f"sha256:{'cd' * 32}"


@pytest.mark.parametrize(
    ("base", "digests", "expected"),
    [
        ("debian:13-slim", [f"other@{OTHER}", f"debian@{DIGEST}"], f"debian:13-slim@{DIGEST}"),
        ("r.example:5000/debian", [f"r.example:5000/debian@{DIGEST}"],
         f"r.example:5000/debian@{DIGEST}"),
        (f"debian:13-slim@{DIGEST}", [], f"debian:13-slim@{DIGEST}"),
        ("debian:13-slim", [], ""),
        ("debian:13-slim", [f"mirror.example/debian@{DIGEST}"], ""),
    ],
)  # fmt: skip
def test_base_is_pinned_by_the_digest_of_its_own_registry(
    base: str, digests: list[str], expected: str
) -> None:
    """That of another repository may name an image that nobody else can get."""
    assert release.pinned(base, digests) == expected


def test_pushed_images_are_those_of_the_release() -> None:
    """For all platforms, on the base by digest, with what says what is in them."""
    made = Release("1.2.3", "0" * 40, True, "1700000000", base=f"debian:13-slim@{DIGEST}")
    plan = release.bake(made, {"broker": "r.example/barnabas-broker:1.2.3"})
    assert plan["group"]["default"]["targets"] == ["broker"]
    target = plan["target"]["broker"]
    assert target["tags"] == ["r.example/barnabas-broker:1.2.3"]
    assert target["target"] == "broker"
    assert target["platforms"] == ["linux/amd64", "linux/arm64"]
    assert target["args"]["BASE"] == made.base
    assert "type=sbom" in target["attest"]
    assert target["labels"] == {
        "org.opencontainers.image.version": "1.2.3",
        "org.opencontainers.image.revision": "0" * 40,
        "org.opencontainers.image.created": "2023-11-14T22:13:20Z",
        "org.opencontainers.image.base.name": "debian:13-slim",
        "org.opencontainers.image.base.digest": DIGEST,
    }


def test_images_on_an_unpinned_base_are_named_as_missing(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """They are for trying: there is nothing by which they are pushed."""
    docker = tmp_path / "docker"
    docker.write_text(
        '#!/bin/sh\ncase "$*" in *RepoDigests*) echo "[]";; *.Id*) echo sha256:1;;'
        " *) echo '[{\"Size\": 1}]';; esac\n"
    )
    docker.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    monkeypatch.delenv("BARNABAS_BASE_IMAGE", raising=False)
    monkeypatch.setattr(release, "DIST", tmp_path)
    made = Release("1", "0" * 40, True, "0")
    release.container_images(made)
    assert len(made.images) == 4
    (missing,) = made.missing
    assert missing.startswith(
        "images on a base by digest: debian:trixie-slim has none here; docker"
    )
    assert not (tmp_path / release.BAKE_FILE).exists()
