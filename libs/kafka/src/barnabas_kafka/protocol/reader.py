"""Compiles a declaration into the function that reads one message in one version.

The function is straight-line code over `data`, a buffer, and `at`, the position in it. Numbers that
follow each other, and the length that ends such a run, are read with one `unpack_from`; structs
are filled in place, without a call per struct. Names in the written code: `o1`, `o2` objects, `n1`
lengths, `a1` arrays, `size` the length of the buffer.

Every length is checked against what is left of the buffer before it is used. Reads of fixed size
need no check of their own: past the end they raise (see `codec` for what becomes of that).
"""

from collections.abc import Callable
from struct import unpack_from
from typing import Any
from uuid import UUID

from barnabas_kafka.ids import ZERO_UUID
from barnabas_kafka.primitives import read_uvarint, skip_tagged_fields
from barnabas_kafka.protocol.schema import (
    BYTES,
    EMPTY,
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
    least_size,
    size_of,
    tagged_fields_at,
)

ELEMENTS_MAX = 250_000
"""Elements of all arrays in one request, unless fewer are asked for; eight numbers count as one,
being that much smaller.

Each becomes an object, so that a request of a hundred megabytes of empty elements would otherwise
take gigabytes and minutes. No cluster has so many partitions for one request to name.
"""


Read = Callable[..., tuple[Any, int]]
"""`(data, position, elements that a request may hold) -> (message, position after it)`; the last
may be left out."""


class TooManyElementsError(ValueError):
    """A request holds more than it may. Raised before the array that does is read."""


def compile_reader(cls: type[Message], version: int) -> Read:
    """The function that reads messages of one kind and version."""
    read: Read = _Reader(version, version in cls.flexible).compile(cls)
    return read


def _malformed(text: str) -> None:
    raise ValueError(text)


def _too_many(text: str) -> None:
    raise TooManyElementsError(text)


def _read_id(raw: bytes) -> UUID:
    return UUID(bytes=raw) if any(raw) else ZERO_UUID


