"""A request as it comes off the wire: header, then the body of the version it names."""

from __future__ import annotations

import random
from collections.abc import Iterator

from barnabas_kafka.protocol import codec
from barnabas_kafka.protocol.headers import (
    RequestHeader,
    decode_request_header,
    encode_request_header,
)
from barnabas_kafka.protocol.registry import api
from fuzz.messages import APIS, random_message
from fuzz.oracle import promise, read_and_write


def check(data: bytes) -> None:
    """Decoding ends in a value or in DecodeError, and what was decoded is what is encoded."""
    try:
        header, position = decode_request_header(data)
    except codec.DecodeError:
        return
    promise(8 <= position <= len(data), header, position)
    kind = api(header.api_key)
    if header.api_version not in kind.versions:
        return
    written = encode_request_header(header)
    promise(decode_request_header(written) == (header, len(written)), header, written)
    read_and_write(kind.request, data, header.api_version, position)


def seeds() -> Iterator[bytes]:
    """Each version of each request once."""
    chance = random.Random(1)
    for kind in APIS:
        for version in range(kind.versions.min, kind.versions.max + 1):
            head = encode_request_header(RequestHeader(kind.key, version, 7, "fuzz"))
            yield head + codec.encode(random_message(kind.request, version, chance), version)
