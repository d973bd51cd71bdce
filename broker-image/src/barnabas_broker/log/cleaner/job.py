"""The messages to and from a cleaner process: one JSON object a line.

The broker sends one :class:`Job`; the process answers with a :class:`GroupReady` for every group
of segments whose replacement lies complete and synced beside them, and at last with
:class:`Finished` or :class:`Failed`.
"""

from __future__ import annotations

import dataclasses
import json
from dataclasses import dataclass, field
from enum import Enum
from typing import Any


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """One cleaning of one log, complete: the process has no other input.

    ``segments`` are the base offsets of the whole log, the active segment included;
    ``producers`` has (id, last data offset or -1, epoch) of every active producer.
    """

    directory: str
    segments: list[int]
    first_dirty: int
    first_uncleanable: int
    now_ms: int
    delete_retention_ms: int
    segment_bytes: int
    segment_index_bytes: int
    index_interval_bytes: int
    map_bytes: int
    map_load_factor: float
    io_bytes: int
    bytes_per_second: float
    producers: list[tuple[int, int, int]] = field(default_factory=list)


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupReady:
    """``*.cleaned`` files named after the first of ``replaced`` may replace them all."""

    replaced: list[int]


@dataclass(frozen=True, slots=True, kw_only=True)
class Finished:
    """The pass is over: everything below ``clean_to`` is clean. Times in seconds."""

    clean_to: int
    records_read: int
    records_kept: int
    bytes_read: int
    bytes_kept: int
    keyless: int
    map_utilization: float
    seconds: float


class Trouble(Enum):
    """Why a cleaning came to nothing."""

    CORRUPT = "corrupt"
    """The log holds bytes that are no batch; trying again changes nothing."""
    IO = "io"
    """The disk refused something."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Failed:
    """The end of a cleaning that met ``trouble``; ``errno`` is 0 unless it was the disk."""

    trouble: Trouble
    reason: str
    errno: int = 0


Message = Job | GroupReady | Finished | Failed

_KINDS: dict[str, type[Any]] = {kind.__name__: kind for kind in (Job, GroupReady, Finished, Failed)}


def encode(message: Message) -> bytes:
    """The line for a message, newline included."""
    content = dataclasses.asdict(message)
    if isinstance(message, Failed):
        content["trouble"] = message.trouble.value
    return json.dumps({"kind": type(message).__name__, **content}).encode() + b"\n"


def decode(line: bytes) -> Message:
    """The message in a line; raises ValueError for anything else."""
    try:
        content = json.loads(line)
        kind = content.pop("kind")
        if kind == Failed.__name__:
            content["trouble"] = Trouble(content["trouble"])
        if kind == Job.__name__:
            content["producers"] = [tuple(one) for one in content["producers"]]
        message: Message = _KINDS[kind](**content)
    except (AttributeError, KeyError, RecursionError, TypeError) as error:
        raise ValueError(f"not a message of the cleaner: {line!r}") from error
    return message
