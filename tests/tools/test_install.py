"""`make install` says where the command is, and what to do where the shell does not find it."""

from __future__ import annotations

from pathlib import Path

from tools.install import Place, advice, choose

USER = {"HOME": "/home/ada", "SHELL": "/bin/bash"}


def test_install_directories() -> None:
    """A user's own directory, all users' for root, or below the prefix."""
    assert choose("", root=False, variables=USER) == Place(Path("/home/ada/.local/bin"))
    assert choose("", root=True, variables=USER) == Place(
        Path("/usr/local/bin"), Path("/usr/local/lib/barnabas")
    )
    assert choose("/opt/kafka", root=False, variables=USER) == Place(
        Path("/opt/kafka/bin"), Path("/opt/kafka/lib/barnabas")
    )
    named = USER | {"XDG_BIN_HOME": "/home/ada/bin"}
    assert choose("", root=False, variables=named).commands == Path("/home/ada/bin")


def command_in(directory: Path) -> Path:
    """A directory with a program `barnabas`."""
    directory.mkdir()
    program = directory / "barnabas"
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    return directory


def test_nothing_to_do_where_the_shell_finds_it(tmp_path: Path) -> None:
    """Most distributions have ~/.local/bin on the path once it is there."""
    ours = command_in(tmp_path / "bin")
    assert advice(Place(ours), USER | {"PATH": f"/usr/bin:{ours}"}) == []


def test_a_directory_that_is_not_on_the_path(tmp_path: Path) -> None:
    """The line can be pasted, and it is said where it goes."""
    ours = command_in(tmp_path / "a bin")
    lines = advice(Place(ours), USER | {"PATH": "/usr/bin"})
    assert lines[1] == f"  export PATH='{ours}':\"$PATH\""
    assert "~/.bashrc" in lines[2]


def test_another_one_comes_first(tmp_path: Path) -> None:
    """It is named: what one types would be that one."""
    ours, theirs = command_in(tmp_path / "ours"), command_in(tmp_path / "theirs")
    (line,) = advice(Place(ours), USER | {"PATH": f"{theirs}:{ours}"})
    assert str(theirs / "barnabas") in line
