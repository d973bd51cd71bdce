"""The environment is made once, found again, and made anew when it no longer runs."""

import importlib.util
import sys
from pathlib import Path

import pytest

from tools import bootstrap


def test_the_environment_is_made_and_found_again(tmp_path: Path) -> None:
    """The second time nothing is made; a broken environment is replaced."""
    environment = tmp_path / "environment"
    python = bootstrap.ensure_environment(environment)
    made = python.lstat().st_mtime_ns
    assert bootstrap.ensure_environment(environment) == python
    assert python.lstat().st_mtime_ns == made
    python.unlink()
    python.symlink_to(tmp_path / "gone")
    assert bootstrap.ensure_environment(environment) == python
    assert python.exists()


def test_the_pinned_uv_is_not_installed_twice(tmp_path: Path) -> None:
    """An environment that has it is left alone, even where it has nothing else."""
    uv = tmp_path / "uv"
    uv.write_text(f"#!/bin/sh\necho 'uv {bootstrap.UV_VERSION} (somewhere)'\n")
    uv.chmod(0o755)
    bootstrap.ensure_uv(tmp_path / "python")


def test_sources_are_compiled_where_nobody_writes_bytecode(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A start of a broker need not compile its modules, whatever the container sets."""
    monkeypatch.setenv("PYTHONDONTWRITEBYTECODE", "1")
    module = tmp_path / "package" / "module.py"
    module.parent.mkdir()
    module.write_text("x = 1\n")
    bootstrap.compile_sources(Path(sys.executable), [tmp_path])
    assert Path(importlib.util.cache_from_source(str(module))).exists()


def test_all_members_are_compiled() -> None:
    """The packages of a broker and of what it is operated with."""
    names = {path.name for path in bootstrap.ROOT.glob(bootstrap.SOURCES)}
    assert {"barnabas_broker", "barnabas_kafka", "barnabas_zookeeper", "barnabas_operator"} <= names


def test_what_is_missing_is_one_line(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """No traceback for what the user can mend."""

    def lacks_ensurepip(_directory: Path) -> Path:
        raise bootstrap.MissingError("this Python has no ensurepip")

    monkeypatch.setattr(bootstrap, "ensure_environment", lacks_ensurepip)
    assert bootstrap.main() == 1
    assert capsys.readouterr().err == "barnabas: this Python has no ensurepip\n"
