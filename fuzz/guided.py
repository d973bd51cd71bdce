"""Runs one target under atheris in this process: `python -m fuzz.guided TARGET [libFuzzer flags]`.

The process ends with libFuzzer's status. `python -m fuzz` starts these, one for each target.
"""

from __future__ import annotations

import logging
import sys
from collections.abc import Callable
from typing import Any, Final

import atheris

# What is not looked at: compiled modules have no lines, and what is not ours is not on trial.
OURS: Final = ["barnabas_kafka", "barnabas_broker"]


def _see_generated_code() -> None:
    """Instrument the readers and writers that codecs compile from declarations at first use."""
    from barnabas_kafka.protocol import reader, writer

    for module, name in ((reader, "compile_reader"), (writer, "compile_writer")):
        compiler: Callable[..., Any] = getattr(module, name)

        def seen(cls: Any, version: int, compiler: Callable[..., Any] = compiler) -> Any:
            return atheris.instrument_func(compiler(cls, version))

        setattr(module, name, seen)


def _see_pure_walk() -> None:
    """Instrument the source of the compiled walk, whose answers are compared with its own."""
    from fuzz import pure_walk

    for each in vars(pure_walk.load()).values():
        if callable(each) and getattr(each, "__module__", None) == pure_walk.NAME:
            atheris.instrument_func(each)


def main(arguments: list[str]) -> None:
    """Fuzz until libFuzzer's flags say that it is enough."""
    name, *flags = arguments
    logging.getLogger("barnabas_broker").setLevel(logging.CRITICAL)  # It would tell of each input.
    with atheris.instrument_imports(include=OURS, enable_loader_override=False):
        _see_generated_code()
        from fuzz.targets import target

        check = target(name).check
    _see_pure_walk()
    atheris.Setup([sys.argv[0], *flags], check, enable_python_coverage=True)
    atheris.Fuzz()


if __name__ == "__main__":
    main(sys.argv[1:])
