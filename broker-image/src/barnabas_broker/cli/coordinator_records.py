"""The records of the coordinators' topics as text, as Apache's DumpLogSegments prints them.

`offsets` is its OffsetsMessageParser, `transactions` its TransactionLogMessageParser. Beyond what
Kafka 3.9 knows, the expressions of KIP-848 groups are decoded, as Kafka 4 does; the partitions of a
transaction are sorted, where Apache's tool prints a hash set.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from barnabas_broker.coordinator.group.records import MESSAGES
from barnabas_broker.coordinator.transaction.records import KIND as TRANSACTIONS
from barnabas_broker.log.dump import RecordRow
from barnabas_kafka.protocol import json_converter
from barnabas_kafka.protocol.codec import DecodeError
from barnabas_kafka.protocol.consumer_protocol import read_assignment, read_subscription
from barnabas_kafka.protocol.embedded import GroupMetadataValue, unpack, version_of
from barnabas_kafka.protocol.schema import Message

DELETED = "<DELETE>"
CONSUMER_PROTOCOL = "consumer"

Texts = tuple[str, str | None]
"""Key and value; without a value none is printed."""

Decoder = Callable[[RecordRow], Texts]


class NoKeyError(Exception):
    """The record has no key: the log is of another topic."""

    def __init__(self) -> None:
        super().__init__("the record has no key: the decoder is of another topic")


def offsets(record: RecordRow) -> Texts:
    """A record of `__consumer_offsets`; raises NoKeyError."""
    if record.key is None:
        raise NoKeyError
    try:
        return _offsets(record, record.key)
    except DecodeError as error:
        return f"Error at offset {record.offset}, skipping. {error}", None


def _offsets(record: RecordRow, key: bytes) -> Texts:
    kind = version_of(key)
    if kind not in MESSAGES:
        return f"Unknown record type {kind} at offset {record.offset}, skipping.", None
    key_class, value_class = MESSAGES[kind]
    data = json_converter.write(unpack(key_class, key), kind)
    shown = json_converter.dumps({"type": str(kind), "data": data})
    if record.value is None:
        return shown, DELETED
    version = version_of(record.value)
    data = _value(unpack(value_class, record.value), version)
    return shown, json_converter.dumps({"version": str(version), "data": data})


def _value(message: Message, version: int) -> dict[str, Any]:
    data = json_converter.write(message, version)
    if isinstance(message, GroupMetadataValue) and message.protocol_type == CONSUMER_PROTOCOL:
        for member, fields in zip(message.members, data["members"], strict=True):
            _replace(fields, "subscription", member.subscription, read_subscription)
            _replace(fields, "assignment", member.assignment, read_assignment)
    return data


def _replace(
    fields: dict[str, Any], name: str, content: bytes, read: Callable[[bytes], Message]
) -> None:
    """Print what consumers sent each other by its fields; what cannot be read stays as it is."""
    if not content:
        return
    try:
        message = read(content)
    except DecodeError:
        return
    fields[name] = json_converter.write(message, min(version_of(content), message.versions.max))


def transactions(record: RecordRow) -> Texts:
    """A record of `__transaction_state`; raises NoKeyError."""
    if record.key is None:
        raise NoKeyError
    try:
        found = TRANSACTIONS.decode(record.key, record.value)
        if found is None:
            return f"unknown::version={version_of(record.key)}", None
    except DecodeError as error:
        return f"Error at offset {record.offset}, skipping. {error}", None
    key = f"transaction_metadata::transactionalId={found.transactional_id}"
    it = found.transaction
    if it is None:
        return key, DELETED
    partitions = ",".join(str(each) for each in sorted(it.partitions))
    return key, (
        f"producerId:{it.producer_id},producerEpoch:{it.epoch},state={it.state.value},"
        f"partitions=[{partitions}],txnLastUpdateTimestamp={it.updated_ms},"
        f"txnTimeoutMs={it.timeout_ms}"
    )
