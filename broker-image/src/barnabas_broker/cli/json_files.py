"""Files in formats of Kafka's tools, read with the place of what is wrong and written at once."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Final, TypeVar

from barnabas_broker.cli.errors import InputError
from barnabas_kafka.reassignment.files import FileFormatError

BYTES_MAX: Final = 256 << 20
"""More than any cluster's partitions come to; a device or the wrong file may have no end."""

Parsed = TypeVar("Parsed")


def read_json(path: Path, parse: Callable[[str], Parsed]) -> Parsed:
    """What `parse` makes of a file; InputError with file and place where it is not as it should.

    Where several things are wrong, all but the last are printed before it is raised.
    """
    try:
        with path.open("rb") as file:
            data = file.read(BYTES_MAX + 1)
        if len(data) > BYTES_MAX:
            raise InputError(f"{path}: it is longer than {BYTES_MAX >> 20} MiB")
        return parse(data.decode("utf-8-sig"))
    except OSError as error:
        raise InputError(f"{path}: {error.strerror or error}") from None
    except UnicodeDecodeError:
        raise InputError(f"{path}: it is not text in UTF-8") from None
    except FileFormatError as error:
        *others, last = (InputError(f"{path}: {problem}") for problem in error.problems)
        for other in others:
            other.show()
        raise last from None


def write_json(path: Path, text: str) -> None:
    """Write one document; InputError where the file cannot be written."""
    try:
        path.write_text(f"{text}\n", encoding="utf-8")
    except OSError as error:
        raise InputError(f"{path}: {error.strerror or error}") from None
