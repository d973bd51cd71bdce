"""A laptop for a test, on which nothing runs any more after it."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.operator.local.laptop import Laptop


@pytest.fixture
def laptop(tmp_path: Path) -> Iterator[Laptop]:
    """A state directory and a file; what was started is stopped."""
    laptop = Laptop(tmp_path)
    yield laptop
    if laptop.state.path.exists():
        laptop.down()
