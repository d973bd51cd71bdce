"""Compiles a declaration into the function that writes one message in one version.

The function appends pieces of bytes to a list. Numbers that follow each other, and the length that
ends such a run, are packed together. Names in the written code: `o1`, `o2` objects, `n1` lengths,
`s1` text and bytes, `a1` arrays, `add` the method that appends a piece.

As in Kafka's own serializers, a field the version lacks must hold its default unless it is
ignorable, tagged fields travel only where they differ from their defaults, and null where the
version knows no null is an error.
"""

from collections.abc import Callable
from functools import cache
from struct import Struct as Layout
from struct import pack
from typing import Any, Final

from barnabas_kafka.primitives import uvarint
from barnabas_kafka.protocol.schema import (
    RECORDS,
    STRING,
    UUID_BYTES,
    ArrayOf,
    Field,
    Message,
    Primitive,
    Struct,
)
from barnabas_kafka.protocol.source import (
    Source,
    absent_fields_at,
    fields_at,
    tagged_fields_at,
)

_SHORT: Final = 16
"""Arrays of fewer numbers are packed with layouts made beforehand."""


def compile_writer(cls: type[Message], version: int) -> Callable[[Any, list[Any]], None]:
    """A function `(message, pieces)` that appends the message's encoding to the pieces."""
    write: Callable[[Any, list[Any]], None]
    write = _Writer(version, version in cls.flexible).compile(cls)
    return write


@cache
def _packers(first: str, code: str) -> list[Callable[..., bytes]]:
    """By count, what packs a length and that many numbers."""
    return [Layout(f">{first}{count}{code}").pack for count in range(_SHORT)]


def _unsupported(name: str) -> None:
    raise ValueError(f"{name} is set, but this version has no such field")


