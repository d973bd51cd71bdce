"""How a consumed record is printed: as text in Kafka's manner, or as a JSON line."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from barnabas_broker.cli.errors import InputError
from barnabas_broker.cli.output import record_line

if TYPE_CHECKING:
    from confluent_kafka import Message

    Part = Callable[[Message, bytes], bytes]
else:
    Part = Callable

TIMESTAMP_KINDS = ("NoTimestamp", "CreateTime", "LogAppendTime")


def _timestamp(message: Message, _: bytes) -> bytes:
    kind, milliseconds = message.timestamp()
    return (
        b"NO_TIMESTAMP" if kind == 0 else b"%s:%d" % (TIMESTAMP_KINDS[kind].encode(), milliseconds)
    )


def _headers(message: Message, null: bytes) -> bytes:
    pairs = header_pairs(message)
    return b",".join(b"%s:%s" % (_data(name), _nullable(value, null)) for name, value in pairs) or (
        b"NO_HEADERS"
    )


# In the order in which they are printed, which is that of Kafka's console consumer.
PARTS: dict[str, Part] = {
    "timestamp": _timestamp,
    "partition": lambda message, _: b"Partition:%d" % (message.partition() or 0),
    "offset": lambda message, _: b"Offset:%d" % (message.offset() or 0),
    "headers": _headers,
    "key": lambda message, null: _nullable(message.key(), null),
    "value": lambda message, null: _nullable(message.value(), null),
}


def parse_parts(text: str) -> list[str]:
    """`key,value` as names of parts, in the order of printing."""
    names = {name.strip() for name in text.split(",")}
    if unknown := sorted(names - set(PARTS)):
        raise InputError(f"--print {unknown[0]}: a record has {', '.join(PARTS)}")
    return [name for name in PARTS if name in names]


def as_text(message: Message, parts: Sequence[str], separator: bytes, null: bytes) -> bytes:
    """The chosen parts of a record on one line; the bytes of key and value as they are."""
    return separator.join(PARTS[part](message, null) for part in parts) + b"\n"


def as_json(message: Message) -> bytes:
    """Everything in a record as one line; what is no UTF-8 is shown as {"base64": …}."""
    kind, milliseconds = message.timestamp()
    record = {
        "topic": message.topic(),
        "partition": message.partition(),
        "offset": message.offset(),
        "leader_epoch": message.leader_epoch(),
        "timestamp": milliseconds if kind else None,
        "timestamp_type": TIMESTAMP_KINDS[kind] if kind else None,
        "headers": [[name, json_value(value)] for name, value in header_pairs(message)],
        "key": json_value(message.key()),
        "value": json_value(message.value()),
    }
    return record_line(json.dumps(record, ensure_ascii=False)).encode() + b"\n"


def header_pairs(message: Message) -> list[tuple[str, str | bytes | None]]:
    headers = message.headers() or []
    return list(headers.items()) if isinstance(headers, dict) else list(headers)


def json_value(data: str | bytes | None) -> Any:
    """Text as it is, other bytes as {"base64": …}."""
    if data is None or isinstance(data, str):
        return data
    try:
        return data.decode()
    except UnicodeDecodeError:
        return {"base64": base64.b64encode(data).decode()}


def _nullable(data: str | bytes | None, null: bytes) -> bytes:
    return null if data is None else _data(data)


def _data(data: str | bytes) -> bytes:
    return data.encode() if isinstance(data, str) else data
