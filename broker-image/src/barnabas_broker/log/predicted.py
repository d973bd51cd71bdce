"""How much work a batch may be, known before any of it is done and whatever it claims of itself."""

from collections.abc import Mapping
from typing import Final

from barnabas_kafka.records.batch import ATTRIBUTES_POSITION, HEADER_SIZE, MAGIC_POSITION
from barnabas_kafka.records.compression import Codec

RATIOS: Final[Mapping[int, int]] = {
    Codec.NONE: 1,
    Codec.GZIP: 1032,
    Codec.SNAPPY: 22,
    Codec.LZ4: 255,
}
"""What a byte can become at most: Deflate's two bits for 258, Snappy's three bytes for 64, LZ4's
one for 255. Zstandard's blocks of one repeated byte have no such bound."""


def most_inflated(records: bytes | bytearray | memoryview, *, limit: int) -> int:
    """The bytes that records may be when inflated, of which the first `limit` are scanned.

    What a batch says of its size is the sender's to invent, so it is not asked.
    """
    size = len(records)
    if size < HEADER_SIZE or records[MAGIC_POSITION] != 2:
        return limit
    ratio = RATIOS.get(records[ATTRIBUTES_POSITION + 1] & 0x07)
    return limit if ratio is None else min(limit, ratio * size)
