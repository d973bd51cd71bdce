"""`consume --format`: kcat's tokens, with which each record is printed.

`%s` value, `%k` key, `%t` topic, `%p` partition, `%o` offset, `%T` timestamp in milliseconds (-1:
none), `%h` headers as `name=value,…`, `%S` and `%K` lengths of value and key in bytes (-1: null),
`%R` the length of the value as four bytes, `%%` a percent sign. `%v` and `%V` are rpk's names of
`%s` and `%S`. Escapes are `\\n`, `\\r`, `\\t`, `\\0`, `\\\\` and `\\xHH`. Nothing is added behind a
record.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from barnabas_broker.cli.errors import InputError
from barnabas_broker.cli.records import header_pairs

if TYPE_CHECKING:
    from confluent_kafka import Message

Data = str | bytes | None
Writer = Callable[["Message"], bytes]
Token = Callable[["Message", bytes], bytes]

NULL_HEADER: Final = b"NULL"
ESCAPES: Final = {"n": b"\n", "r": b"\r", "t": b"\t", "0": b"\0", "\\": b"\\"}
_PIECES: Final = re.compile(r"%(?P<letter>.?)|\\(?:x(?P<hex>[0-9a-fA-F]{2})|(?P<escape>.?))", re.S)


def _value(message: Message, null: bytes) -> bytes:
    return _bytes(message.value(), null)


def _value_size(message: Message, _: bytes) -> bytes:
    return b"%d" % _size(message.value())


def _headers(message: Message, _: bytes) -> bytes:
    return b",".join(
        name.encode() + b"=" + _bytes(value, NULL_HEADER) for name, value in header_pairs(message)
    )


TOKENS: Final[dict[str, Token]] = {
    "s": _value,
    "v": _value,
    "S": _value_size,
    "V": _value_size,
    "R": lambda message, _: struct.pack(">i", _size(message.value())),
    "k": lambda message, null: _bytes(message.key(), null),
    "K": lambda message, _: b"%d" % _size(message.key()),
    "T": lambda message, _: b"%d" % (message.timestamp()[1] if message.timestamp()[0] else -1),
    "t": lambda message, _: (message.topic() or "").encode(),
    "p": lambda message, _: b"%d" % (message.partition() or 0),
    "o": lambda message, _: b"%d" % (message.offset() or 0),
    "h": _headers,
}


def parse_format(text: str, null: bytes = b"") -> Writer:
    """What makes bytes of a record; InputError naming every token and escape that is wrong."""
    parts: list[bytes | Token] = []
    problems: list[str] = []
    end = 0
    for found in _PIECES.finditer(text):
        parts.append(text[end : found.start()].encode())
        end = found.end()
        if found["hex"] is not None:
            parts.append(bytes.fromhex(found["hex"]))
        elif found["letter"] == "%":
            parts.append(b"%")
        elif found["letter"] is not None and found["letter"] in TOKENS:
            parts.append(TOKENS[found["letter"]])
        elif found["escape"] is not None and found["escape"] in ESCAPES:
            parts.append(ESCAPES[found["escape"]])
        else:
            problems.append(found[0])
    parts.append(text[end:].encode())
    if problems:
        known = " ".join(
            [*(f"%{letter}" for letter in (*TOKENS, "%")), *map("\\{}".format, ESCAPES)]
        )
        raise InputError(f"--format: there is no {', '.join(problems)}; there are {known} \\xHH")
    return lambda message: b"".join(
        part if isinstance(part, bytes) else part(message, null) for part in parts
    )


def _bytes(data: Data, null: bytes) -> bytes:
    if data is None:
        return null
    return data.encode() if isinstance(data, str) else data


def _size(data: Data) -> int:
    return -1 if data is None else len(_bytes(data, b""))
