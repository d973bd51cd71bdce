"""The environment that suites run in: a user's settings for Kafka or Java change no result."""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Final

DROPPED: Final = frozenset(
    {
        # Java and Python read these in every process.
        "CLASSPATH", "JAVA_OPTS", "JAVA_TOOL_OPTIONS", "JDK_JAVA_OPTIONS", "_JAVA_OPTIONS",
        "PYTHONDONTWRITEBYTECODE", "PYTHONPATH", "PYTEST_ADDOPTS",
        # make's own, and the options of `make test`, which a make inside a suite would obey.
        "MAKEFLAGS", "MFLAGS", "MAKELEVEL", "MAKEOVERRIDES", "RECORD", "STRICT", "SUITE",
    }
)  # fmt: skip
DROPPED_PREFIXES: Final = ("BARNABAS_", "KAFKA_")
#: Says where jars are downloaded from, not how anything behaves.
KEPT: Final = frozenset({"BARNABAS_MAVEN_REPOSITORY"})
FIXED: Final = {"LC_ALL": "C.UTF-8", "TZ": "UTC"}


def cleaned(environment: Mapping[str, str]) -> dict[str, str]:
    """The environment for suites. JAVA_HOME stays only where no Java is on the path without it."""
    kept = {
        name: value
        for name, value in environment.items()
        if name in KEPT or (name not in DROPPED and not name.startswith(DROPPED_PREFIXES))
    }
    path = kept.get("PATH", os.defpath)
    home = kept.pop("JAVA_HOME", "")
    if home and shutil.which("java", path=path) is None:
        kept["JAVA_HOME"] = home
        path = os.pathsep.join((str(Path(home) / "bin"), path))
    return {**kept, "PATH": path, **FIXED}


def is_set(value: str | None) -> bool:
    """Whether a switch such as CI or STRICT is on."""
    return (value or "").lower() not in ("", "0", "false", "no")
