"""The environment that suites run in: a user's settings for Kafka or Java change no result."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Final

from tests.environment import own

#: Options for pytest, make's own, and those of `make test`, which a make inside a suite would obey.
DROPPED: Final = frozenset(
    {
        "PYTEST_ADDOPTS", "MAKEFLAGS", "MFLAGS", "MAKELEVEL", "MAKEOVERRIDES", "BUSY", "RECORD",
        "REPEAT", "STRICT", "SUITE",
    }
)  # fmt: skip


GO: Final = "/usr/local/go/bin"
"""Where Go's installation guide puts it; not every shell has that in its PATH."""


def cleaned(environment: Mapping[str, str]) -> dict[str, str]:
    """The environment for suites: that of the tests, without what speaks to the runner."""
    kept = {name: value for name, value in own(environment).items() if name not in DROPPED}
    directories = kept.get("PATH", os.defpath).split(os.pathsep)
    return {**kept, "PATH": os.pathsep.join(dict.fromkeys([*directories, GO]))}


def is_set(value: str | None) -> bool:
    """Whether a switch such as CI or STRICT is on."""
    return (value or "").lower() not in ("", "0", "false", "no")
