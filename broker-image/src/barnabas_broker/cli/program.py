"""A command as a program of the system: its arguments, its streams, and what the system refuses."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import NoReturn

from barnabas_broker.cli.errors import (
    FAILED,
    USAGE,
    CommandError,
    discard_output,
    end_without_reader,
)


@contextmanager
def as_program(given: Sequence[str] | None, *, wrong: int = USAGE) -> Iterator[None]:
    """Run a command with these arguments, those of the process if None; errors are one line.

    `wrong` is the exit code where an argument cannot be read.
    """
    _open_closed_streams()
    if problem := _unreadable(sys.argv[1:] if given is None else given):
        _end(problem, wrong)
    try:
        yield
    except BrokenPipeError:
        end_without_reader()
    except OSError as error:  # Output to a full disk, for example, that of --help included.
        discard_output()
        reason = error.strerror or str(error)
        _end(f"{error.filename}: {reason}" if error.filename else reason, FAILED)


@contextmanager
def ended_by_signals() -> Iterator[None]:
    """End at Ctrl-C as SIGINT ends a program, and without a reader as SIGPIPE does: silently.

    A shell's loop ends at Ctrl-C too. Within click's own handling, which would print a word of its
    own and exit with 1. What the interrupt carries is the number of another signal that stands for
    it.
    """
    try:
        yield
    except BrokenPipeError:
        end_without_reader()
    except KeyboardInterrupt as interrupt:
        discard_output()
        number = interrupt.args[0] if interrupt.args else signal.SIGINT
        signal.signal(number, signal.SIG_DFL)
        os.kill(os.getpid(), number)


def _end(problem: str, exit_code: int) -> NoReturn:
    CommandError(problem).show()
    raise SystemExit(exit_code) from None


def _open_closed_streams() -> None:
    """A stream that the caller closed is None in Python; it is empty here, and takes everything."""
    null = Path(os.devnull)
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, null.open(mode, encoding="utf-8"))


def _unreadable(arguments: Sequence[str]) -> str:
    """What is wrong with bytes that are no text: librdkafka's Python client crashes on some."""
    for argument in arguments:
        try:
            argument.encode()
        except UnicodeEncodeError:
            encoding = sys.getfilesystemencoding().upper()
            remedy = "" if encoding == "UTF-8" else "; set LC_ALL=C.UTF-8"
            return f"{argument!a}: an argument is no text in {encoding}{remedy}"
    return ""
