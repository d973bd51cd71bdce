"""A project of its own for each test."""

from pathlib import Path

import pytest

from tests.tools.testrun.project import make_project


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """The root of a project that the runner can run in."""
    make_project(tmp_path)
    return tmp_path
