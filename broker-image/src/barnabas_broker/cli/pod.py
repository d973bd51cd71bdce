"""What a broker takes from the pod in which it runs: its number, its addresses, its rack.

One pod template serves all brokers of a cluster, and no shell starts them. So settings may name
what differs: `{POD_INDEX}` is an environment variable, `{32094+POD_INDEX}` its sum with a number.
The rack is in files of a downward API volume: Kubernetes writes the node's topology labels on pods
when they are bound (1.35 and later), the operator writes an annotation. Either may come late.
"""

from __future__ import annotations

import os
import re
import signal
import time
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Final

from barnabas_broker.cli.errors import InputError

if TYPE_CHECKING:
    from types import FrameType

PLACE: Final = re.compile(r"\{(?:(\d+)\+)?([A-Z][A-Z0-9_]*)\}")
POLL_S: Final = 0.5
# What a shell reports of a process that SIGTERM ended: the containers after it do not start.
TERMINATED: Final = 128 + signal.SIGTERM


def expanded(text: str, environment: Mapping[str, str]) -> str:
    """A setting with its places filled in. Raises InputError for a variable that is not there."""

    def fill(place: re.Match[str]) -> str:
        first, name = place.groups()
        value = environment.get(name)
        if not value:
            raise InputError(f"{place.group()}: the environment variable {name} is not set")
        if first is None:
            return value
        if not value.isdigit():
            raise InputError(f"{place.group()}: {name} is not a number: {value!r}")
        return str(int(first) + int(value))

    return PLACE.sub(fill, text)


def from_file(text: str) -> str:
    """A setting NAME=FILE with the content of the file. Raises InputError where there is none."""
    name, equals, file = text.partition("=")
    if not (name and equals and file):
        raise InputError(f"--set-file {text}: must be NAME=FILE")
    try:
        value = Path(file).read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"--set-file {text}: {error}") from error
    return f"{name}={value}"


def rack_in(files: Iterable[Path]) -> str:
    """The rack in the first of the files that has one; empty if none has."""
    for file in files:
        try:
            text = file.read_text(encoding="utf-8").strip()
        except FileNotFoundError:
            continue
        if text:
            return text
    return ""


def wait_for_rack(files: Iterable[Path], *, sleep: Callable[[float], None] = time.sleep) -> str:
    """Return the rack once a file has it."""
    chosen = tuple(files)
    while not (rack := rack_in(chosen)):
        sleep(POLL_S)
    return rack


def end_on_sigterm() -> None:
    """Have SIGTERM end the process, in a container's first process too: the kernel hands that one
    only signals for which it has a handler.
    """
    signal.signal(signal.SIGTERM, _end)


def _end(_number: int, _frame: FrameType | None) -> None:
    os._exit(TERMINATED)
