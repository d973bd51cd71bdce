"""Makes the virtual environment from nothing but Python: venv, a pinned uv, then the lock file.

`make` runs this with the system's Python whenever the lock file or a member's build changed. It
uses the standard library only, and ends with one clear line where something is missing.
"""

from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
import sys
import venv
from collections.abc import Sequence
from pathlib import Path

UV_VERSION = "0.13.8"
ROOT = Path(__file__).resolve().parent.parent
ENVIRONMENT = ROOT / ".venv"
STAMP = ENVIRONMENT / ".synced"
SOURCES = "**/src/barnabas_*/"


class MissingError(Exception):
    """Something this machine lacks, in words its user can act on."""


def main() -> int:
    """Bring the environment up to date; returns the exit status."""
    try:
        python = ensure_environment(ENVIRONMENT)
        ensure_uv(python)
        synchronise(python)
        compile_sources(python, sorted(ROOT.glob(SOURCES)))
    except MissingError as missing:
        sys.stderr.write(f"barnabas: {missing}\n")
        return 1
    except subprocess.CalledProcessError as failed:
        sys.stderr.write(f"barnabas: failed with status {failed.returncode}: {failed.cmd}\n")
        return 1
    STAMP.touch()
    return 0


def ensure_environment(directory: Path) -> Path:
    """The Python of the virtual environment, which is made where there is none that runs."""
    python = directory / "bin" / "python"
    if python.exists() and _runs(python):
        return python
    version = sys.version.split()[0]
    sys.stderr.write(
        f"barnabas: making {directory.name} with Python {version}; compiling takes a minute\n"
    )
    venv.create(directory, clear=directory.exists(), symlinks=True, with_pip=False)
    return python


def ensure_uv(python: Path) -> None:
    """Install the pinned uv into the environment, unless it is there."""
    asked = (
        subprocess.run(
            [python.with_name("uv"), "--version"], capture_output=True, text=True, check=False
        )
        if python.with_name("uv").exists()
        else None
    )
    if asked is not None and asked.stdout.split()[1:2] == [UV_VERSION]:
        return
    if not _has_pip(python):
        if importlib.util.find_spec("ensurepip") is None:
            _install_venv_package()
        subprocess.run(
            [python, "-m", "ensurepip", "--upgrade"], check=True, stdout=subprocess.DEVNULL
        )
    command = [str(python), "-m", "pip", "install", "--quiet", f"uv=={UV_VERSION}"]
    subprocess.run(command, check=True, stdout=sys.stderr)


def synchronise(python: Path) -> None:
    """Install what the lock file says; what else is in the environment (uv itself) stays."""
    environment = dict(os.environ, UV_PROJECT_ENVIRONMENT=str(ENVIRONMENT), UV_COMPILE_BYTECODE="1")
    command = [
        str(python.with_name("uv")), "sync", "--frozen", "--inexact", "--quiet",
        "--all-packages", "--python", str(python), "--no-python-downloads",
    ]  # fmt: skip
    subprocess.run(command, check=True, cwd=ROOT, env=environment, stdout=sys.stderr)


def compile_sources(python: Path, directories: Sequence[Path]) -> None:
    """Compile packages of ours to bytecode, as uv has done with those of others.

    Where PYTHONDONTWRITEBYTECODE is set, as in many containers, every start of a broker would
    compile them again: half a second.
    """
    command = [str(python), "-m", "compileall", "-q", "-j", "0", *map(str, directories)]
    subprocess.run(command, check=True, stdout=sys.stderr)


def _runs(python: Path) -> bool:
    """Whether the environment's Python still works and is new enough (its base may be gone)."""
    question = "import sys; sys.exit(sys.version_info < (3, 11))"
    try:
        return subprocess.run([python, "-c", question], check=False).returncode == 0
    except OSError:
        return False


def _has_pip(python: Path) -> bool:
    found = subprocess.run([python, "-m", "pip", "--version"], capture_output=True, check=False)
    return found.returncode == 0


def _install_venv_package() -> None:
    """Debian keeps ensurepip in a package of its own."""
    package = f"python{sys.version_info.major}.{sys.version_info.minor}-venv"
    if os.geteuid() != 0 or shutil.which("apt-get") is None:
        raise MissingError(f"this Python has no ensurepip; install it (Debian: {package})")
    subprocess.run(["apt-get", "update", "-qq"], check=True, stdout=sys.stderr)
    command = ["apt-get", "install", "-y", "-qq", "--no-install-recommends", package]
    quiet = dict(os.environ, DEBIAN_FRONTEND="noninteractive")
    subprocess.run(command, check=True, env=quiet, stdout=sys.stderr)


if __name__ == "__main__":
    sys.exit(main())
