"""Rendered manifests: what makes them stale, with and without Helm."""

from __future__ import annotations

from pathlib import Path

import pytest

from tools.render_manifests import chart_digest, is_intact, main, sealed


def test_files_are_up_to_date(capsys: pytest.CaptureFixture[str]) -> None:
    """The manifests in the tree are of the chart in the tree."""
    assert main(["--check"]) == 0, capsys.readouterr().out


def test_without_helm_the_digests_tell(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The check needs no Helm."""
    monkeypatch.setenv("PATH", str(tmp_path))
    assert main(["--check"]) == 0


def test_an_edited_file_is_not_intact() -> None:
    """Neither with another body nor for another chart."""
    text = sealed("kind: A\n", "chart")
    assert is_intact(text, "chart")
    assert not is_intact(text.replace("A", "B"), "chart")
    assert not is_intact(text, "another chart")
    assert not is_intact("", "chart")


def test_digest_follows_names_and_contents(tmp_path: Path) -> None:
    """A renamed file is another chart."""
    (tmp_path / "a").write_text("x")
    first = chart_digest(tmp_path)
    assert chart_digest(tmp_path) == first
    (tmp_path / "a").rename(tmp_path / "b")
    assert chart_digest(tmp_path) != first
