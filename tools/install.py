"""`make install` and `make uninstall`: the command `barnabas` on the path, by `uv tool`.

The distribution gets an environment of its own, with what it needs in the versions of the lock
file, and its commands are linked under ~/.local/bin, for root under /usr/local/bin, or under
PREFIX/bin. Standard library only, as `tools.bootstrap`.
"""

from __future__ import annotations

import os
import shlex
import shutil
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tools import bootstrap, steps
from tools.uv_program import MissingError

WORKSPACE: Final = bootstrap.ROOT / ".cache" / "installing"


@dataclass(frozen=True, slots=True)
class Place:
    """Where commands are linked; and environments are, if not where uv has them by itself."""

    commands: Path
    environments: Path | None = None

    def variables(self) -> dict[str, str]:
        """What tells uv so."""
        found = {"UV_TOOL_BIN_DIR": str(self.commands)}
        if self.environments is not None:
            found["UV_TOOL_DIR"] = str(self.environments)
        return found


def choose(prefix: str, *, root: bool, variables: Mapping[str, str]) -> Place:
    """The place for a prefix; without one, the user's own, or that of all users for root."""
    if prefix or root:
        base = Path(prefix or "/usr/local").expanduser().absolute()
        return Place(base / "bin", base / "lib" / "barnabas")
    named = variables.get("UV_TOOL_BIN_DIR") or variables.get("XDG_BIN_HOME")
    home = Path(variables.get("HOME") or Path.home())
    return Place(Path(named) if named else home / ".local" / "bin")


def advice(place: Place, variables: Mapping[str, str]) -> list[str]:
    """What to do so that `barnabas` is this one; nothing where it is."""
    command = place.commands / "barnabas"
    searched = variables.get("PATH", "")
    found = shutil.which("barnabas", path=searched)
    if found is not None and Path(found).resolve() == command.resolve():
        return []
    if str(place.commands) in searched.split(os.pathsep):
        return [f"another one comes before it on your PATH: {found}"]
    export = f'export PATH={shlex.quote(str(place.commands))}:"$PATH"'
    return [
        f"{place.commands} is not on your PATH; for this shell:",
        f"  {export}",
        f"and for those to come, add that line to {_profile(variables)}",
    ]


def _profile(variables: Mapping[str, str]) -> str:
    shell = Path(variables.get("SHELL", "")).name
    return {"bash": "~/.bashrc", "zsh": "~/.zshrc"}.get(shell, "~/.profile")


def install(place: Place) -> None:
    """Install the checkout, or bring what is installed to its state."""
    uv = bootstrap.usable_uv()
    shutil.rmtree(WORKSPACE, ignore_errors=True)
    WORKSPACE.mkdir(parents=True)
    try:
        environment = {
            **bootstrap.uv_environment(),
            **place.variables(),
            "TMPDIR": str(WORKSPACE),
            "UV_COMPILE_BYTECODE": "1",
        }
        locked = bootstrap.locked_requirements(uv, WORKSPACE, environment)
        command: list[str | Path] = [
            *(uv, "tool", "install", "--no-python-downloads", "--python", sys.executable),
            *("--reinstall-package", "barnabas", "--constraints", locked, bootstrap.ROOT),
        ]
        steps.run("installing; about a minute", command, env=environment, cwd=bootstrap.ROOT)
    finally:
        shutil.rmtree(WORKSPACE, ignore_errors=True)
    program = place.commands / "barnabas"
    version = steps.answer([program, "--version"]).strip()
    steps.say(f"{version} is installed: {program}")
    for line in advice(place, os.environ):
        sys.stderr.write(f"{line}\n")


def uninstall(place: Place) -> None:
    """Remove the commands and their environment; clusters and their data stay."""
    environment = {**bootstrap.uv_environment(), **place.variables()}
    command: list[str | Path] = [bootstrap.usable_uv(), "tool", "uninstall", "barnabas"]
    try:
        steps.run("removing", command, env=environment, cwd=bootstrap.ROOT)
    except steps.StepError as error:
        if "is not installed" not in str(error):
            raise
        steps.say(f"there is no barnabas of `make install` in {place.commands}")
    else:
        if place.environments is not None:
            # What uv leaves of its own.
            shutil.rmtree(place.environments, ignore_errors=True)
        steps.say(f"removed; data of local clusters stay in {_state(os.environ)}")


def _state(variables: Mapping[str, str]) -> Path:
    home = Path(variables.get("HOME") or Path.home())
    return Path(variables.get("XDG_STATE_HOME") or home / ".local" / "state", "barnabas")


def main(arguments: Sequence[str]) -> int:
    """`install` or `uninstall`, and a prefix; returns the exit status."""
    verb, prefix = arguments
    place = choose(prefix, root=os.geteuid() == 0, variables=os.environ)
    with steps.one_interrupt():
        try:
            (install if verb == "install" else uninstall)(place)
        except KeyboardInterrupt:
            steps.say(f"interrupted; `make {verb}` again completes it, `make uninstall` removes it")
            return 130
        except (MissingError, steps.StepError, OSError) as error:
            steps.say(str(error))
            return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
