"""Members of an ensemble know each other by names, whose addresses change with their pods."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from typing import Final

import pytest

from tests.cluster.names import Names

pytestmark = pytest.mark.jvm
SECURITY: Final = Path(__file__).parents[2] / "zookeeper-image" / "java.security"
PROGRAM: Final = Path(__file__).parent / "programs" / "Resolve.java"


def test_a_member_that_moved_is_looked_up_again(tmp_path: Path) -> None:
    """With the security properties of the image; Java would keep an address for 30 seconds.

    The member with the lowest id depends on it: the others drop its connections and dial it back.
    """
    names = Names(tmp_path / "names")
    command = ["java", f"-Djava.security.properties={SECURITY}", str(PROGRAM)]
    with subprocess.Popen(
        command,
        env={**os.environ, **names.environment},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as java:
        assert java.stdin is not None
        assert java.stdout is not None
        found = []
        for address in ("127.0.0.1", "127.0.0.7"):
            names.move(1, address)
            java.stdin.write(f"{names.of(1)}\n")
            java.stdin.flush()
            found.append(java.stdout.readline().strip())
        java.stdin.close()
    assert found == ["127.0.0.1", "127.0.0.7"]