class _Writer:
    def __init__(self, version: int, flexible: bool) -> None:
        self._version = version
        self._flexible = flexible
        self._source = Source()
        self._source.names |= {
            "uvarint": uvarint,
            "Buffer": (bytes, memoryview, bytearray),
            "unsupported": _unsupported,
            "pack": pack,
            "join": b"".join,
        }
        # Numbers not written yet: (format code, expression).
        self._pending: list[tuple[str, str]] = []
        self._add = "add"

    def compile(self, cls: type[Message]) -> Any:
        source = self._source
        source.line("add = out.append")
        self._write_struct(cls, "message")
        self._flush()
        if not source.lines[1:]:
            source.line("return")
        title = f"{cls.__name__} v{self._version} writer"
        return source.function("def write(message, out):", title)

    def _flush(self) -> None:
        if self._pending:
            self._source.line(f"{self._add}({self._packed(self._pending)})")
            self._pending.clear()

    def _packed(self, numbers: list[tuple[str, str]]) -> str:
        codes = "".join(code for code, _ in numbers)
        if numbers == [("B", "0")]:
            return repr(b"\0")
        values = ", ".join(value for _, value in numbers)
        return f"{self._source.layout(codes, 'pack')}({values})"

    def _write_length(self, code: str, length: str) -> None:
        """Writes a length with all numbers before it; in flexible versions it is already + 1."""
        source = self._source
        if not self._flexible:
            self._pending.append((code, length))
            self._flush()
            return
        with source.block(f"if {length} < 128:"):
            source.line(f"{self._add}({self._packed([*self._pending, ('B', length)])})")
        with source.block("else:"):
            before = f"{self._packed(self._pending)} + " if self._pending else ""
            source.line(f"{self._add}({before}uvarint({length}))")
        self._pending.clear()

    def _write_struct(self, cls: type[Struct], value: str) -> None:
        for name, field in absent_fields_at(cls, self._version):
            if not field.ignorable:
                with self._source.block(f"if {self._differs(field, f'{value}.{name}')}:"):
                    self._source.line(f"unsupported('{name}')")
        for name, field in fields_at(cls, self._version, self._flexible):
            self._write_field(field, f"{value}.{name}")
        if self._flexible:
            self._write_tags(cls, value)

    def _differs(self, field: Field, value: str) -> str:
        """An expression: the value is not the field's default."""
        default = field.default
        if default is None:
            return f"{value} is not None"
        if isinstance(field.type, Primitive):
            return f"{value} != {self._source.constant('default_', default)}"
        if isinstance(field.type, ArrayOf):
            return f"{value} or {value} is None"
        known = self._source.constant("default_", default)
        inner = (
            f"({self._differs(part, f'{value}.{name}')})"
            for name, part in field.type.__fields__.items()
        )
        is_other = f"{value} is not {known} and ({' or '.join(inner)})"
        return f"{value} is None or {is_other}" if self._version in field.nullable else is_other

    def _write_tags(self, cls: type[Struct], value: str) -> None:
        tagged = tagged_fields_at(cls, self._version, self._flexible)
        if not tagged:
            self._pending.append(("B", "0"))
            return
        source = self._source
        tags = source.fresh("tags")
        before = list(self._pending)
        differs = [f"({self._differs(field, f'{value}.{name}')})" for name, field in tagged]
        with source.block(f"if {' or '.join(differs)}:"):
            self._flush()
            source.line(f"{tags} = []")
            for (name, field), condition in zip(tagged, differs, strict=True):
                with source.block(f"if {condition}:"):
                    self._write_tagged(field, f"{value}.{name}", tags)
            source.line(f"{self._add}(uvarint(len({tags})))")
            source.line(f"{self._add}(join({tags}))")
        with source.block("else:"):
            self._pending = [*before, ("B", "0")]
            self._flush()

    def _write_tagged(self, field: Field, value: str, tags: str) -> None:
        source = self._source
        pieces = source.fresh("pieces")
        source.line(f"{pieces} = []")
        outer, self._add = self._add, f"{pieces}.append"
        self._write_field(field, value)
        self._flush()
        self._add = outer
        source.line(f"{pieces} = join({pieces})")
        source.line(f"{tags}.append(uvarint({field.tag}) + uvarint(len({pieces})) + {pieces})")

    def _write_field(self, field: Field, value: str) -> None:
        nullable = self._version in field.nullable
        kind = field.type
        if isinstance(kind, ArrayOf):
            self._write_array(kind, value, nullable=nullable)
        elif isinstance(kind, Primitive):
            self._write_primitive(kind, value, nullable=nullable)
        elif nullable:
            self._write_nullable_struct(kind, value, b"\xff" if field.tag is None else b"\0")
        else:
            inner = self._source.fresh("o")
            self._source.line(f"{inner} = {value}")
            self._write_struct(kind, inner)

    def _write_nullable_struct(self, cls: type[Struct], value: str, null: bytes) -> None:
        source = self._source
        inner = source.fresh("o")
        source.line(f"{inner} = {value}")
        self._flush()
        with source.block(f"if {inner} is None:"):
            source.line(f"{self._add}({null!r})")
        with source.block("else:"):
            source.line(f"{self._add}(b'\\x01')")
            self._write_struct(cls, inner)
            self._flush()

    def _write_primitive(self, kind: Primitive[Any], value: str, *, nullable: bool) -> None:
        if kind is UUID_BYTES:
            self._pending.append((kind.format, f"{value}.bytes"))
        elif kind.format:
            self._pending.append((kind.format, value))
        else:
            self._write_bytes(kind, value, nullable=nullable)

    def _write_bytes(self, kind: Primitive[Any], value: str, *, nullable: bool) -> None:
        source = self._source
        text, length = source.fresh("s"), source.fresh("n")
        source.line(f"{text} = {value}")
        more = " + 1" if self._flexible else ""

        def measure() -> None:
            if kind is STRING:
                source.line(f"{text} = {text}.encode()")
            measured = f"len({text})"
            if kind is RECORDS:
                measured = f"(len({text}) if isinstance({text}, Buffer) else {text}.length)"
            source.line(f"{length} = {measured}{more}")

        if nullable:
            with source.block(f"if {text} is None:"):
                source.line(f"{length} = {0 if self._flexible else -1}")
                source.line(f"{text} = b''")
            with source.block("else:"):
                measure()
        else:
            measure()
        self._write_length("h" if kind is STRING else "i", length)
        source.line(f"{self._add}({text})")

    def _write_array(self, kind: ArrayOf, value: str, *, nullable: bool) -> None:
        source = self._source
        items, length = source.fresh("a"), source.fresh("n")
        source.line(f"{items} = {value}")
        element = kind.element
        if isinstance(element, Primitive) and element.format and element is not UUID_BYTES:
            self._write_numbers(element, items, length, nullable=nullable)
            return
        more = " + 1" if self._flexible else ""
        if nullable:
            null = 0 if self._flexible else -1
            source.line(f"{length} = {null} if {items} is None else len({items}){more}")
        else:
            source.line(f"{length} = len({items}){more}")
        self._write_length("i", length)
        item = source.fresh("o")
        with source.block(f"for {item} in {items}{' or ()' if nullable else ''}:"):
            if isinstance(element, Primitive):
                self._write_primitive(element, item, nullable=False)
            else:
                self._write_struct(element, item)
            self._flush()

    def _write_numbers(
        self, element: Primitive[Any], items: str, length: str, *, nullable: bool
    ) -> None:
        source = self._source
        self._flush()
        if not nullable:
            self._write_number_list(element.format, items, length)
            return
        with source.block(f"if {items} is None:"):
            null = b"\0" if self._flexible else b"\xff\xff\xff\xff"
            source.line(f"{self._add}({null!r})")
        with source.block("else:"):
            self._write_number_list(element.format, items, length)

    def _write_number_list(self, code: str, items: str, length: str) -> None:
        """Short lists, which are the rule, are packed together with their length."""
        source = self._source
        first, more = ("B", " + 1") if self._flexible else ("i", "")
        packers = f"pack_{first}_{code}"
        if packers not in source.names:
            source.names[packers] = _packers(first, code)
        source.line(f"{length} = len({items})")
        with source.block(f"if {length} < {_SHORT}:"):
            source.line(f"{self._add}({packers}[{length}]({length}{more}, *{items}))")
        with source.block("else:"):
            before = f"uvarint({length} + 1)" if self._flexible else f"pack('>i', {length})"
            source.line(f"{self._add}({before} + pack(f'>{{{length}}}{code}', *{items}))")
