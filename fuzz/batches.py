"""Random record batches of every format, and mending of what mutation broke.

A checksum keeps mutated bytes from everything behind it. `mend` puts a right one over whatever the
bytes have become, as a client would that means harm.
"""

from __future__ import annotations

import random
import struct
import zlib
from typing import Final

from barnabas_kafka.records.batch import HEADER_SIZE, Record
from barnabas_kafka.records.builder import RecordContent, build_batch
from barnabas_kafka.records.compression import Codec
from barnabas_kafka.records.crc import crc32c
from barnabas_kafka.records.legacy import build_message_set

NOW_MS: Final = 1_700_000_000_000
_OLD_CODECS: Final = (Codec.NONE, Codec.GZIP, Codec.SNAPPY, Codec.LZ4)


def random_batch(chance: random.Random, magic: int, codec: Codec) -> bytes:
    """A sound batch with one to four records."""
    count = chance.choice((1, 1, 2, 4))
    if magic == 2:
        contents: list[RecordContent] = [
            (NOW_MS + chance.randrange(5), _bytes(chance), _bytes(chance), _headers(chance))
            for _ in range(count)
        ]
        producer = chance.choice((-1, 1000))
        epoch = sequence = min(0, producer)
        return bytes(
            build_batch(
                contents,
                codec=codec,
                producer_id=producer,
                producer_epoch=epoch,
                base_sequence=sequence,
            )
        )
    records = [Record(n, NOW_MS, _bytes(chance), _bytes(chance)) for n in range(count)]
    old_codec = codec if codec in _OLD_CODECS else Codec.NONE
    return build_message_set(records, magic=magic, codec=old_codec)


def _bytes(chance: random.Random) -> bytes | None:
    return chance.choice((None, b"", b"key", chance.randbytes(9), bytes(100)))


def _headers(chance: random.Random) -> tuple[tuple[str, bytes | None], ...]:
    return chance.choice(((), (), (("h", b"v"),), (("h", None), ("é", b""))))


def mend(data: bytes) -> bytes:
    """The same with right length and checksum over all that follows, as far as it is a batch."""
    if len(data) <= 20:
        return data
    mended = bytearray(data)
    struct.pack_into(">i", mended, 8, len(data) - 12)
    if data[16] < 2:
        struct.pack_into(">I", mended, 12, zlib.crc32(memoryview(mended)[16:]))
    elif len(data) >= HEADER_SIZE:
        struct.pack_into(">I", mended, 17, crc32c(memoryview(mended)[21:]))
    return bytes(mended)
