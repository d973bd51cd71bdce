"""What is compressed, by anybody's compressor or by none.

Input: codec and format (one byte), then what is to be decompressed.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from barnabas_kafka.records.compression import Codec, CompressionError, compress, decompress
from fuzz.oracle import promise

_LIMIT: Final = 1 << 16


def check(data: bytes) -> None:
    """It ends in CompressionError or in no more than the limit; what we compress comes back."""
    if not data:
        return
    codec = tuple(Codec)[data[0] % 5]
    magic = data[0] // 5 % 3
    try:
        content = decompress(codec, data[1:], limit=_LIMIT, magic=magic)
    except CompressionError:
        pass
    else:
        promise(len(content) <= _LIMIT, "beyond the limit", len(content))
    packed = compress(codec, data, magic=magic)
    promise(decompress(codec, packed, limit=_LIMIT, magic=magic) == data, "does not come back")


def seeds() -> Iterator[bytes]:
    """Short and repetitive content in each codec."""
    for number, codec in enumerate(Codec):
        for magic in (0, 1, 2):
            for content in (b"", b"abc", b"ab" * 500):
                yield bytes((number + 5 * magic,)) + compress(codec, content, magic=magic)
