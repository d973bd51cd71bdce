"""How the console consumer prints a record: Kafka's DefaultMessageFormatter, and its properties."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

import click

from barnabas_broker.cli.records import PARTS, header_pairs

if TYPE_CHECKING:
    from confluent_kafka import Message

DEFAULT = "DefaultMessageFormatter"
NOTHING = "NoOpMessageFormatter"
PREFIXES = ("", "kafka.tools.", "org.apache.kafka.tools.consumer.")
STRINGS = "org.apache.kafka.common.serialization.StringDeserializer"
TEXTS = {
    "key.separator": b"\t",
    "line.separator": b"\n",
    "headers.separator": b",",
    "null.literal": b"null",
}
DESERIALIZERS = {"key.deserializer", "value.deserializer", "headers.deserializer"}

Writer = Callable[["Message"], bytes]


def writer(formatter: str, given: Mapping[str, str]) -> Writer:
    """What makes bytes of a record; click.UsageError naming a formatter or property not known."""
    short = next(formatter.removeprefix(p) for p in reversed(PREFIXES) if formatter.startswith(p))
    if short == NOTHING:
        return lambda _: b""
    if short != DEFAULT:
        raise click.UsageError(
            f"--formatter {formatter} is not supported: {DEFAULT}, {NOTHING} are"
        )
    prints = {f"print.{name}": name == "value" for name in PARTS}
    texts = dict(TEXTS)
    for name, value in given.items():
        if name in prints:
            prints[name] = value.strip().lower() == "true"
        elif name in texts:
            texts[name] = value.replace("\\t", "\t").replace("\\n", "\n").encode()
        elif not (name in DESERIALIZERS and value == STRINGS):
            known = ", ".join([*prints, *texts])
            raise click.UsageError(f"--property {name}={value} is not supported: {known} are")
    parts = [name for name in PARTS if prints[f"print.{name}"]]
    return _writer(parts, texts)


def _writer(parts: list[str], texts: Mapping[str, bytes]) -> Writer:
    between, null = texts["key.separator"], texts["null.literal"]

    def part(name: str, message: Message) -> bytes:
        if name != "headers":
            return PARTS[name](message, null)
        pairs = header_pairs(message)
        shown = [b"%s:%s" % (key.encode(), _bytes(value, null)) for key, value in pairs]
        return texts["headers.separator"].join(shown) or b"NO_HEADERS"

    def write(message: Message) -> bytes:
        return between.join(part(name, message) for name in parts) + texts["line.separator"]

    return write


def _bytes(value: str | bytes | None, null: bytes) -> bytes:
    if value is None:
        return null
    return value.encode() if isinstance(value, str) else value
