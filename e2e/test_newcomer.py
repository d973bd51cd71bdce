"""The README on a clean machine, as printed, by a user without root, compiler, pip or ensurepip."""

from __future__ import annotations

from e2e.commands import run
from e2e.newcomer import container


def test_every_command_of_the_readme_runs_as_printed() -> None:
    """What the demonstration and the quickstart promise is there; nothing of either is left."""
    with container.machine() as made:
        told = container.play(made, "README.md")
        assert "every byte is the same" in told
        assert "The cluster is stopped and its files are deleted." in told
        assert "running as pure Python, slower than compiled" in told
        assert "ada\t3 apples\n" in told
        left = run("docker", "exec", made, "sh", "-c", "ls /tmp; cat /proc/[0-9]*/comm")
        assert set(left.decode().split()) <= {"docker-init", "tini", "sleep", "sh", "cat", "ls"}
