"""A laptop and a terminal for a test; nothing that it started runs any more after it."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.operator.local.laptop import Laptop
from tests.operator.local.terminal import Terminal


@pytest.fixture
def laptop(tmp_path: Path) -> Iterator[Laptop]:
    """A state directory and a file; what was started is stopped."""
    laptop = Laptop(tmp_path)
    yield laptop
    if laptop.state.path.exists():
        laptop.down()


@pytest.fixture
def terminal(tmp_path: Path) -> Iterator[Terminal]:
    """A terminal; clusters that a test leaves are stopped."""
    terminal = Terminal(tmp_path / "home")
    yield terminal
    for name in [path.name for path in terminal.directory.glob("*")]:
        terminal.run("down", "--name", name)
