"""Records of `__consumer_offsets`, and what members of groups send about themselves.

Input: the length of the key (255 for no value), then key and value.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Final

from barnabas_broker.coordinator.group import records
from barnabas_kafka.protocol import embedded
from barnabas_kafka.protocol.codec import DecodeError
from fuzz.messages import random_message
from fuzz.oracle import promise, read_and_write

_NO_VALUE: Final = 255
_PAIRS: Final = (
    (embedded.OffsetCommitKey, embedded.OffsetCommitValue),
    (embedded.GroupMetadataKey, embedded.GroupMetadataValue),
)


def check(data: bytes) -> None:
    """A record is read or refused with DecodeError; what is read is written and read the same."""
    if not data:
        return
    topics = embedded.subscribed_topics(data[1:])
    promise(topics is None or all(isinstance(t, str) for t in topics), "topics", topics)
    for version in range(4):
        read_and_write(embedded.ConsumerProtocolSubscription, data, version, 1)
    if data[0] == _NO_VALUE:
        key, value = data[1:], None
    else:
        key, value = data[1 : 1 + data[0]], data[1 + data[0] :]
    try:
        record = records.decode(key, value)
    except DecodeError:
        return
    if record is not None:
        again = records.decode(*records.encode(record))
        promise(again == record, "a record changes", record, again)


def seeds() -> Iterator[bytes]:
    """Keys and values of every version, and a subscription."""
    chance = random.Random(5)
    for keys, values in _PAIRS:
        for version in range(values.versions.max + 1):
            key = embedded.pack(random_message(keys, 2, chance), keys.versions.max)
            value = embedded.pack(random_message(values, version, chance), version)
            if len(key) < _NO_VALUE:
                yield bytes((len(key),)) + key + value
            yield b"\xff" + key
    for version in range(4):
        message = embedded.ConsumerProtocolSubscription(topics=["a", "b"])
        yield b"\0" + embedded.pack(message, version)
