"""The JSON files of Kafka's tools that move partitions and leaders.

Three documents (`ReassignPartitionsCommand` and `LeaderElectionCommand` of Kafka 3.9 read and write
the same):

* topics to move: `{"version": 1, "topics": [{"topic": "orders"}]}`
* a reassignment: `{"version": 1, "partitions": [{"topic": "orders", "partition": 0,
  "replicas": [1, 2], "log_dirs": ["any", "any"]}]}`
* an election: `{"partitions": [{"topic": "orders", "partition": 0}]}`

`version` may be absent; 1 is the only one there is. A field with another name is refused: Kafka
passes over it, and with it over a name that was mistyped. A refusal lists all that is wrong, each
with its place: line and column where the text is no JSON, else the path of the value.
"""

from __future__ import annotations

import difflib
import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any, Final

from barnabas_kafka.ids import TopicPartition

Layout = Mapping[TopicPartition, tuple[int, ...]]
"""Replicas by partition, the preferred leader first."""

Directories = Mapping[tuple[TopicPartition, int], str]
"""Log directories by partition and broker."""

VERSION: Final = 1
ANY_DIRECTORY: Final = "any"
"""In place of a log directory: the broker chooses."""


class FileFormatError(ValueError):
    """A document is not what it should be; each of the `problems` begins with its place."""

    def __init__(self, problems: Sequence[str]) -> None:
        super().__init__("; ".join(problems))
        self.problems = tuple(problems)


def read_topics(text: str) -> tuple[str, ...]:
    """The topics of a topics-to-move file, in its order; raises FileFormatError."""
    document = _Document(text, "topics", ("version", "topics"))
    found: dict[str, None] = {}
    for entry, place in document.entries("topic", ("topic",)):
        topic = document.text(entry, "topic", place)
        if topic in found:
            document.wrong(f"{place}: topic {topic} is there twice")
        elif topic is not None:
            found[topic] = None
    document.check()
    return tuple(found)


def read_reassignment(text: str) -> dict[TopicPartition, tuple[int, ...]]:
    """The replicas that a reassignment file asks for; raises FileFormatError.

    A log directory other than `any` is refused: it is another kind of move.
    """
    layout, _ = _read_replicas(text, with_directories=False)
    return layout


def read_moves(text: str) -> tuple[dict[TopicPartition, tuple[int, ...]], Directories]:
    """The replicas of a reassignment file, and the log directories of those that have one."""
    return _read_replicas(text, with_directories=True)


def _read_replicas(
    text: str, *, with_directories: bool
) -> tuple[dict[TopicPartition, tuple[int, ...]], Directories]:
    document = _Document(text, "partitions", ("version", "partitions"))
    layout: dict[TopicPartition, tuple[int, ...]] = {}
    directories: dict[tuple[TopicPartition, int], str] = {}
    names = ("topic", "partition", "replicas", "log_dirs")
    for entry, place in document.entries("partition", names):
        tp = document.partition(entry, place)
        replicas = document.replicas(entry, place)
        listed = document.directories(entry, place, allowed=with_directories)
        if tp in layout:
            document.wrong(f"{place}: partition {tp} is there twice")
        elif tp is not None:
            layout[tp] = replicas
            directories.update(
                ((tp, broker), directory)
                for broker, directory in zip(replicas, listed, strict=False)
                if directory != ANY_DIRECTORY
            )
    document.check()
    return layout, directories


def read_elections(text: str) -> list[TopicPartition]:
    """The partitions of an election file, in its order; raises FileFormatError."""
    document = _Document(text, "partitions", ("version", "partitions"))
    found: dict[TopicPartition, None] = {}
    for entry, place in document.entries("partition", ("topic", "partition")):
        tp = document.partition(entry, place)
        if tp in found:
            document.wrong(f"{place}: partition {tp} is there twice")
        elif tp is not None:
            found[tp] = None
    document.check()
    return list(found)


def write_reassignment(layout: Layout) -> str:
    """A reassignment file, on one line as Kafka's tool prints it, in the order of partitions."""
    entries = [
        {
            "topic": tp.topic,
            "partition": tp.partition,
            "replicas": list(replicas),
            "log_dirs": [ANY_DIRECTORY] * len(replicas),
        }
        for tp, replicas in sorted(layout.items())
    ]
    document = {"version": VERSION, "partitions": entries}
    return json.dumps(document, separators=(",", ":"), ensure_ascii=False)


