"""Compile the inner loops where that is possible; everything else is in pyproject.toml.

The compiled module is an optimisation only. Without mypy or a C compiler, or if either fails, the
package installs as pure Python and behaves the same.
"""

import os
import runpy
import shutil
import sys
import sysconfig
from pathlib import Path
from typing import Any

from setuptools import setup
from setuptools.command.build_ext import build_ext
from setuptools.errors import BaseError, CCompilerError

# Read from the sources: the package itself cannot be imported before it is built.
MODULES = runpy.run_path("src/barnabas_kafka/compiled.py")["MODULES"]
COMPILED = [f"src/{name.replace('.', '/')}.py" for name in MODULES]


def go_on_without(error: BaseException) -> None:
    """Say why nothing is compiled, and remove what an earlier build left beside the sources.

    In an editable install it would be imported in place of the source it no longer matches.
    """
    sys.stderr.write(f"barnabas-kafka: installing without compiled modules: {error!r}\n")
    for source in map(Path, COMPILED):
        for stale in source.parent.glob(f"{source.stem}*.so"):
            stale.unlink()


def check_compiler() -> None:
    """OSError where nothing can be compiled here; mypyc would find out after half a minute."""
    command = (os.environ.get("CC") or sysconfig.get_config_var("CC") or "cc").split()
    if not any(shutil.which(word) for word in command):
        raise FileNotFoundError(f"there is no C compiler: {' '.join(command)}")
    header = Path(sysconfig.get_path("include"), "Python.h")
    if not header.is_file():
        raise FileNotFoundError(f"Python's headers are not installed: {header}")


def extensions() -> list[Any]:
    """The compiled modules, or none if mypyc is missing or cannot translate them."""
    try:
        check_compiler()
        from mypyc.build import mypycify

        # One by one: a group of modules would share a file with a name of its own, which
        # looks like what an earlier build left.
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
