"""The README on clean machines, as printed, by a user without root, compiler, pip or ensurepip."""

from __future__ import annotations

import pytest

from e2e.commands import run
from e2e.newcomer import bases, container

# On the first base those whose programs are quick to install: all take a quarter of an hour.
QUICK = ("python.md", "kcat.md")
PAGES = tuple(container.PACKAGES)
# Of what a demonstration installs: a broker, the commands and the local runtime, for users only.
DEMO_MB = 130


def _megabytes(made: str, directory: str) -> int:
    """How much a directory of the newcomer's clone holds."""
    command = ("du", "--summarize", "--apparent-size", "--block-size=MB", directory)
    return int(run("docker", "exec", made, *command).split(b"MB")[0])


@pytest.mark.parametrize(
    "base",
    [
        each if each == container.BASE else pytest.param(each, marks=pytest.mark.soak)
        for each in bases.BASES
    ],
)
def test_every_command_runs_as_printed(base: str) -> None:
    """What the demonstration and the quickstarts promise is there; nothing of either is left."""
    with container.machine(base) as made:
        reported = container.play(made, "README.md")
        assert "every byte is the same" in reported
        assert "The cluster is stopped and its files are deleted." in reported
        assert "running as pure Python, slower than compiled" in reported
        assert "ada\t3 apples\n" in reported
        assert _megabytes(made, ".venv-demo") <= DEMO_MB
        left = run("docker", "exec", made, "sh", "-c", "ls /tmp; cat /proc/[0-9]*/comm")
        assert set(left.decode().split()) <= {"docker-init", "tini", "sleep", "sh", "cat", "ls"}
        pages = QUICK if base == container.BASE else PAGES
        followed = container.follow(made, *pages)
        assert all(f"{page}: as printed" in followed for page in pages)
