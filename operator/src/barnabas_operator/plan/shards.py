"""Ledgers in shards: texts with a JSON object a line, each small enough for a ConfigMap.

An entry stays in its shard, so a change is a write of one shard; new entries go to the first one
that has room. Lines that cannot be parsed are kept as they are: they may be of a newer version.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Generic, TypeVar

E = TypeVar("E")

# A quarter of what a ConfigMap may hold: ids are filled in later, and a write is of a whole shard.
SHARD_BYTES: Final = 256 * 1024


@dataclass(frozen=True, slots=True)
class Format(Generic[E]):
    """How entries are written: the key of their names, and both directions of the rest.

    `read` raises ValueError, KeyError, TypeError or AttributeError for what is no entry.
    """

    key: str
    read: Callable[[Mapping[str, Any]], E]
    write: Callable[[E], Mapping[str, Any]]

    def line(self, name: str, entry: E) -> str:
        """An entry as a line."""
        return json.dumps({self.key: name, **self.write(entry)})

    def parse(self, line: str) -> tuple[str, E]:
        """Name and entry of a line."""
        document = json.loads(line)
        name, entry = document[self.key], self.read(document)
        if not (isinstance(name, str) and name):
            raise ValueError(f"{self.key} must be a text")
        return name, entry


# Without slots: Python 3.11 cannot make an alias of a frozen generic class that has them.
@dataclass(frozen=True, kw_only=True)
class Stored(Generic[E]):
    """A ledger as it is stored: entries, the shard of each, and lines that cannot be parsed."""

    entries: Mapping[str, E] = field(default_factory=dict)
    shards: Mapping[str, int] = field(default_factory=dict)
    unparsed: Mapping[int, tuple[str, ...]] = field(default_factory=dict)


def parse(shards: Mapping[int, str], written: Format[E]) -> Stored[E]:
    """The ledger of the texts of its shards, by their numbers."""
    entries: dict[str, E] = {}
    places: dict[str, int] = {}
    unparsed: dict[int, tuple[str, ...]] = {}
    for number, text in sorted(shards.items()):
        for line in filter(None, text.split("\n")):
            try:
                name, entry = written.parse(line)
            except (ValueError, KeyError, TypeError, AttributeError):
                unparsed[number] = (*unparsed.get(number, ()), line)
                continue
            entries[name], places[name] = entry, number
    return Stored(entries=entries, shards=places, unparsed=unparsed)


def change(
    stored: Stored[E], entries: Mapping[str, E], written: Format[E], unparsed: Sequence[str] = ()
) -> tuple[Stored[E], dict[int, str]]:
    """The ledger with these entries, and the texts of the shards that have changed.

    `unparsed` are further lines that cannot be parsed; they go to the first shard.
    """
    foreign = dict(stored.unparsed)
    changed = set()
    if unparsed:
        foreign[0] = (*foreign.get(0, ()), *unparsed)
        changed.add(0)
    lines: dict[int, list[str]] = {number: list(each) for number, each in foreign.items()}
    new = []
    for name, entry in sorted(entries.items()):
        number = stored.shards.get(name)
        if number is None:
            new.append((name, written.line(name, entry)))
            continue
        lines.setdefault(number, []).append(written.line(name, entry))
        if stored.entries[name] != entry:
            changed.add(number)
    changed |= {number for name, number in stored.shards.items() if name not in entries}
    places = {name: number for name, number in stored.shards.items() if name in entries}
    number = 0
    room = SHARD_BYTES - _size(lines.get(number, ()))
    for name, line in new:
        while room < len(line) + 1:
            number += 1
            room = SHARD_BYTES - _size(lines.get(number, ()))
        room -= len(line) + 1
        lines.setdefault(number, []).append(line)
        places[name] = number
        changed.add(number)
    texts = {each: "".join(f"{line}\n" for line in lines.get(each, ())) for each in changed}
    return Stored(entries=dict(entries), shards=places, unparsed=foreign), texts


def _size(lines: Iterable[str]) -> int:
    return sum(len(line) + 1 for line in lines)
