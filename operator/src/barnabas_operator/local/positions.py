"""YAML with the place of each value, so that an error has the line of its value.

Places have the names that mistakes have: `spec.listeners[0].port`. A key that is there twice, of
which YAML would take the last in silence, is a mistake too.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

import yaml

_LAST_PART: Final = re.compile(r"(\[\d+\]|\.?[^.\[\]]+)$")


@dataclass(frozen=True, slots=True)
class Placed:
    """A document, the line of each of its values by path, and the paths that are there twice."""

    document: Any
    lines: Mapping[str, int]
    twice: tuple[str, ...]

    def line(self, path: str) -> int:
        """The line of a path; of what it is in, where there is no such path in the document."""
        while path and path not in self.lines:
            path = _LAST_PART.sub("", path)
        return self.lines[path]


def load_all(text: str) -> Iterator[Placed]:
    """The documents of a text, apart from empty ones; raises yaml.YAMLError."""
    loader = yaml.SafeLoader(text)
    try:
        while loader.check_node():
            if (node := loader.get_node()) is None:
                break
            lines: dict[str, int] = {}
            twice: list[str] = []
            _walk(node, "", node.start_mark.line + 1, (lines, twice, set()))
            document = loader.construct_document(node)
            if document is not None:
                yield Placed(document, lines, tuple(twice))
    finally:
        loader.dispose()


def _walk(
    node: yaml.Node, path: str, line: int, found: tuple[dict[str, int], list[str], set[int]]
) -> None:
    lines, twice, seen = found
    lines[path] = line
    if id(node) in seen:  # An alias: of a few lines one could make billions of paths.
        return
    seen.add(id(node))
    if isinstance(node, yaml.MappingNode):
        for key, value in node.value:
            name = f"{path}.{key.value}" if path else str(key.value)
            if name in lines:
                twice.append(name)
            _walk(value, name, key.start_mark.line + 1, found)
    elif isinstance(node, yaml.SequenceNode):
        for index, value in enumerate(node.value):
            _walk(value, f"{path}[{index}]", value.start_mark.line + 1, found)
