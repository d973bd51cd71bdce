"""Ledgers in shards: texts with a JSON object a line, each small enough for a ConfigMap.

An entry stays in its shard, so a change is a write of one shard; new entries go to the first one
that has room. One that grows until its shard is full moves to a later one. That is two writes, the
later shard's first: of two lines of one entry the later shard's counts, and the other one goes with
the next write. Lines that cannot be parsed are kept as they are: they may be of a newer version.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Generic, TypeVar

E = TypeVar("E")

# A quarter of what a ConfigMap may hold: ids are filled in later, and a write is of a whole shard.
SHARD_BYTES: Final = 256 * 1024
# What entries may grow to together in one shard, with those that cannot be parsed.
FULL_BYTES: Final = 3 * SHARD_BYTES


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
    """A ledger as it is stored: entries, the shard of each, and lines that cannot be parsed.

    `outdated` are the shards with a line of an entry that has moved to a later one.
    """

    entries: Mapping[str, E] = field(default_factory=dict)
    shards: Mapping[str, int] = field(default_factory=dict)
    unparsed: Mapping[int, tuple[str, ...]] = field(default_factory=dict)
    outdated: frozenset[int] = frozenset()


def parse(shards: Mapping[int, str], written: Format[E]) -> Stored[E]:
    """The ledger of the texts of its shards, by their numbers."""
    entries: dict[str, E] = {}
    places: dict[str, int] = {}
    unparsed: dict[int, tuple[str, ...]] = {}
    outdated: set[int] = set()
    for number, text in sorted(shards.items()):
        for line in filter(None, text.split("\n")):
            try:
                name, entry = written.parse(line)
            except (ValueError, KeyError, TypeError, AttributeError):
                unparsed[number] = (*unparsed.get(number, ()), line)
                continue
            if name in places:
                outdated.add(places[name])
            entries[name], places[name] = entry, number
    return Stored(entries=entries, shards=places, unparsed=unparsed, outdated=frozenset(outdated))


def change(
    stored: Stored[E], entries: Mapping[str, E], written: Format[E], unparsed: Sequence[str] = ()
) -> tuple[Stored[E], dict[int, str]]:
    """The ledger with these entries, and the texts of the shards that have changed.

    `unparsed` are further lines that cannot be parsed; they go to the first shard. Later shards are
    to be written before earlier ones.
    """
    foreign = dict(stored.unparsed)
    changed = set(stored.outdated)
    if unparsed:
        foreign[0] = (*foreign.get(0, ()), *unparsed)
        changed.add(0)
    changed |= {number for name, number in stored.shards.items() if name not in entries}
    lines = {name: written.line(name, entry) for name, entry in sorted(entries.items())}
    shards = {number: _Shard(foreign.get(number, ())) for number in foreign}
    moving = {name: 0 for name in lines if name not in stored.shards}
    altered = set()
    for name in lines.keys() - moving:
        number = stored.shards[name]
        shards.setdefault(number, _Shard()).add(name, lines[name])
        if stored.entries[name] != entries[name]:
            altered.add(name)
            changed.add(number)
    for name in sorted(altered, key=lambda each: (-len(lines[each]), each)):
        number = stored.shards[name]
        if shards[number].size > FULL_BYTES:
            shards[number].remove(name)
            moving[name] = number + 1
    for name, number in sorted(moving.items()):
        # An empty shard takes every entry.
        while (size := shards.setdefault(number, _Shard()).size) and (
            size + len(lines[name]) >= SHARD_BYTES
        ):
            number += 1
        shards[number].add(name, lines[name])
        changed.add(number)
    places = {name: number for number, shard in shards.items() for name in shard.lines}
    texts = {each: shards.get(each, _Shard()).text for each in sorted(changed)}
    return Stored(entries=dict(entries), shards=places, unparsed=foreign), texts


class _Shard:
    """The lines of a shard, those that cannot be parsed first."""

    def __init__(self, unparsed: Iterable[str] = ()) -> None:
        self._unparsed = tuple(unparsed)
        self.lines: dict[str, str] = {}
        self.size = sum(len(line) + 1 for line in self._unparsed)

    def add(self, name: str, line: str) -> None:
        """An entry more."""
        self.lines[name] = line
        self.size += len(line) + 1

    def remove(self, name: str) -> None:
        """An entry less."""
        self.size -= len(self.lines.pop(name)) + 1

    @property
    def text(self) -> str:
        """All of it, in the order of the names."""
        own = (self.lines[name] for name in sorted(self.lines))
        return "".join(f"{line}\n" for line in (*self._unparsed, *own))
