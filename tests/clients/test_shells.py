"""Completion in the shells themselves, set up as the documentation says and typed on a terminal."""

from __future__ import annotations

import os
import pty
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from barnabas_broker.testing import Broker
from tests.waiting import START, wait_for

BIN = Path(sys.executable).parent
EVAL = 'eval "$(barnabas completion {shell})"\n'
# A shell, its file in the home directory with what the documentation puts there, and its command.
SHELLS = {
    "bash": (".bashrc", EVAL + "PS1='ready> '\n", ["bash", "-i"]),
    "zsh": (".zshrc", EVAL + "PS1='ready> '\n", ["zsh", "-i"]),
    "fish": (".config/fish/config.fish", "function fish_prompt; echo 'ready> '; end\n", ["fish"]),
}
CONTROLS = re.compile(rb"\x1b(\[[0-?]*[ -/]*[@-~]|\][^\x07]*\x07|[=>()][B0]?)|[\r\x08\x07]")


@pytest.mark.parametrize("shell", SHELLS)
def test_tab_completes_commands_options_and_topics(
    kafka_broker: Broker, tmp_path: Path, shell: str
) -> None:
    """A mistyped letter costs nothing when the shell knows what there is."""
    kafka_broker.create_topic(f"parcels-by-{shell}-sent")
    with _terminal(shell, tmp_path, kafka_broker.bootstrap_servers) as terminal:
        terminal.type("barnabas elect-l\t", completed="barnabas elect-leaders ")
        terminal.type("barnabas consume --idle-t\t", completed="consume --idle-timeout ")
        terminal.type(f"barnabas consume parcels-by-{shell}\t", completed=f"-by-{shell}-sent ")


def test_fish_shows_descriptions_to_their_end(tmp_path: Path) -> None:
    """Commas included."""
    typed = 'barnabas completion fish | source; complete -C "barnabas topics list --bootst"'
    environment = {"HOME": str(tmp_path), "PATH": f"{BIN}:{os.environ['PATH']}"}
    shown = subprocess.run(
        ["fish", "--no-config", "-c", typed], env=environment, check=True, capture_output=True
    )
    assert b"broker or several, separated by commas" in shown.stdout


class _Terminal:
    """A shell behind a terminal: what is typed, and what it shows."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._shown = b""

    def type(self, text: str, *, completed: str) -> None:
        """Type it at a prompt and wait for what the line becomes; then clear the line."""
        os.write(self._descriptor, text.encode())
        self.await_text(completed)
        self._shown = b""
        os.write(self._descriptor, b"\x03")
        self.await_text("ready> ")

    def await_text(self, text: str) -> None:
        """Read until the shell shows a text."""
        wait_for(
            f"{text!r} on the terminal", self._read, until=lambda shown: text in shown, within=START
        )

    def _read(self) -> str:
        try:
            self._shown += os.read(self._descriptor, 65536)
        except BlockingIOError:
            pass
        return CONTROLS.sub(b"", self._shown).decode(errors="replace")


@contextmanager
def _terminal(shell: str, home: Path, bootstrap: str) -> Iterator[_Terminal]:
    """A shell at its prompt, for a person who has just followed the documentation."""
    file, text, command = SHELLS[shell]
    start = home / file
    start.parent.mkdir(parents=True, exist_ok=True)
    start.write_text(text.format(shell=shell))
    environment = {
        "HOME": str(home), "PATH": f"{BIN}:{os.environ['PATH']}", "TERM": "xterm",
        "LC_ALL": "C.UTF-8", "BARNABAS_BOOTSTRAP": bootstrap,
    }  # fmt: skip
    if shell == "fish":
        script = home / ".config/fish/completions/barnabas.fish"
        script.parent.mkdir()
        made = subprocess.run(
            [str(BIN / "barnabas"), "completion", "fish"], check=True, capture_output=True
        )
        script.write_bytes(made.stdout)
    pid, descriptor = pty.fork()
    if pid == 0:
        os.execvpe(command[0], command, environment)
    try:
        os.set_blocking(descriptor, False)
        terminal = _Terminal(descriptor)
        terminal.await_text("ready> ")
        yield terminal
    finally:
        os.kill(pid, signal.SIGKILL)
        os.close(descriptor)
        os.waitpid(pid, 0)
