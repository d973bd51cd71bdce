"""Writing Python source: lines with indentation, numbered names, and functions of them.

Shared by `reader` and `writer`, which turn declarations into straight-line functions. Compiled
source is handed to `linecache`, so tracebacks and debuggers show its lines.
"""

import linecache
from collections.abc import Iterator
from contextlib import contextmanager
from struct import Struct as Layout
from typing import Any

from barnabas_kafka.protocol.schema import (
    STRING,
    ArrayOf,
    Field,
    FieldType,
    Primitive,
    Struct,
)


class Source:
    """The body of one function in the making, and the objects it refers to."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.names: dict[str, Any] = {}
        self._indent = 1
        self._numbers: dict[str, int] = {}

    def line(self, text: str) -> None:
        """One more line at the present depth."""
        self.lines.append("    " * self._indent + text)

    @contextmanager
    def block(self, head: str) -> Iterator[None]:
        """A compound statement around the lines written inside."""
        self.line(head)
        self._indent += 1
        yield
        self._indent -= 1

    def fresh(self, prefix: str) -> str:
        """A local name not used before."""
        number = self._numbers[prefix] = self._numbers.get(prefix, 0) + 1
        return f"{prefix}{number}"

    def constant(self, prefix: str, value: Any) -> str:
        """How the function refers to an object: by literal, or by a name that it keeps."""
        if isinstance(value, int | float | str | bytes | None):
            return repr(value)
        for name, known in self.names.items():
            if known is value:
                return name
        name = self.fresh(prefix)
        self.names[name] = value
        return name

    def layout(self, codes: str, method: str) -> str:
        """The name of a method (`pack`, `unpack_from`) of a big-endian struct layout."""
        name = f"{method}_{codes.replace('?', 'bool')}"
        self.names.setdefault(name, getattr(Layout(">" + codes), method))
        return name

    def function(self, head: str, title: str) -> Any:
        """The finished function."""
        text = "\n".join([head, *self.lines, ""])
        file = f"<barnabas {title}>"
        linecache.cache[file] = (len(text), None, text.splitlines(keepends=True), file)
        exec(compile(text, file, "exec"), self.names)  # noqa: S102 - from our own declarations
        return self.names[head[4 : head.index("(")]]


def size_of(codes: str) -> int:
    """The size in bytes of a big-endian layout."""
    return Layout(">" + codes).size


def fields_at(cls: type[Struct], version: int, flexible: bool) -> list[tuple[str, Field]]:
    """The untagged fields that travel in a version, in order."""
    return [
        (name, field)
        for name, field in cls.__fields__.items()
        if version in field.versions and (field.tag is None or not flexible)
    ]


def tagged_fields_at(cls: type[Struct], version: int, flexible: bool) -> list[tuple[str, Field]]:
    """The tagged fields of a version, by ascending tag."""
    if not flexible:
        return []
    tagged = [
        (field.tag, name)
        for name, field in cls.__fields__.items()
        if version in field.versions and field.tag is not None
    ]
    return [(name, cls.__fields__[name]) for _, name in sorted(tagged)]


def absent_fields_at(cls: type[Struct], version: int) -> list[tuple[str, Field]]:
    """The fields that a version lacks."""
    return [item for item in cls.__fields__.items() if version not in item[1].versions]


def least_size(kind: FieldType, version: int, flexible: bool) -> int:
    """The fewest bytes a value can take: what bounds the length of an array."""
    length = 1 if flexible else 4
    if isinstance(kind, ArrayOf):
        return length
    if isinstance(kind, Primitive):
        return kind.size or (2 if kind is STRING and not flexible else length)
    inner = (
        1
        if isinstance(field.type, type) and version in field.nullable
        else least_size(field.type, version, flexible)
        for _, field in fields_at(kind, version, flexible)
    )
    return sum(inner) + (1 if flexible else 0)
