"""A response as clients, and brokers as clients of brokers, read it.

Input: API (an index), version (from the first), then the response.
"""

from __future__ import annotations

import random
from collections.abc import Iterator

from barnabas_kafka.protocol import codec
from barnabas_kafka.protocol.headers import decode_response_header, encode_response_header
from fuzz.messages import APIS, random_message
from fuzz.oracle import promise, read_and_write


def check(data: bytes) -> None:
    """Decoding ends in a value or in DecodeError, and what was decoded is what is encoded."""
    if len(data) < 2:
        return
    kind = APIS[data[0] % len(APIS)]
    version = kind.versions.min + data[1] % (kind.versions.max - kind.versions.min + 1)
    try:
        _, position = decode_response_header(data, kind.response_header_version(version), 2)
    except codec.DecodeError:
        return
    promise(position <= len(data), kind, version, position)
    read_and_write(kind.response, data, version, position)


def seeds() -> Iterator[bytes]:
    """Each version of each response once."""
    chance = random.Random(2)
    for index, kind in enumerate(APIS):
        for version in range(kind.versions.min, kind.versions.max + 1):
            head = bytes((index, version - kind.versions.min))
            head += encode_response_header(7, kind.response_header_version(version))
            yield head + codec.encode(random_message(kind.response, version, chance), version)
