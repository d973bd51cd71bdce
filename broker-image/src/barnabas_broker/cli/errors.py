"""How a command fails: one line on stderr and an exit code, never a traceback."""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from types import TracebackType
from typing import IO, Any, Final, NoReturn, Self

import click

from barnabas_broker.printable import printable

FAILED = 1
USAGE = 2
READER_LEFT: Final = 141
"""What a shell has for a program that SIGPIPE ended: 128 and the number of the signal."""


class CommandError(click.ClickException):
    """The operation was tried and failed: exit code 1.

    `code` is the protocol's error code, where the broker gave one.
    """

    exit_code = FAILED

    def __init__(self, message: str, *, code: int | None = None) -> None:
        super().__init__(message)
        self.code = code

    def show(self, file: IO[Any] | None = None) -> None:
        """Print the reason on one line, however many its author used."""
        reason = printable(" ".join(self.format_message().split()))
        click.echo(f"Error: {reason}", file=file, err=True)


class InputError(CommandError):
    """A setting or a value is wrong and nothing was tried: exit code 2."""

    exit_code = USAGE


def similar(name: str, names: Iterable[str]) -> str:
    """The end of a message on a name that is not there: those that are spelt alike."""
    # Late: for a mistake alone.
    from difflib import get_close_matches

    near = get_close_matches(name, names)
    return f"; did you mean {' or '.join(near)}?" if near else ""


def end_without_reader() -> NoReturn:
    """End quietly when the reader of standard output has gone, as `barnabas … | head` has it.

    As SIGPIPE would end it, but after what has to be closed. What was not done by then is not done:
    the exit code is not 0.
    """
    discard_output()
    raise SystemExit(READER_LEFT) from None


def discard_output() -> None:
    """Have Python not flush again at exit what standard output has not taken."""
    try:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except (io.UnsupportedOperation, ValueError):
        pass  # It is no file of the system.


def number_too_large(error: OverflowError) -> InputError:
    """For a number of the user's that a client library cannot hold."""
    return InputError(f"a number is too large for the protocol: {error}")


# What commands for clients import, and the distribution that has it. A broker alone needs none.
CLIENT_PACKAGES: Final = {
    "confluent_kafka": "confluent-kafka",
    "rich": "rich",
    "yaml": "pyyaml",
}


def missing_package(error: ModuleNotFoundError) -> str | None:
    """The distribution to install for a failed import; None where it is not a client's."""
    return CLIENT_PACKAGES.get((error.name or "").partition(".")[0])


class Attempts:
    """Several operations in one command: every one is tried and every failure is reported.

    with Attempts() as attempts:
        for name in names:
            with attempts.one():
                delete(name)
    """

    def __init__(self) -> None:
        self._failures: list[CommandError] = []

    @property
    def failed(self) -> bool:
        """Whether one of them failed so far."""
        return bool(self._failures)

    @contextmanager
    def one(self, *, forgive: int | None = None) -> Iterator[None]:
        """One operation; a failure with the protocol's error code `forgive` is none."""
        try:
            yield
        except CommandError as error:
            if error.code is None or error.code != forgive:
                self._failures.append(error)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if error is None and self._failures:
            *others, last = self._failures
            for failure in others:
                failure.show()
            raise last


def attempt(attempts: Attempts | None) -> AbstractContextManager[None]:
    """One operation of `attempts`; without them its failure ends the command."""
    return nullcontext() if attempts is None else attempts.one()
