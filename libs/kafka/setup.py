"""Compile the inner loops where that is possible; everything else is in pyproject.toml.

The compiled module is an optimisation only. Without mypy or a C compiler, or if either fails, the
package installs as pure Python and behaves the same.
"""

import sys
from pathlib import Path
from typing import Any

from setuptools import setup
from setuptools.command.build_ext import build_ext
from setuptools.errors import BaseError, CCompilerError

COMPILED = [
    "src/barnabas_kafka/protocol/plain_commit.py",
    "src/barnabas_kafka/protocol/plain_fetch.py",
    "src/barnabas_kafka/protocol/plain_heartbeat.py",
    "src/barnabas_kafka/protocol/plain_produce.py",
    "src/barnabas_kafka/protocol/plain_rebalance.py",
    "src/barnabas_kafka/records/walk.py",
]


def go_on_without(error: BaseException) -> None:
    """Say why nothing is compiled, and remove what an earlier build left beside the sources.

    In an editable install it would be imported in place of the source it no longer matches.
    """
    sys.stderr.write(f"barnabas-kafka: installing without compiled modules: {error!r}\n")
    for source in map(Path, COMPILED):
        for stale in source.parent.glob(f"{source.stem}*.so"):
            stale.unlink()


def extensions() -> list[Any]:
    """The compiled modules, or none if mypyc is missing or cannot translate them."""
    try:
        from mypyc.build import mypycify

        # One by one: a group of modules would share a file with a name of its own, which nobody
        # could tell from what an earlier build left.
        built = [mypycify([source], opt_level="3", debug_level="0") for source in COMPILED]
    except (Exception, SystemExit) as error:  # mypyc ends the process when it gives up
        go_on_without(error)
        return []
    return [extension for pair in built for extension in pair]


class BuildAllOrNothing(build_ext):
    """Build every extension or none: mypyc splits a module into two that need each other.

    Marking the extensions optional would let one of the pair fail alone and break the import.
    """

    def build_extensions(self) -> None:
        """Compile; on any failure go on without compiled modules."""
        try:
            super().build_extensions()
        except (BaseError, CCompilerError, OSError) as error:
            go_on_without(error)
            self.extensions = []


setup(ext_modules=extensions(), cmdclass={"build_ext": BuildAllOrNothing})
