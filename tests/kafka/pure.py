"""Compiled modules as plain Python, to hold both against each other."""

import functools
from importlib import import_module
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType


@functools.cache
def pure(name: str) -> ModuleType:
    """The source of the module `name`, run as plain Python whatever was built from it."""
    package, _, last = name.rpartition(".")
    folder = import_module(package).__file__
    assert folder is not None
    spec = spec_from_file_location(f"{last}_from_source", Path(folder).with_name(f"{last}.py"))
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
