"""Makes the virtual environments from nothing but Python: uv, then what the lock file says.

`make` runs this with the system's Python. `.venv` is the developers', with every member editable
and every tool; `.venv-demo` is what a user installs, for `make demo`, which is then started. It
uses the standard library only, and ends with one clear line where something is missing.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import os
import shutil
import subprocess
import sys
import venv
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Final

from tools import package_index, steps, uv_program
from tools.uv_program import MissingError

ROOT: Final = Path(__file__).resolve().parent.parent
ENVIRONMENT: Final = ROOT / ".venv"
DEMO: Final = ROOT / ".venv-demo"
STAMP: Final = ".synced"
UV: Final = ROOT / ".cache" / "uv" / uv_program.VERSION / "uv"
LOCK: Final = ROOT / ".cache" / "demo.lock"
SOURCES: Final = "**/src/barnabas_*/"
# What the distribution is built from, beside the sources.
BUILD_FILES: Final = ("uv.lock", "pyproject.toml", "hatch_build.py", "libs/kafka/setup.py")
MEMBERS: Final = ("libs/*/src/barnabas_*", "broker-image/src", "operator/src", "pipelines/src")
# Variables that would send uv to another project, environment or Python.
_NOT_OURS: Final = (
    "UV_PROJECT", "UV_PROJECT_ENVIRONMENT", "UV_PYTHON", "UV_TARGET", "VIRTUAL_ENV", "PYTHONPATH",
    "PYTHONHOME", "CONDA_PREFIX",
)  # fmt: skip


def main(arguments: Sequence[str]) -> int:
    """Bring an environment up to date; the exit status. `demo` ends as the demonstration."""
    action = demo if arguments == ["demo"] else develop
    with steps.one_interrupt():
        try:
            python = action()
            # From here on the signals are the business of what is started.
            steps.block()
        except KeyboardInterrupt:
            steps.say("interrupted; nothing is left behind" if action is demo else "interrupted")
            return 130
        except (MissingError, steps.StepError, OSError) as error:
            steps.say(str(error))
            return 1
    if action is demo:
        os.chdir(ROOT)
        os.execv(python, [str(python), "-m", "tools.demo"])
    return 0


# --- for developers -------------------------------------------------------------------------------


def develop() -> Path:
    """Bring `.venv` up to date, with all that the lock file has."""
    python = ensure_environment(ENVIRONMENT)
    ensure_uv(python)
    environment = {
        **uv_environment(),
        "UV_PROJECT_ENVIRONMENT": str(ENVIRONMENT),
        "UV_COMPILE_BYTECODE": "1",
    }
    command = [
        str(python.with_name("uv")), "sync", "--frozen", "--inexact", "--quiet",
        "--all-packages", "--python", str(python), "--no-python-downloads",
    ]  # fmt: skip
    steps.run("installing; compiling takes a minute", command, env=environment, cwd=ROOT)
    compile_sources(python, sorted(ROOT.glob(SOURCES)))
    (ENVIRONMENT / STAMP).touch()
    return python


def ensure_environment(directory: Path) -> Path:
    """The Python of the virtual environment, which is made where there is none that runs."""
    python = directory / "bin" / "python"
    if _runs(python):
        return python
    steps.say(f"making {directory.name} with Python {sys.version.split()[0]}")
    venv.create(directory, clear=directory.exists(), symlinks=True, with_pip=False)
    return python


def ensure_uv(python: Path) -> None:
    """Put the pinned uv into the environment, unless it is there."""
    program = python.with_name("uv")
    if uv_program.is_pinned(program):
        return
    beside = program.with_name("uv.new")
    shutil.copy2(uv_program.bring(UV), beside)
    beside.replace(program)


def compile_sources(python: Path, directories: Sequence[Path]) -> None:
    """Compile packages of ours to bytecode, as uv has done with those of others.

    Where PYTHONDONTWRITEBYTECODE is set, as in many containers, every start of a broker would
    compile them again: half a second.
    """
    command = [str(python), "-m", "compileall", "-q", "-j", "0", *map(str, directories)]
    steps.run("compiling to bytecode", command, env=os.environ, cwd=ROOT)


# --- for users ------------------------------------------------------------------------------------


def demo() -> Path:
    """Bring `.venv-demo` up to date: the distribution, and what it needs, by the lock file.

    One that is not complete is removed, also when this is interrupted.
    """
    with _alone(LOCK):
        python = DEMO / "bin" / "python"
        state = digest_of(inputs())
        with contextlib.suppress(OSError):
            if (DEMO / STAMP).read_text() == state and _runs(python):
                return python
        version = sys.version.split()[0]
        steps.say(f"installing into {DEMO.name} with Python {version}, once: about a minute")
        try:
            _install(python)
            _say_pure(python)
            (DEMO / STAMP).write_text(state)
        except BaseException:
            steps.ignore()
            shutil.rmtree(DEMO, ignore_errors=True)
            raise
        return python


def _install(python: Path) -> None:
    shutil.rmtree(DEMO, ignore_errors=True)
    uv = usable_uv()
    # Builds leave files behind when they are ended; here they go with the environment.
    place = DEMO / "building"
    environment = {**uv_environment(), "TMPDIR": str(place), "UV_COMPILE_BYTECODE": "1"}
    making: list[str | Path] = [
        uv,
        "venv",
        "--quiet",
        "--no-python-downloads",
        "--python",
        sys.executable,
        DEMO,
    ]
    steps.run("making the environment", making, env=uv_environment(), cwd=ROOT)
    place.mkdir()
    requirements = locked_requirements(uv, place, environment)
    into: list[str | Path] = [uv, "pip", "install", "--python", python]
    for title, command in (
        ("installing packages", [*into, "--require-hashes", "-r", requirements]),
        ("building Barnabas", [*into, "--no-deps", f"barnabas @ {ROOT.as_uri()}"]),
    ):
        steps.run(title, command, env=environment, cwd=ROOT)
    shutil.rmtree(place)


def locked_requirements(uv: Path, place: Path, environment: dict[str, str]) -> Path:
    """A file with what the distribution needs, in the versions of the lock file.

    Its digests hold whatever index the packages come from; `uv sync` would go to the addresses in
    the lock file.
    """
    requirements = place / "requirements.txt"
    command: list[str | Path] = [
        *(uv, "export", "--quiet", "--frozen", "--package", "barnabas", "--no-default-groups"),
        *("--no-emit-workspace", "--no-header", "--output-file", requirements),
    ]
    steps.run("reading the lock file", command, env=environment, cwd=ROOT)
    return requirements


def usable_uv() -> Path:
    """A uv that reads the lock file; brings one where there is none."""
    found = uv_program.any_usable([UV, ENVIRONMENT / "bin" / "uv"])
    return found or uv_program.bring(UV)


def uv_environment() -> dict[str, str]:
    """The variables for uv: this machine's, and pip's index and certificates."""
    inherited = {name: value for name, value in os.environ.items() if name not in _NOT_OURS}
    return inherited | package_index.for_uv()


def digest_of(paths: Iterable[Path]) -> str:
    """The state of files, and of the Python that runs this."""
    digest = hashlib.sha256(f"{sys.version} {os.path.realpath(sys.executable)}".encode())
    for path in paths:
        stat = path.stat()
        digest.update(f"{path}\0{stat.st_size}\0{stat.st_mtime_ns}\n".encode())
    return digest.hexdigest()


def inputs() -> Iterator[Path]:
    """What the distribution is built from."""
    yield from (ROOT / name for name in BUILD_FILES)
    for pattern in MEMBERS:
        for directory in sorted(ROOT.glob(pattern)):
            yield from sorted(directory.rglob("*.py"))


def _say_pure(python: Path) -> None:
    if "(compiled)" not in steps.answer([python.with_name("barnabas"), "--version"]):
        steps.say(
            "running as pure Python, slower than compiled: a C compiler or Python's headers are "
            "missing (Debian: gcc, python3-dev)"
        )


@contextlib.contextmanager
def _alone(path: Path) -> Iterator[None]:
    """Wait until no other process makes the same environment."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            steps.say("another `make demo` installs here; waiting for it")
            fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _runs(python: Path) -> bool:
    """Whether the environment's Python still works and is new enough (its base may be gone)."""
    question = "import sys; sys.exit(sys.version_info < (3, 11))"
    try:
        return subprocess.run([python, "-c", question], check=False).returncode == 0
    except OSError:
        return False


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
