"""Brings uv where there is none: by pip if this Python has it, by the standard library otherwise.

The version and the digests of its wheels are pinned here, so both ways end with the same program.
Some distributions keep pip and ensurepip in packages of their own, which only root can install.
"""

from __future__ import annotations

import hashlib
import importlib.util
import io
import os
import platform
import shutil
import sys
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from tools import package_index, steps

VERSION: Final = "0.13.8"
# The oldest that reads the lock file: `required-version` in pyproject.toml.
OLDEST: Final = (0, 9)

# System, processor and C library, and the wheel's tags and SHA-256.
WHEELS: Final[Mapping[tuple[str, str, str], tuple[str, str]]] = {
    ("Linux", "x86_64", "glibc"): (
        "manylinux_2_17_x86_64.manylinux2014_x86_64",
        "e18a57b8b352eb7c8feb317b9f6f533c8f0ad9673fd6cf34bbe3cf1a9f6a8984",
    ),
    ("Linux", "x86_64", "musl"): (
        "musllinux_1_1_x86_64",
        "29451c60f5e8b07403e0a175d5229efc36b0289b34143ff4aaa499a5dd52553a",
    ),
    ("Linux", "aarch64", "glibc"): (
        "manylinux_2_17_aarch64.manylinux2014_aarch64.musllinux_1_1_aarch64",
        "0b3e8b1a4f5e405e31e2ff33de8af4744831e9f7338539671efbd8c3c94e791d",
    ),
    ("Linux", "aarch64", "musl"): (
        "manylinux_2_17_aarch64.manylinux2014_aarch64.musllinux_1_1_aarch64",
        "0b3e8b1a4f5e405e31e2ff33de8af4744831e9f7338539671efbd8c3c94e791d",
    ),
    ("Darwin", "x86_64", ""): (
        "macosx_10_12_x86_64",
        "b7124ca1956ec2e476a1003ea5715a15f0266afaec37f4dc9c6972ba8183e6d1",
    ),
    ("Darwin", "arm64", ""): (
        "macosx_11_0_arm64",
        "62b6943c7fd64fac6854f780bea6e0359e5a5bc3241f83ee357bb38276afac49",
    ),
}


class MissingError(Exception):
    """Something this machine lacks, in words its user can act on."""


def version_of(program: str | Path) -> tuple[int, ...]:
    """The version of a uv; () if it does not run."""
    try:
        words = steps.answer([program, "--version"]).split()
    except (OSError, steps.StepError):
        return ()
    if len(words) < 2 or words[0] != "uv":
        return ()
    return tuple(int(part) for part in words[1].split(".") if part.isdigit())


def is_pinned(program: Path) -> bool:
    """Whether the program is there, runs and has the pinned version."""
    return ".".join(map(str, version_of(program))) == VERSION


def any_usable(places: list[Path]) -> Path | None:
    """A pinned uv in one of the places, or one on the path that reads the lock file."""
    for place in places:
        if is_pinned(place):
            return place
    found = shutil.which("uv")
    return Path(found) if found is not None and version_of(found) >= OLDEST else None


def bring(target: Path) -> Path:
    """Make `target` the pinned uv, unless it is; raises MissingError or StepError."""
    if is_pinned(target):
        return target
    place = target.with_name("incoming")
    shutil.rmtree(place, ignore_errors=True)
    try:
        place.mkdir(parents=True)
        program = _by_pip(place) if has_pip() else _by_hand(place)
        program.replace(target)
    finally:
        shutil.rmtree(place, ignore_errors=True)
    if not is_pinned(target):
        raise MissingError(f"uv {VERSION} does not run on this machine: {target}")
    return target


def has_pip() -> bool:
    """Whether this Python has pip."""
    return importlib.util.find_spec("pip") is not None


def wheel(system: str, processor: str, library: str) -> tuple[str, str]:
    """The file name and the SHA-256 of the wheel for a machine; raises MissingError."""
    entry = WHEELS.get((system, processor, library if system == "Linux" else ""))
    if entry is None:
        raise MissingError(
            f"no uv is known for {system} on {processor}; install uv {VERSION} and put it on PATH"
        )
    return f"uv-{VERSION}-py3-none-{entry[0]}.whl", entry[1]


def _by_pip(place: Path) -> Path:
    requirements = place / "requirements.txt"
    digests = sorted({digest for _, digest in WHEELS.values()})
    lines = [f"uv=={VERSION}", *(f"--hash=sha256:{digest}" for digest in digests)]
    requirements.write_text(" \\\n    ".join(lines) + "\n", encoding="utf-8")
    command: list[str | Path] = [
        *(sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--no-input"),
        *("--disable-pip-version-check", "--only-binary", ":all:", "--require-hashes"),
        *("--target", str(place / "packages"), "--requirement", str(requirements)),
    ]
    # What pip unpacks goes with the rest if this is interrupted.
    environment = {**os.environ, "TMPDIR": str(place)}
    steps.run(f"installing uv {VERSION} by pip", command, env=environment, cwd=place)
    return place / "packages" / "bin" / "uv"


def _by_hand(place: Path) -> Path:
    library = "glibc" if platform.libc_ver()[0] == "glibc" else "musl"
    name, digest = wheel(platform.system(), platform.machine(), library)
    index = package_index.configured()
    steps.say(f"downloading uv {VERSION} (17 MB)")
    try:
        address = index.files("uv").get(name)
        if address is None:
            raise MissingError(f"the package index has no {name}; install uv and put it on PATH")
        content = index.download(address)
    except package_index.UnavailableError as error:
        raise MissingError(f"uv {VERSION} cannot be downloaded: {error}") from None
    found = hashlib.sha256(content).hexdigest()
    if found != digest:
        raise MissingError(f"{name} has the SHA-256 {found}, not {digest}; it is not used")
    program = place / "uv"
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        program.write_bytes(archive.read(f"uv-{VERSION}.data/scripts/uv"))
    program.chmod(0o755)
    return program
