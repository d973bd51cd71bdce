"""What is in a segment, in numbers: batches, records, bytes before and after compression, times.

The leader counts while it appends, for it has just seen every batch; whatever came another way (a
follower's compressed batches, compaction, a start that does not trust what was written down) is
counted from the file later, in a thread. One small file for each partition keeps the numbers over
a restart. It says of which size each segment was, and is believed only of one that still is: the
log decides, and a file that is missing or wrong costs a count.
"""

from __future__ import annotations

import json
import logging
import struct
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from barnabas_broker.log import batches
from barnabas_broker.log.contents import inflated
from barnabas_broker.log.files import DataFile, read_file, replace_file
from barnabas_kafka.records.batch import CorruptBatch
from barnabas_kafka.records.compression import Codec

_log = logging.getLogger(__name__)

#: The file in the directory of a partition; Apache Kafka's loader passes over it.
FILE_NAME: Final = "barnabas-segments"
VERSION: Final = 1

CODEC_MASK: Final = 0x07

_BASE_TIMESTAMP: Final = struct.Struct(">27xq")


@dataclass(slots=True)
class SegmentStats:
    """The numbers of one segment; `codecs` has a bit for each codec's number.

    `saved_bytes` is what compression made of it: bytes before less bytes after. Batches of control
    records count as others do. `first_timestamp` is that of the first batch's first record, -1
    without.
    """

    batches: int = 0
    records: int = 0
    saved_bytes: int = 0
    first_timestamp: int = -1
    codecs: int = 0

    def add(self, records: int, *, codec: int, saved_bytes: int, first_timestamp: int) -> None:
        """Count one batch."""
        if not self.batches:
            self.first_timestamp = first_timestamp
        self.batches += 1
        self.records += records
        self.saved_bytes += saved_bytes
        self.codecs |= 1 << codec

    def add_plain(self, records: int, data: bytearray | memoryview, *, batches: int = 1) -> None:
        """Count a batch that is not compressed, or a run of batches; this is the hot path."""
        if not self.batches:
            self.first_timestamp = _BASE_TIMESTAMP.unpack_from(data)[0]
        self.batches += batches
        self.records += records
        self.codecs |= 1

    @property
    def codec_names(self) -> list[str]:
        """The codecs of the batches, in lower case."""
        return [codec.name.lower() for codec in Codec if self.codecs & 1 << codec]


def count(file: DataFile) -> SegmentStats:
    """The numbers of a segment's file, read from its headers; compressed batches are inflated.

    What cannot be inflated counts as it is. Blocks for as long as the disk takes. Raises OSError
    and CorruptSegmentError.
    """
    stats = SegmentStats()
    for batch in batches.walk(file):
        codec = batch.attributes & CODEC_MASK
        records, saved_bytes = batch.record_count if batch.magic == 2 else 1, 0
        if codec:
            try:
                found = inflated(batch, file.read(batch.position, batch.size))
            except CorruptBatch:
                found = records, batch.size
            records, saved_bytes = found[0], found[1] - batch.size
        stats.add(
            records,
            codec=min(codec, max(Codec)),
            saved_bytes=saved_bytes,
            first_timestamp=batch.base_timestamp,
        )
    return stats


def encode(segments: Mapping[int, tuple[int, SegmentStats]]) -> bytes:
    """The file that says this of segments: size and numbers by base offset."""
    rows = [
        [base, size, each.batches, each.records, each.saved_bytes, each.first_timestamp,
         each.codecs]
        for base, (size, each) in segments.items()
    ]  # fmt: skip
    return json.dumps({"version": VERSION, "segments": rows}).encode()


def decode(data: bytes) -> dict[int, tuple[int, SegmentStats]]:
    """What `encode` was given; nothing of a file that is not what it made."""
    try:
        document = json.loads(data)
        if document["version"] != VERSION:
            return {}
        rows = [[int(number) for number in row] for row in document["segments"]]
        return {base: (size, SegmentStats(*numbers)) for base, size, *numbers in rows}
    except (ValueError, TypeError, KeyError, RecursionError):
        return {}


def read(directory: Path) -> Mapping[int, tuple[int, SegmentStats]]:
    """What the file of a partition holds, as `decode`; nothing where there is none."""
    try:
        return decode(read_file(directory / FILE_NAME))
    except OSError:
        return {}


def write(directory: Path, known: Mapping[int, tuple[int, SegmentStats]]) -> None:
    """Write the file of a partition.

    Without it segments are counted again; others will report what is wrong with the disk.
    """
    try:
        replace_file(directory / FILE_NAME, encode(known), durable=False)
    except OSError as error:
        _log.debug("%s is not written: %s", directory / FILE_NAME, error)
