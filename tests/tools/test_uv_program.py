"""uv is brought to a machine that has neither pip nor uv, and only the uv that was meant."""

from __future__ import annotations

import hashlib
import io
import json
import platform
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.tools.test_package_index import JSON, served
from tools import uv_program

SAYS_ITS_VERSION = f"#!/bin/sh\necho 'uv {uv_program.VERSION} (a test)'\n".encode()


def wheel_of(program: bytes) -> bytes:
    """A wheel with a program."""
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w") as archive:
        archive.writestr(f"uv-{uv_program.VERSION}.data/scripts/uv", program)
    return content.getvalue()


@pytest.fixture
def index(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """A package index with a uv for this machine, which has no pip; the digest of its wheel."""
    library = "glibc" if platform.libc_ver()[0] == "glibc" else "musl"
    name, _ = uv_program.wheel(platform.system(), platform.machine(), library)
    content = wheel_of(SAYS_ITS_VERSION)
    page = json.dumps({"files": [{"url": f"/files/{name}"}]}).encode()
    monkeypatch.setattr(uv_program, "has_pip", lambda: False)
    with served({"/uv/": (JSON, page), f"/files/{name}": ("application/zip", content)}) as (at, _):
        monkeypatch.setenv("UV_DEFAULT_INDEX", at)
        yield hashlib.sha256(content).hexdigest()


def test_without_pip_it_is_downloaded(
    index: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Checked by its digest, made executable, and not downloaded a second time."""
    wheels = {machine: (tags, index) for machine, (tags, _) in uv_program.WHEELS.items()}
    monkeypatch.setattr(uv_program, "WHEELS", wheels)
    target = tmp_path / "cache" / "uv"
    assert uv_program.bring(target) == target
    assert uv_program.is_pinned(target)
    assert list(target.parent.iterdir()) == [target]
    monkeypatch.setenv("UV_DEFAULT_INDEX", "http://127.0.0.1:9")
    assert uv_program.bring(target) == target


@pytest.mark.usefixtures("index")
def test_another_file_is_refused(tmp_path: Path) -> None:
    """Whatever the index says of it, and nothing of it stays."""
    target = tmp_path / "cache" / "uv"
    with pytest.raises(uv_program.MissingError, match=r"has the SHA-256 .*; it is not used"):
        uv_program.bring(target)
    assert not list(target.parent.iterdir())


def test_an_index_that_does_not_answer(
    index: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One line, with the address."""
    assert index
    monkeypatch.setenv("UV_DEFAULT_INDEX", "http://127.0.0.1:9/simple")
    with pytest.raises(uv_program.MissingError, match=r"127\.0\.0\.1:9/simple/uv/: .*refused"):
        uv_program.bring(tmp_path / "uv")


def test_a_uv_on_the_path_will_do_if_it_reads_the_lock_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A user's own is not installed beside; one that is too old, or broken, is passed over."""
    program = tmp_path / "uv"
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    for script, usable in (
        ("echo 'uv 0.9.2 (somewhere)'", True),
        ("echo 'uv 1.0.0'", True),
        ("echo 'uv 0.8.24'", False),
        ("echo 'uv 0.13.8'; exit 1", False),
        ("echo something else", False),
    ):
        program.write_text(f"#!/bin/sh\n{script}\n")
        program.chmod(0o755)
        assert uv_program.any_usable([]) == (program if usable else None), script
    pinned = tmp_path / "pinned"
    pinned.write_bytes(SAYS_ITS_VERSION)
    pinned.chmod(0o755)
    assert uv_program.any_usable([tmp_path / "absent", pinned]) == pinned


def test_a_missing_wheel_is_reported_with_its_remedy() -> None:
    """There is no uv for every processor."""
    with pytest.raises(uv_program.MissingError, match="put it on PATH"):
        uv_program.wheel("Linux", "sparc64", "glibc")
    assert "musllinux" in uv_program.wheel("Linux", "x86_64", "musl")[0]
    assert "macosx" in uv_program.wheel("Darwin", "arm64", "musl")[0]
