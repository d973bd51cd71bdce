"""Records for clients that do not know the format they are stored in.

Fetch versions 0 and 1 know only format 0, versions 2 and 3 only format 1, and zstd may be sent
from version 10 on (KIP-110). Conversion reads the records into memory, which no other fetch
does; `message.downconversion.enable=false` refuses it.
"""

from typing import Final

from barnabas_broker.log.files import FileSlice
from barnabas_broker.replica.topic_rules import TopicRules
from barnabas_kafka.errors import ErrorCode, KafkaError
from barnabas_kafka.records.batch import CorruptBatch
from barnabas_kafka.records.legacy import UnsupportedConversion, batch_positions, down_convert

FIRST_WITH_MAGIC_1: Final = 2
FIRST_WITH_MAGIC_2: Final = 4
FIRST_WITH_ZSTD: Final = 10

CONVERSION_BYTES_MAX: Final = 8 << 20
"""So many stored bytes are converted for one response, besides the first batch of each partition; a
client asks for the rest with its next fetch. Kafka converts while it sends
(`LazyDownConversionRecordsSend`). Here stored and converted bytes are in memory at once, so that
fetch.max.bytes, 55 MiB, would take three times as much."""

_BATCH_LENGTH_START: Final = 8
_BATCH_LENGTH_END: Final = 12
"""Where every format says how long an entry is, from there on."""


def records_for_version(
    stored: FileSlice, version: int, *, fetch_offset: int, rules: TopicRules, max_bytes: int
) -> FileSlice | bytes:
    """`stored` as a client of that Fetch version can read it.

    Of what may have to be converted the first batch, and as many as `max_bytes` hold.

    Raises KafkaError with UNSUPPORTED_COMPRESSION_TYPE where the topic is zstd and the client
    too old, UNSUPPORTED_VERSION where conversion is switched off.
    """
    if rules.compression_type == "zstd":
        raise KafkaError(ErrorCode.UNSUPPORTED_COMPRESSION_TYPE)
    if version >= FIRST_WITH_MAGIC_2:
        return stored
    magic = 1 if version >= FIRST_WITH_MAGIC_1 else 0
    data = _first_batches(stored, max_bytes)
    try:
        found = list(batch_positions(data))
        if all(stored_magic <= magic for _, _, stored_magic in found):
            return stored._replace(length=sum(size for _, size, _ in found))
        if not rules.down_conversion:
            raise KafkaError(ErrorCode.UNSUPPORTED_VERSION)
        return down_convert(data, magic=magic, first_offset=fetch_offset)
    except UnsupportedConversion as error:
        raise KafkaError(ErrorCode.UNSUPPORTED_COMPRESSION_TYPE, str(error)) from error
    except CorruptBatch as error:
        raise KafkaError(ErrorCode.CORRUPT_MESSAGE, str(error)) from error


def _first_batches(stored: FileSlice, max_bytes: int) -> bytes:
    """The first batch whole, and others as far as `max_bytes` go; the last may be cut short."""
    length = min(stored.length, max(max_bytes, _BATCH_LENGTH_END))
    data = stored.file.read(stored.position, length)
    first = _BATCH_LENGTH_END + int.from_bytes(data[_BATCH_LENGTH_START:_BATCH_LENGTH_END], "big")
    if first <= length:
        return data
    return stored.file.read(stored.position, min(first, stored.length))
