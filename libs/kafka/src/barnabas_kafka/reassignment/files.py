"""The JSON files of Kafka's tools that move partitions and leaders.

Three documents (`ReassignPartitionsCommand` and `LeaderElectionCommand` of Kafka 3.9 read and write
the same):

* topics to move: `{"version": 1, "topics": [{"topic": "orders"}]}`
* a reassignment: `{"version": 1, "partitions": [{"topic": "orders", "partition": 0,
  "replicas": [1, 2], "log_dirs": ["any", "any"]}]}`
* an election: `{"partitions": [{"topic": "orders", "partition": 0}]}`

`version` may be absent; 1 is the only one there is. Fields with other names are passed over, as
Kafka does. A refusal names the place: line and column where the text is no JSON, else the path
of the value.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any, Final

from barnabas_kafka.ids import TopicPartition

Layout = Mapping[TopicPartition, tuple[int, ...]]
"""Replicas by partition, the preferred leader first."""

VERSION: Final = 1
ANY_DIRECTORY: Final = "any"
"""In place of a log directory: the broker chooses."""


class FileFormatError(ValueError):
    """A document is not what it should be; the message begins with the place."""


def read_topics(text: str) -> tuple[str, ...]:
    """The topics of a topics-to-move file, in its order; raises FileFormatError."""
    document = _document(text, versioned=True)
    return tuple(
        _text(entry, "topic", place) for entry, place in _entries(document, "topics", "topic")
    )


def read_reassignment(text: str) -> dict[TopicPartition, tuple[int, ...]]:
    """The replicas that a reassignment file asks for; raises FileFormatError.

    A log directory other than `any` is refused: it is another kind of move.
    """
    document = _document(text, versioned=True)
    layout: dict[TopicPartition, tuple[int, ...]] = {}
    for entry, place in _entries(document, "partitions", "partition"):
        tp = _partition(entry, place)
        if tp in layout:
            raise FileFormatError(f"{place}: partition {tp} is there twice")
        layout[tp] = _replicas(entry, place)
    return layout


def read_elections(text: str) -> list[TopicPartition]:
    """The partitions of an election file, in its order; raises FileFormatError."""
    document = _document(text, versioned=False)
    found: dict[TopicPartition, None] = {}
    for entry, place in _entries(document, "partitions", "partition"):
        tp = _partition(entry, place)
        if tp in found:
            raise FileFormatError(f"{place}: partition {tp} is there twice")
        found[tp] = None
    return list(found)


def write_topics(topics: Iterable[str]) -> str:
    """A topics-to-move file."""
    return _written({"version": VERSION, "topics": [{"topic": name} for name in topics]})


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
    return _written({"version": VERSION, "partitions": entries})


def write_elections(partitions: Iterable[TopicPartition]) -> str:
    """An election file."""
    entries = [{"topic": tp.topic, "partition": tp.partition} for tp in partitions]
    return _written({"partitions": entries})


def _written(document: object) -> str:
    return json.dumps(document, separators=(",", ":"), ensure_ascii=False)


def _document(text: str, *, versioned: bool) -> Mapping[str, Any]:
    try:
        document = json.loads(text)
    except json.JSONDecodeError as error:
        place = f"line {error.lineno}, column {error.colno}"
        raise FileFormatError(f"{place}: it is no JSON: {error.msg}") from None
    except RecursionError:
        raise FileFormatError("it is nested too deeply") from None
    if not isinstance(document, dict):
        raise FileFormatError("the document is not an object in braces")
    version = document.get("version", VERSION)
    if versioned and (version != VERSION or isinstance(version, bool)):
        raise FileFormatError(f"version: {version!r} is not known, {VERSION} is")
    return document


def _entries(document: Mapping[str, Any], name: str, what: str) -> list[tuple[dict[str, Any], str]]:
    """The objects of a list with the path of each; an empty list is refused."""
    entries = document.get(name)
    if not isinstance(entries, list):
        raise FileFormatError(f"{name}: a list of objects is missing")
    if not entries:
        raise FileFormatError(f"{name}: it names no {what}")
    for index, entry in enumerate(entries):
        if not isinstance(entry, dict):
            raise FileFormatError(f"{name}[{index}]: it is not an object in braces")
    return [(entry, f"{name}[{index}]") for index, entry in enumerate(entries)]


def _partition(entry: Mapping[str, Any], place: str) -> TopicPartition:
    return TopicPartition(
        _text(entry, "topic", place), _number(entry.get("partition"), f"{place}.partition")
    )


def _text(entry: Mapping[str, Any], name: str, place: str) -> str:
    value = entry.get(name)
    if not isinstance(value, str) or not value:
        raise FileFormatError(f"{place}.{name}: a name is missing")
    return value


def _number(value: object, place: str) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or value < 0:
        raise FileFormatError(f"{place}: a number from 0 up is missing")
    return value


def _replicas(entry: Mapping[str, Any], place: str) -> tuple[int, ...]:
    listed = entry.get("replicas")
    if not isinstance(listed, list) or not listed:
        raise FileFormatError(f"{place}.replicas: a list of brokers is missing")
    replicas = tuple(
        _number(value, f"{place}.replicas[{index}]") for index, value in enumerate(listed)
    )
    if len(set(replicas)) < len(replicas):
        raise FileFormatError(f"{place}.replicas: {list(replicas)} names a broker twice")
    directories = entry.get("log_dirs", [ANY_DIRECTORY] * len(replicas))
    if not isinstance(directories, list) or len(directories) != len(replicas):
        raise FileFormatError(f"{place}.log_dirs: it does not have one entry for each replica")
    for index, directory in enumerate(directories):
        if directory != ANY_DIRECTORY:
            raise FileFormatError(
                f"{place}.log_dirs[{index}]: {directory!r} is a log directory; "
                "`barnabas log-dirs move` moves between those"
            )
    return replicas
