"""Every quickstart runs as printed; Spark's is in the suite that has Spark."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from tests.clients.brokers import broker_under_test
from tests.quickstarts import pages

ELSEWHERE = {"README.md", "spark.md"}


@pytest.mark.parametrize(
    "page",
    ["python.md", "go.md", "node.md", "kcat.md", pytest.param("java.md", marks=pytest.mark.jvm)],
)
def test_a_quickstart_runs_as_printed(page: str, tmp_path: Path) -> None:
    """Files are saved, commands run in order, and print what the page shows."""
    commands = Path(sys.executable).parent
    directory = tmp_path / "reader"
    directory.mkdir()
    with broker_under_test(tmp_path / "broker", {"broker.id": "0"}) as broker:
        pages.follow(
            page,
            directory,
            bootstrap=broker.bootstrap,
            variables={"PATH": f"{os.environ['PATH']}{os.pathsep}{commands}"},
        )


def test_every_page_is_run() -> None:
    """None is forgotten, and the index lists each."""
    (run,) = (
        mark.args[1]
        for mark in test_a_quickstart_runs_as_printed.pytestmark  # type: ignore[attr-defined]
        if mark.name == "parametrize"
    )
    names = {each if isinstance(each, str) else each.values[0] for each in run}
    assert names | ELSEWHERE == {path.name for path in pages.PAGES.glob("*.md")}
    index = (pages.PAGES / "README.md").read_text()
    assert all(f"]({name})" in index for name in (names | ELSEWHERE) - {"README.md"})
