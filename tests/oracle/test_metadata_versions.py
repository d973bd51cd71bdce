"""The facts by which brokers choose versions among themselves, as Apache's own code has them."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.broker.cluster.test_inter_broker import FACTS
from tests.oracle.apache import run_tool

pytestmark = pytest.mark.jvm

PROGRAM = Path(__file__).parent / "java" / "MetadataVersions.java"


def test_the_facts_are_those_of_apache() -> None:
    """What the other test goes by without Java."""
    done = run_tool(str(PROGRAM))
    assert done.returncode == 0, done.stderr
    assert done.stdout == FACTS.read_text()
