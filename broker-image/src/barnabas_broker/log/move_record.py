"""The note that two copies of a partition carry while one takes the place of the other.

A move between log directories has a moment in which both hold a directory named after the
partition. A small file in each says so, so that a start after a crash knows which one to open::

    {"version": 0, "from": "/disk1", "to": "/disk2", "switched": false}

``switched``, in the new copy only: it is whole and on the device, and serves; the old one is to go.

What a start finds, and which copy it opens
  V1  one copy, no note                      it
  V2  one copy, a note, and the other directory can be read (or is not configured any more)   it:
                                             the other copy is gone, or never got its name
  V3  the new copy, switched, and the other directory is offline     it; the note stays
  V4  either copy, and the other directory is offline      none: it may lack records that count
  V5  both, the new one switched             the new one
  V6  both, not switched                     the one with the larger (leader epoch, log end), for
                                             nothing is appended to one that does not serve; the old
                                             one when they are equal
  V7  two copies without a note that names both    none: an operator has copied directories by hand
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from enum import Enum
from pathlib import Path

from barnabas_broker.log.files import read_file, remove_file, replace_file, sync_directory

NAME = "move-between-log-dirs"


class MalformedMoveRecordError(Exception):
    """A note that does not say what a note says."""


@dataclass(frozen=True, slots=True)
class MoveRecord:
    """From which log directory to which; absolute paths."""

    source: str
    target: str
    switched: bool = False

    def encode(self) -> bytes:
        """The file's content."""
        said = {
            "version": 0,
            "from": self.source,
            "to": self.target,
            "switched": self.switched,
        }
        return json.dumps(said).encode() + b"\n"

    @classmethod
    def decode(cls, data: bytes) -> MoveRecord:
        """Raises MalformedNoteError."""
        try:
            said = json.loads(data)
            return cls(str(said["from"]), str(said["to"]), said["switched"] is True)
        except (ValueError, KeyError, TypeError) as error:
            raise MalformedMoveRecordError(f"{error!r} in {data[:100]!r}") from error

    def is_target(self, directory: Path) -> bool:
        """Whether the copy in a log directory is the new one."""
        return str(directory.absolute()) == self.target

    def other(self, directory: Path) -> str:
        """The log directory of the other copy, asked from one."""
        return self.source if self.is_target(directory) else self.target


class Verdict(Enum):
    """Which copy is opened."""

    ONLY = "the only one"
    ONLY_KEEP_NOTE = "the only one that can be read, and it is whole"
    NONE = "none"
    OLD = "the old one"
    NEW = "the new one"


def judge_one(note: MoveRecord | None, directory: Path, *, other_offline: bool) -> Verdict:
    """Rows V1 to V4, for a partition that lies in ``directory`` alone."""
    if note is None or not other_offline:
        return Verdict.ONLY
    if note.switched and note.is_target(directory):
        return Verdict.ONLY_KEEP_NOTE
    return Verdict.NONE


def judge_two(old_end: tuple[int, int], new_end: tuple[int, int], *, switched: bool) -> Verdict:
    """Rows V5 and V6; ends are (leader epoch, log end offset)."""
    return Verdict.NEW if switched or new_end > old_end else Verdict.OLD


def names_both(note: MoveRecord | None, old: Path, new: Path) -> bool:
    """Whether ``note``, found in ``new``, explains a copy in ``old``; else row V7."""
    return note is not None and (note.source, note.target) == (
        str(old.absolute()),
        str(new.absolute()),
    )


def read(partition: Path) -> MoveRecord | None:
    """The note in a partition's directory; None without one. Raises OSError.

    A malformed one counts as none: notes are replaced atomically, so no crash has made it.
    """
    try:
        return MoveRecord.decode(read_file(partition / NAME))
    except (FileNotFoundError, MalformedMoveRecordError):
        return None


def write(partition: Path, note: MoveRecord) -> None:
    """Put a note, durable on return. Blocks; raises OSError."""
    replace_file(partition / NAME, note.encode())


def remove(partition: Path) -> None:
    """Take the note away, durably. Blocks; raises OSError."""
    path = partition / NAME
    if path.exists():
        remove_file(path)
        sync_directory(partition)
