"""The source of the compiled record walk, run as plain Python.

A fuzzer sees which lines of it ran, and its answers are compared with the compiled module's.
"""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

from barnabas_kafka.records import batch

NAME = "walk_from_source"


def load() -> ModuleType:
    """The module, the same one each time."""
    known = sys.modules.get(NAME)
    if known is not None:
        return known
    spec = importlib.util.spec_from_file_location(NAME, Path(batch.__file__).with_name("walk.py"))
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[NAME] = module
    spec.loader.exec_module(module)
    return module
