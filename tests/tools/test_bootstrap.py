"""The environments are made once, found again, and made anew when they no longer run."""

import hashlib
import importlib.util
import sys
from pathlib import Path

import pytest

from tools import bootstrap, steps, uv_program


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
    uv.write_text(f"#!/bin/sh\necho 'uv {uv_program.VERSION} (somewhere)'\n")
    uv.chmod(0o755)
    before = hashlib.sha256(uv.read_bytes()).digest()
    bootstrap.ensure_uv(tmp_path / "python")
    assert hashlib.sha256(uv.read_bytes()).digest() == before


def test_sources_are_compiled_when_bytecode_writing_is_off(
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


def test_a_missing_program_is_one_line(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """No traceback for what the user can mend."""

    def no_uv(_directory: Path) -> Path:
        raise uv_program.MissingError("uv cannot be downloaded: no route")

    monkeypatch.setattr(bootstrap, "ensure_environment", no_uv)
    assert bootstrap.main([]) == 1
    assert capsys.readouterr().err == "barnabas: uv cannot be downloaded: no route\n"


def test_a_checkout_that_is_not_the_users_is_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """One that root made, for example."""
    (tmp_path / "file").touch()
    monkeypatch.setattr(bootstrap, "LOCK", tmp_path / "file" / "demo.lock")
    assert bootstrap.main(["demo"]) == 1
    (line,) = capsys.readouterr().err.splitlines()
    assert str(tmp_path / "file") in line


def test_a_demo_environment_that_fails_is_removed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Half an environment would be taken for a whole one, or for the user's own."""
    demo = tmp_path / ".venv-demo"

    def fails(python: Path) -> None:
        python.parent.mkdir(parents=True)
        raise steps.StepError("installing packages failed with status 2:\nno space left on device")

    monkeypatch.setattr(bootstrap, "DEMO", demo)
    monkeypatch.setattr(bootstrap, "LOCK", tmp_path / "cache" / "demo.lock")
    monkeypatch.setattr(bootstrap, "_install", fails)
    assert bootstrap.main(["demo"]) == 1
    assert not demo.exists()
    assert "no space left on device" in capsys.readouterr().err


def test_the_demo_environment_is_made_again_after_a_change(tmp_path: Path) -> None:
    """Its stamp is the state of everything that the distribution is built from."""
    inputs = {path.relative_to(bootstrap.ROOT).as_posix() for path in bootstrap.inputs()}
    assert inputs >= {
        "uv.lock",
        "hatch_build.py",
        "libs/kafka/src/barnabas_kafka/compiled.py",
        "libs/zookeeper/src/barnabas_zookeeper/server.py",
        "broker-image/src/barnabas_broker/__init__.py",
        "operator/src/barnabas_operator/local/up.py",
        "pipelines/src/barnabas_pipelines/command.py",
    }
    source = tmp_path / "module.py"
    source.write_text("x = 1\n")
    before = bootstrap.digest_of([source])
    assert bootstrap.digest_of([source]) == before
    source.write_text("x = 12\n")
    assert bootstrap.digest_of([source]) != before


def test_uv_is_not_led_astray(monkeypatch: pytest.MonkeyPatch) -> None:
    """Variables for another project or environment do not reach it; pip's index does."""
    monkeypatch.setenv("UV_PROJECT_ENVIRONMENT", "/somewhere/else")
    monkeypatch.setenv("VIRTUAL_ENV", "/somewhere/else")
    monkeypatch.setenv("PIP_INDEX_URL", "https://mirror.invalid/simple")
    for name in ("UV_DEFAULT_INDEX", "UV_INDEX_URL"):
        monkeypatch.delenv(name, raising=False)
    environment = bootstrap.uv_environment()
    assert "/somewhere/else" not in environment.values()
    assert environment["UV_DEFAULT_INDEX"] == "https://mirror.invalid/simple"