class _Reader:
    def __init__(self, version: int, flexible: bool) -> None:
        self._version = version
        self._flexible = flexible
        self._source = Source()
        self._source.names |= {
            "new": object.__new__,
            "uvarint": read_uvarint,
            "skip_tags": skip_tagged_fields,
            "malformed": _malformed,
            "too_many": _too_many,
            "read_id": _read_id,
        }
        # Reads of fixed size not written yet: (format code, target), and what is to follow them.
        self._pending: list[tuple[str, str]] = []
        self._after: list[str] = []
        self._has_records = False
        self._is_request = False

    def compile(self, cls: type[Message]) -> Any:
        source = self._source
        result = source.fresh("o")
        self._is_request = cls.__name__.endswith("Request")
        self._read_struct(cls, result)
        self._flush()
        source.line(f"return {result}, at")
        head = ["    size = len(data)"]
        if self._has_records:
            head.append("    view = memoryview(data)")
        source.lines[:0] = head
        title = f"{cls.__name__} v{self._version} reader"
        return source.function(f"def read(data, at, room={ELEMENTS_MAX}):", title)

    def _flush(self) -> None:
        if not self._pending:
            return
        source = self._source
        codes = "".join(code for code, _ in self._pending)
        targets = ", ".join(target for _, target in self._pending)
        if codes == "B":
            source.line(f"{targets} = data[at]")
        else:
            comma = "," if len(self._pending) == 1 else ""
            source.line(f"{targets}{comma} = {source.layout(codes, 'unpack_from')}(data, at)")
        source.line(f"at += {size_of(codes)}")
        for line in self._after:
            source.line(line)
        self._pending.clear()
        self._after.clear()

    def _read_length(self, code: str) -> str:
        """Reads a length into a fresh name; afterwards it is the number of items, -1 for null."""
        name = self._source.fresh("n")
        if not self._flexible:
            self._pending.append((code, name))
            self._flush()
            return name
        self._pending.append(("B", name))
        self._flush()
        self._finish_uvarint(name)
        self._source.line(f"{name} -= 1")
        return name

    def _finish_uvarint(self, name: str) -> None:
        with self._source.block(f"if {name} > 127:"):
            self._source.line(f"{name}, at = uvarint(data, at - 1)")

    def _read_struct(self, cls: type[Struct], target: str) -> None:
        source = self._source
        # The object first: pending reads store into it.
        source.line(f"{target} = new({source.constant('class_', cls)})")
        for name, field in absent_fields_at(cls, self._version):
            self._set_default(f"{target}.{name}", field)
        for name, field in fields_at(cls, self._version, self._flexible):
            self._read_field(field, f"{target}.{name}", name)
        if self._flexible:
            self._read_tags(cls, target)

    def _set_default(self, target: str, field: Field) -> None:
        value = "[]" if field.default is EMPTY else self._source.constant("default_", field.default)
        self._source.line(f"{target} = {value}")

    def _read_tags(self, cls: type[Struct], target: str) -> None:
        source = self._source
        known = tagged_fields_at(cls, self._version, self._flexible)
        count = source.fresh("n")
        self._pending.append(("B", count))
        self._flush()
        for name, field in known:
            self._set_default(f"{target}.{name}", field)
        with source.block(f"if {count}:"):
            if not known:
                source.line("at = skip_tags(data, at - 1)")
                return
            self._finish_uvarint(count)
            with source.block(f"for _ in range({count}):"):
                self._read_tagged(known, target)

    def _read_tagged(self, known: list[tuple[str, Field]], target: str) -> None:
        source = self._source
        tag, end = source.fresh("tag"), source.fresh("end")
        source.line(f"{tag}, at = uvarint(data, at)")
        source.line(f"{end}, at = uvarint(data, at)")
        source.line(f"{end} += at")
        with source.block(f"if {end} > size:"):
            source.line("malformed('a tagged field ends after the message')")
        word = "if"
        for name, field in known:
            with source.block(f"{word} {tag} == {field.tag}:"):
                self._read_field(field, f"{target}.{name}", name)
                self._flush()
            word = "elif"
        with source.block("else:"):
            source.line(f"at = {end}")
        with source.block(f"if at != {end}:"):
            source.line("malformed('a tagged field is not as long as it says')")

    def _read_field(self, field: Field, target: str, name: str) -> None:
        nullable = self._version in field.nullable
        kind = field.type
        if isinstance(kind, ArrayOf):
            self._read_array(kind, target, name, nullable=nullable)
        elif isinstance(kind, Primitive):
            self._read_primitive(kind, target, name, nullable=nullable)
        elif nullable:
            self._read_nullable_struct(kind, target, tagged=field.tag is not None)
        else:
            inner = self._source.fresh("o")
            self._read_struct(kind, inner)
            self._source.line(f"{target} = {inner}")

    def _read_nullable_struct(self, cls: type[Struct], target: str, *, tagged: bool) -> None:
        source = self._source
        mark = source.fresh("n")
        self._pending.append(("b", mark))
        self._flush()
        # Kafka marks null with a length of zero in a tag, and with -1 anywhere else.
        with source.block(f"if {mark} {'<=' if tagged else '<'} 0:"):
            source.line(f"{target} = None")
        with source.block("else:"):
            inner = source.fresh("o")
            self._read_struct(cls, inner)
            self._flush()
            source.line(f"{target} = {inner}")

    def _read_primitive(
        self, kind: Primitive[Any], target: str, name: str, *, nullable: bool
    ) -> None:
        if kind is UUID_BYTES:
            raw = self._source.fresh("raw")
            self._pending.append((kind.format, raw))
            self._after.append(f"{target} = read_id({raw})")
        elif kind.format:
            self._pending.append((kind.format, target))
        else:
            self._read_bytes(kind, target, name, nullable=nullable)

    def _read_bytes(self, kind: Primitive[Any], target: str, name: str, *, nullable: bool) -> None:
        source = self._source
        length = self._read_length("h" if kind is STRING else "i")
        self._null_or_malformed(length, target, name, nullable=nullable)
        with source.block("else:"):
            end = source.fresh("end")
            source.line(f"{end} = at + {length}")
            with source.block(f"if {end} > size:"):
                source.line(f"malformed('{name} ends after the message')")
            if kind is STRING:
                source.line(f"{target} = str(data[at:{end}], 'utf-8')")
            elif kind is BYTES:
                source.line(f"{target} = bytes(data[at:{end}])")
            else:
                self._has_records = True
                source.line(f"{target} = view[at:{end}]")
            source.line(f"at = {end}")

    def _null_or_malformed(self, length: str, target: str, name: str, *, nullable: bool) -> None:
        source = self._source
        with source.block(f"if {length} < 0:"):
            if nullable:
                source.line(f"{target} = None")
            else:
                source.line(f"malformed('{name} may not be null')")

    def _read_array(self, kind: ArrayOf, target: str, name: str, *, nullable: bool) -> None:
        source = self._source
        length = self._read_length("i")
        self._null_or_malformed(length, target, name, nullable=nullable)
        least = least_size(kind.element, self._version, self._flexible)
        with source.block(f"elif {length} * {least} > size - at:"):
            source.line(f"malformed('{name} holds more than the message')")
        with source.block("else:"):
            element = kind.element
            self._count_elements(element, length, name)
            if isinstance(element, Primitive) and element.format and element is not UUID_BYTES:
                self._read_numbers(element, target, length)
            else:
                items = source.fresh("a")
                source.line(f"{items} = {target} = []")
                with source.block(f"for _ in range({length}):"):
                    item = source.fresh("o")
                    self._read_element(element, item, name)
                    self._flush()
                    source.line(f"{items}.append({item})")

    def _count_elements(
        self, element: Primitive[Any] | type[Struct], length: str, name: str
    ) -> None:
        """Take an array off what a request may hold in all; responses come from trusted brokers."""
        if not self._is_request:
            return
        source = self._source
        is_number = isinstance(element, Primitive) and element.format
        source.line(f"room -= {length}{' >> 3' if is_number else ''}")
        with source.block("if room < 0:"):
            source.line(f"too_many('{name} holds more elements than one request may')")

    def _read_element(self, element: Primitive[Any] | type[Struct], item: str, name: str) -> None:
        if isinstance(element, Primitive):
            self._read_primitive(element, item, name, nullable=False)
        else:
            self._read_struct(element, item)

    def _read_numbers(self, element: Primitive[Any], target: str, length: str) -> None:
        source = self._source
        source.names["unpack_from"] = unpack_from
        code = element.format
        source.line(f"{target} = list(unpack_from(f'>{{{length}}}{code}', data, at))")
        source.line(f"at += {length} * {element.size}")
