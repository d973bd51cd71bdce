"""The facts by which brokers choose versions among themselves, as Apache's own code has them."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tests.broker.cluster.test_inter_broker import FACTS
from tests.oracle.apache import classpath
from tests.waiting import RUN, seconds

pytestmark = pytest.mark.jvm

PROGRAM = Path(__file__).parent / "java" / "MetadataVersions.java"


def test_the_facts_are_those_of_apache() -> None:
    """What the other test goes by without Java."""
    done = subprocess.run(
        ["java", "-XX:TieredStopAtLevel=1", "-cp", classpath(), str(PROGRAM)],
        capture_output=True,
        text=True,
        timeout=seconds(RUN),
        check=True,
    )
    assert done.stdout == FACTS.read_text()