class _Document:
    """A document while it is read, with all that is wrong with it so far."""

    def __init__(self, text: str, listed: str, names: Collection[str]) -> None:
        """`listed` is the field with the objects, `names` are those of all fields."""
        self._problems: list[str] = []
        self._listed = listed
        document = _loaded(text)
        if not isinstance(document, dict):
            raise FileFormatError(["the document is not an object in braces"])
        self._document: dict[str, Any] = document
        self._check_names(document, "", names)
        version = document.get("version", VERSION)
        if version != VERSION or isinstance(version, bool):
            self.wrong(f"version: {version!r} is not known, {VERSION} is")

    def wrong(self, problem: str) -> None:
        """Take note of what is wrong; `check` reports it."""
        self._problems.append(problem)

    def check(self) -> None:
        """Raise FileFormatError where something was wrong."""
        if self._problems:
            raise FileFormatError(self._problems)

    def entries(self, what: str, names: Collection[str]) -> Iterable[tuple[Mapping[str, Any], str]]:
        """The objects of the list with the path of each; an empty list is refused."""
        entries = self._document.get(self._listed)
        if not isinstance(entries, list):
            self.wrong(f"{self._listed}: a list of objects is missing")
            return
        if not entries:
            self.wrong(f"{self._listed}: it names no {what}")
        for index, entry in enumerate(entries):
            place = f"{self._listed}[{index}]"
            if not isinstance(entry, dict):
                self.wrong(f"{place}: it is not an object in braces")
                continue
            self._check_names(entry, f"{place}.", names)
            yield entry, place

    def text(self, entry: Mapping[str, Any], name: str, place: str) -> str | None:
        """A name; None where there is none."""
        value = entry.get(name)
        if isinstance(value, str) and value:
            return value
        self.wrong(f"{place}.{name}: a name is missing")
        return None

    def partition(self, entry: Mapping[str, Any], place: str) -> TopicPartition | None:
        """The partition of an entry; None where it names none."""
        topic = self.text(entry, "topic", place)
        number = self._number(entry.get("partition"), f"{place}.partition")
        return None if topic is None or number is None else TopicPartition(topic, number)

    def replicas(self, entry: Mapping[str, Any], place: str) -> tuple[int, ...]:
        """The brokers of an entry, those that are numbers."""
        listed = entry.get("replicas")
        if not isinstance(listed, list) or not listed:
            self.wrong(f"{place}.replicas: a list of brokers is missing")
            return ()
        numbers = [
            self._number(value, f"{place}.replicas[{index}]") for index, value in enumerate(listed)
        ]
        replicas = tuple(number for number in numbers if number is not None)
        if len(set(replicas)) < len(replicas):
            self.wrong(f"{place}.replicas: {list(replicas)} names a broker twice")
        return replicas

    def directories(self, entry: Mapping[str, Any], place: str, *, allowed: bool) -> list[str]:
        """The log directory of each replica, `any` where the broker chooses."""
        replicas = entry.get("replicas")
        count = len(replicas) if isinstance(replicas, list) else 0
        directories = entry.get("log_dirs", [ANY_DIRECTORY] * count)
        if not isinstance(directories, list) or len(directories) != count:
            self.wrong(f"{place}.log_dirs: it does not have one entry for each replica")
            return []
        for index, directory in enumerate(directories):
            if directory == ANY_DIRECTORY:
                continue
            where = f"{place}.log_dirs[{index}]: {directory!r}"
            if not isinstance(directory, str) or not directory.startswith("/"):
                self.wrong(f"{where} is neither {ANY_DIRECTORY} nor an absolute path")
            elif not allowed:
                self.wrong(
                    f"{where} is a log directory; `barnabas log-dirs move` moves between those"
                )
        return directories

    def _number(self, value: object, place: str) -> int | None:
        if isinstance(value, int) and not isinstance(value, bool) and value >= 0:
            return value
        self.wrong(f"{place}: a number from 0 up is missing")
        return None

    def _check_names(self, entry: Mapping[str, Any], place: str, names: Collection[str]) -> None:
        for name in entry:
            if name not in names:
                near = difflib.get_close_matches(name, names, n=1)
                hint = f"did you mean {near[0]}?" if near else f"there are {', '.join(names)}"
                self.wrong(f"{place}{name}: there is no such field; {hint}")


def _loaded(text: str) -> object:
    twice: list[str] = []

    def unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        found = dict(pairs)
        if len(found) < len(pairs):
            names = [name for name, _ in pairs]
            twice.extend(name for name in found if names.count(name) > 1)
        return found

    try:
        document = json.loads(text, object_pairs_hook=unique)
    except json.JSONDecodeError as error:
        place = f"line {error.lineno}, column {error.colno}"
        raise FileFormatError([f"{place}: it is no JSON: {error.msg}"]) from None
    except RecursionError:
        raise FileFormatError(["it is nested too deeply"]) from None
    if twice:
        # Which one was meant is unknown; the rest is not checked.
        names = ", ".join(dict.fromkeys(twice))
        raise FileFormatError([f"a field is there twice in one object: {names}"])
    return document
