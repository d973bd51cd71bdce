"""The language in which messages are declared: versions, fields, structs and messages.

A message is a class whose body lists its fields in the order of the wire::

    class MetadataRequestTopic(Struct):
        topic_id: UUID = uuid("10+", ignorable=True)
        name: str | None = string("0+", nullable="10+")

    class MetadataRequest(Request, api_key=3, versions="0-13", flexible="9+"):
        topics: list[MetadataRequestTopic] | None = array(MetadataRequestTopic, "0+", nullable="1+")

One class serves all versions: every field always exists, and holds its default where the version
at hand does not carry it. `protocol.codec` compiles a reader and a writer per version.

To a type checker the functions below return plain values, so `string("0+", nullable="10+")` *is* a
`str | None` and a wrong annotation is an error; at run time they return a `Field`, which the
metaclass takes out of the class body again, so instances are plain objects with slots.

Words: *flexible* versions use the compact encoding with tagged fields (KIP-482). A *tagged* field
travels only where it differs from its default. An *ignorable* field is dropped when it is set but
the version lacks it; without that mark the encoder refuses, because dropping it would change what
the sender meant.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import (
    Any,
    ClassVar,
    Final,
    Generic,
    NamedTuple,
    Protocol,
    TypeVar,
    cast,
    dataclass_transform,
    overload,
)
from uuid import UUID

from barnabas_kafka.ids import ZERO_UUID

T = TypeVar("T")

VERSION_MAX: Final = 0x7FFF


class VersionRange(NamedTuple):
    """The versions from `min` to `max`, both included; empty where max < min."""

    min: int
    max: int

    def __contains__(self, version: object) -> bool:
        return isinstance(version, int) and self.min <= version <= self.max

    def __str__(self) -> str:
        if self.max < self.min:
            return "none"
        if self.max == VERSION_MAX:
            return f"{self.min}+"
        return str(self.min) if self.min == self.max else f"{self.min}-{self.max}"

    @staticmethod
    def parse(text: str) -> "VersionRange":
        """`"3"`, `"0-4"`, `"2+"` or `"none"`."""
        if text == "none":
            return NO_VERSIONS
        if text.endswith("+"):
            return VersionRange(int(text[:-1]), VERSION_MAX)
        low, _, high = text.partition("-")
        return VersionRange(int(low), int(high or low))


NO_VERSIONS: Final = VersionRange(0, -1)


@dataclass(frozen=True, slots=True)
class Primitive(Generic[T]):
    """A type without fields. `format` is its `struct` code, empty where the size varies."""

    name: str
    format: str
    size: int
    default: T | None


INT8: Final[Primitive[int]] = Primitive("int8", "b", 1, 0)
INT16: Final[Primitive[int]] = Primitive("int16", "h", 2, 0)
INT32: Final[Primitive[int]] = Primitive("int32", "i", 4, 0)
INT64: Final[Primitive[int]] = Primitive("int64", "q", 8, 0)
FLOAT64: Final[Primitive[float]] = Primitive("float64", "d", 8, 0.0)
BOOLEAN: Final[Primitive[bool]] = Primitive("bool", "?", 1, False)
UUID_BYTES: Final[Primitive[UUID]] = Primitive("uuid", "16s", 16, ZERO_UUID)
STRING: Final[Primitive[str]] = Primitive("string", "", 0, "")
BYTES: Final[Primitive[bytes]] = Primitive("bytes", "", 0, b"")
RECORDS: Final[Primitive[Any]] = Primitive("records", "", 0, None)


@dataclass(frozen=True, slots=True)
class ArrayOf:
    """The type of an array field."""

    element: "Primitive[Any] | type[Struct]"


FieldType = Primitive[Any] | ArrayOf | type["Struct"]


@dataclass(frozen=True, slots=True)
class Field:
    """One field: where it exists, where it may be null, whether it is tagged, what its default is.

    `default` is None, a primitive's value, a struct that cannot be changed (`default_of`), or for
    arrays `EMPTY`: a fresh list each.
    """

    type: FieldType
    versions: VersionRange
    nullable: VersionRange
    default: object
    ignorable: bool
    tag: int | None


class _Empty:
    """The mark of a default that must be built for each object."""

    def __repr__(self) -> str:
        return "EMPTY"


EMPTY: Final = _Empty()


class RecordSource(Protocol):
    """Records that are elsewhere, such as a slice of a log file; only their length is encoded."""

    @property
    def length(self) -> int:
        """The size in bytes."""


RecordBytes = bytes | bytearray | memoryview


@dataclass_transform(kw_only_default=True)
class StructType(type):
    """Moves the declared fields of a class body to `__fields__` and makes slots of them."""

    __fields__: dict[str, Field]

    def __new__(
        mcs, name: str, bases: tuple[type, ...], body: dict[str, Any], **keywords: Any
    ) -> "StructType":
        fields = {key: value for key, value in body.items() if isinstance(value, Field)}
        rest = {key: value for key, value in body.items() if key not in fields}
        rest["__slots__"] = tuple(fields)
        rest["__fields__"] = fields
        return super().__new__(mcs, name, bases, rest, **keywords)


class Struct(metaclass=StructType):
    """A group of fields; equal to another of its class with equal fields. Not hashable."""

    __hash__ = None  # type: ignore[assignment]

    def __init__(self, **values: Any) -> None:
        # Most classes are never instantiated in a given process: the constructor is written on the
        # first call and takes the place of this one.
        cls = type(self)
        constructor = _write_constructor(cls)
        cls.__init__ = constructor  # type: ignore[method-assign]
        constructor(self, **values)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Struct) or type(other).__fields__ is not type(self).__fields__:
            return NotImplemented
        return all(getattr(self, name) == getattr(other, name) for name in type(self).__fields__)

    def __repr__(self) -> str:
        values = (f"{name}={getattr(self, name)!r}" for name in type(self).__fields__)
        return f"{type(self).__name__}({', '.join(values)})"


def _write_constructor(cls: type[Struct]) -> Any:
    """`__init__` of a struct: keyword-only, every field optional."""
    names: dict[str, object] = {"EMPTY": EMPTY}
    parameters = []
    lines = []
    for name, field in cls.__fields__.items():
        names[f"default_{name}"] = field.default
        parameters.append(f"{name}=default_{name}")
        value = name
        if field.default is EMPTY:
            value = f"[] if {name} is EMPTY else {name}"
        lines.append(f"    self.{name} = {value}")
    star = "*, " if parameters else ""
    head = f"def __init__(self, {star}{', '.join(parameters)}):"
    exec("\n".join([head, *lines, "    return None"]), names)  # noqa: S102 - our own declarations
    return names["__init__"]


def _refuse_change(self: Struct, name: str, value: object) -> None:
    raise AttributeError(f"this is the default {self!r}: set the field to a new one instead")


@cache
def default_of(cls: type[Struct]) -> Struct:
    """The one shared object of an unset field of a struct type.

    It is shared, because a Fetch response has several per partition, and nearly always unset; so
    it refuses to be changed.
    """
    value = cls()
    body = {"__setattr__": _refuse_change, "__qualname__": cls.__qualname__}
    fixed = StructType(cls.__name__, (cls,), body)
    fixed.__fields__ = cls.__fields__
    object.__setattr__(value, "__class__", fixed)
    return value


class Message(Struct):
    """A struct that travels by itself, with the versions it exists in."""

    api_key: ClassVar[int]
    versions: ClassVar[VersionRange]
    flexible: ClassVar[VersionRange]

    def __init_subclass__(
        cls, *, api_key: int = -1, versions: str = "none", flexible: str = "none"
    ) -> None:
        super().__init_subclass__()
        cls.api_key = api_key
        cls.versions = VersionRange.parse(versions)
        cls.flexible = VersionRange.parse(flexible)


class Request(Message):
    """What a client asks."""


class Response(Message):
    """What a broker answers."""


def _field(
    kind: FieldType,
    versions: str,
    *,
    default: object,
    ignorable: bool = False,
    tag: int | None = None,
    nullable: str | None = None,
) -> Any:
    return Field(
        type=kind,
        versions=VersionRange.parse(versions),
        nullable=VersionRange.parse(nullable or "none"),
        default=default,
        ignorable=ignorable,
        tag=tag,
    )


def int8(
    versions: str, *, default: int = 0, ignorable: bool = False, tag: int | None = None
) -> int:
    """A field of type int8."""
    return cast("int", _field(INT8, versions, default=default, ignorable=ignorable, tag=tag))


def int16(
    versions: str, *, default: int = 0, ignorable: bool = False, tag: int | None = None
) -> int:
    """A field of type int16."""
    return cast("int", _field(INT16, versions, default=default, ignorable=ignorable, tag=tag))


def int32(
    versions: str, *, default: int = 0, ignorable: bool = False, tag: int | None = None
) -> int:
    """A field of type int32."""
    return cast("int", _field(INT32, versions, default=default, ignorable=ignorable, tag=tag))


def int64(
    versions: str, *, default: int = 0, ignorable: bool = False, tag: int | None = None
) -> int:
    """A field of type int64."""
    return cast("int", _field(INT64, versions, default=default, ignorable=ignorable, tag=tag))


def float64(
    versions: str, *, default: float = 0.0, ignorable: bool = False, tag: int | None = None
) -> float:
    """A field of type float64."""
    return cast("float", _field(FLOAT64, versions, default=default, ignorable=ignorable, tag=tag))


def boolean(
    versions: str, *, default: bool = False, ignorable: bool = False, tag: int | None = None
) -> bool:
    """A field of type boolean."""
    return cast("bool", _field(BOOLEAN, versions, default=default, ignorable=ignorable, tag=tag))


def uuid(versions: str, *, ignorable: bool = False, tag: int | None = None) -> UUID:
    """An id of sixteen bytes; all zeros by default."""
    return cast(
        "UUID", _field(UUID_BYTES, versions, default=ZERO_UUID, ignorable=ignorable, tag=tag)
    )


@overload
def string(
    versions: str, *, default: str = "", ignorable: bool = False, tag: int | None = None
) -> str: ...
@overload
def string(
    versions: str,
    *,
    nullable: str,
    default: str | None = "",
    ignorable: bool = False,
    tag: int | None = None,
) -> str | None: ...
def string(
    versions: str,
    *,
    nullable: str | None = None,
    default: str | None = "",
    ignorable: bool = False,
    tag: int | None = None,
) -> str | None:
    """Text in UTF-8."""
    return cast(
        "str",
        _field(STRING, versions, default=default, ignorable=ignorable, tag=tag, nullable=nullable),
    )


@overload
def binary(
    versions: str, *, default: bytes = b"", ignorable: bool = False, tag: int | None = None
) -> bytes: ...
@overload
def binary(
    versions: str,
    *,
    nullable: str,
    default: bytes | None = b"",
    ignorable: bool = False,
    tag: int | None = None,
) -> bytes | None: ...
def binary(
    versions: str,
    *,
    nullable: str | None = None,
    default: bytes | None = b"",
    ignorable: bool = False,
    tag: int | None = None,
) -> bytes | None:
    """Bytes, copied out of the frame."""
    return cast(
        "bytes",
        _field(BYTES, versions, default=default, ignorable=ignorable, tag=tag, nullable=nullable),
    )


def record_data(versions: str, *, nullable: str | None = None) -> RecordBytes | None:
    """Record batches, as a view into the frame they came in."""
    return cast("RecordBytes", _field(RECORDS, versions, default=None, nullable=nullable))


def record_source(
    versions: str, *, nullable: str | None = None
) -> RecordBytes | RecordSource | None:
    """Record batches to be sent: bytes, or something that `encode_parts` passes through."""
    return cast("RecordBytes", _field(RECORDS, versions, default=None, nullable=nullable))


@overload
def array(
    element: Primitive[T] | type[T],
    versions: str,
    *,
    ignorable: bool = False,
    tag: int | None = None,
) -> list[T]: ...
@overload
def array(
    element: Primitive[T] | type[T],
    versions: str,
    *,
    nullable: str,
    default: Sequence[T] | None = (),
    ignorable: bool = False,
    tag: int | None = None,
) -> list[T] | None: ...
def array(
    element: Any,
    versions: str,
    *,
    nullable: str | None = None,
    default: Sequence[Any] | None = (),
    ignorable: bool = False,
    tag: int | None = None,
) -> list[Any] | None:
    """A list of primitives or structs; empty by default, or null with `default=None`."""
    start = None if default is None else EMPTY
    return cast(
        "list[Any]",
        _field(
            ArrayOf(element),
            versions,
            default=start,
            ignorable=ignorable,
            tag=tag,
            nullable=nullable,
        ),
    )


@overload
def struct(
    kind: type[T], versions: str, *, ignorable: bool = False, tag: int | None = None
) -> T: ...
@overload
def struct(
    kind: type[T],
    versions: str,
    *,
    nullable: str,
    ignorable: bool = False,
    tag: int | None = None,
) -> T | None: ...
def struct(
    kind: Any,
    versions: str,
    *,
    nullable: str | None = None,
    ignorable: bool = False,
    tag: int | None = None,
) -> Any:
    """A struct in place: with its own defaults, or null by default where it may be null.

    A tagged one has its own defaults even there: Kafka writes an explicit null.
    """
    start = default_of(kind) if nullable is None or tag is not None else None
    return _field(kind, versions, default=start, ignorable=ignorable, tag=tag, nullable=nullable)
