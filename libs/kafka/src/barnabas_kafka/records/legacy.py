"""Message sets of formats 0 and 1, and conversion between them and format 2.

Clients before 0.11 know only these. A message set is a row of entries::

    offset   int64     of the message; of the *last* inner message if compressed
    size     int32     bytes behind this field
    CRC      uint32    CRC-32 (zlib's, not Castagnoli's) of everything behind it
    magic    int8      0 or 1
    attrs    int8      bits 0-2 codec, bit 3 timestamp type (magic 1)
    time     int64     only magic 1 (KIP-32)
    key      int32 length (-1 null) and bytes
    value    int32 length (-1 null) and bytes

A compressed entry is a *wrapper*: its key is null and its value a compressed message set. Inside,
magic 0 holds absolute offsets. Magic 1 holds offsets relative to the first inner message, so that
a broker can assign the wrapper's offset without recompressing (KIP-31); the wrapper's offset minus
the last relative offset is the first absolute one. Wrappers do not nest.

Converting down loses headers, producer state and transactions: control batches are left out, data
batches of transactions stay, committed or not, as old consumers know no isolation.
"""

import struct
import zlib
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from barnabas_kafka.records.batch import (
    APPEND_TIME_FLAG,
    CODEC_MASK,
    LOG_OVERHEAD,
    MAGIC_POSITION,
    CorruptBatch,
    Record,
    TimestampType,
    parse_header,
)
from barnabas_kafka.records.batch import records as records_of_batch
from barnabas_kafka.records.compression import (
    DEFAULT_LIMIT,
    Codec,
    CompressionError,
    DecompressedTooLarge,
    compress,
    decompress,
)

#: How many messages a wrapper may hold. Each becomes an object, so that a small wrapper full of
#: empty messages would otherwise take a thousand times its size in memory.
WRAPPED_LIMIT = 100_000

#: The shortest entry body: CRC, magic, attributes and two null lengths.
SMALLEST_BODY = 14

_OFFSET_AND_SIZE = struct.Struct(">qi")
_CRC_MAGIC_ATTRIBUTES = struct.Struct(">Ibb")
_INT32 = struct.Struct(">i")
_INT64 = struct.Struct(">q")


class UnsupportedConversion(ValueError):  # noqa: N818 (named as the errors beside it)
    """A batch that an older format cannot express: zstd exists only in format 2."""


class Message(NamedTuple):
    """One entry of a message set, compressed or not; `timestamp` is -1 in magic 0."""

    offset: int
    timestamp: int
    key: bytes | None
    value: bytes | None
    magic: int
    attributes: int

    @property
    def codec(self) -> Codec:
        """The codec of the value; raises CorruptBatch for one format 0 and 1 do not know."""
        number = self.attributes & CODEC_MASK
        if number > Codec.LZ4:
            raise CorruptBatch(f"codec {number} does not exist in magic {self.magic}")
        return Codec(number)

    @property
    def timestamp_type(self) -> TimestampType:
        """Whether the timestamp is the producer's or the broker's."""
        return TimestampType(self.magic > 0 and bool(self.attributes & APPEND_TIME_FLAG))


def batch_size(buffer: bytes | bytearray | memoryview, position: int = 0) -> int | None:
    """The size of the entry or batch of any magic at `position`; None if it is cut short.

    Raises CorruptBatch for a size below that of any message, or a magic other than 0, 1 and 2.
    """
    left = len(buffer) - position
    if left < LOG_OVERHEAD:
        return None
    (body,) = _INT32.unpack_from(buffer, position + 8)
    if body < SMALLEST_BODY:
        raise CorruptBatch(f"a message of {body} bytes at {position} is below any message")
    if left <= MAGIC_POSITION:
        return None
    magic = buffer[position + MAGIC_POSITION]
    if magic > 2:
        raise CorruptBatch(f"magic {magic} at {position} where 0, 1 or 2 was expected")
    size: int = body + LOG_OVERHEAD
    return size if size <= left else None


def batch_positions(buffer: bytes | bytearray | memoryview) -> Iterator[tuple[int, int, int]]:
    """The (position, size, magic) of each complete entry or batch, of whatever magic.

    A last one that is cut short is left out, as in a Fetch response. Raises CorruptBatch.
    """
    position = 0
    while (size := batch_size(buffer, position)) is not None:
        yield position, size, buffer[position + MAGIC_POSITION]
        position += size


def parse_message(buffer: bytes | bytearray | memoryview, position: int, size: int) -> Message:
    """The entry of `size` bytes at `position`, its CRC verified.

    Raises CorruptBatch for a wrong checksum and for lengths that do not add up.
    """
    offset, body = _OFFSET_AND_SIZE.unpack_from(buffer, position)
    end = position + LOG_OVERHEAD + body
    if body < SMALLEST_BODY or end != position + size or end > len(buffer):
        raise CorruptBatch(f"the message at {position} does not have {size} bytes")
    crc, magic, attributes = _CRC_MAGIC_ATTRIBUTES.unpack_from(buffer, position + LOG_OVERHEAD)
    if magic not in (0, 1):
        raise CorruptBatch(f"magic {magic} at {position} where 0 or 1 was expected")
    computed = zlib.crc32(memoryview(buffer)[position + MAGIC_POSITION : end])
    if crc != computed:
        raise CorruptBatch(f"the message at {position} states CRC {crc:#x} and has {computed:#x}")
    field = position + LOG_OVERHEAD + _CRC_MAGIC_ATTRIBUTES.size
    timestamp = -1
    if magic == 1:
        if end - field < _INT64.size:
            raise CorruptBatch(f"the message at {position} ends in its timestamp")
        (timestamp,) = _INT64.unpack_from(buffer, field)
        field += _INT64.size
    key, field = _nullable_bytes(buffer, field, end)
    value, field = _nullable_bytes(buffer, field, end)
    if field != end:
        raise CorruptBatch(f"{end - field} bytes follow the value of the message at {position}")
    return Message(offset, timestamp, key, value, magic, attributes)


def _nullable_bytes(
    buffer: bytes | bytearray | memoryview, position: int, end: int
) -> tuple[bytes | None, int]:
    if end - position < _INT32.size:
        raise CorruptBatch("a message ends in the middle of a length")
    (length,) = _INT32.unpack_from(buffer, position)
    position += _INT32.size
    if length == -1:
        return None, position
    if length < 0 or length > end - position:
        raise CorruptBatch(f"a field of {length} bytes does not fit in its message")
    return bytes(memoryview(buffer)[position : position + length]), position + length


def parse_message_set(buffer: bytes | bytearray | memoryview) -> list[Message]:
    """The complete entries of a message set, wrappers left closed, CRCs verified."""
    return [parse_message(buffer, position, size) for position, size, _ in batch_positions(buffer)]


def open_wrapper(wrapper: Message, *, limit: int = DEFAULT_LIMIT) -> list[Message]:
    """The messages inside a compressed entry, with absolute offsets and effective timestamps.

    Raises CorruptBatch for a null or empty content, an inner message of another magic or itself
    compressed, or one cut short; CompressionError for content that does not decompress.
    """
    if wrapper.value is None:
        raise CorruptBatch("a compressed message without a value")
    content = decompress(wrapper.codec, wrapper.value, limit=limit, magic=wrapper.magic)
    inner: list[Message] = []
    position = 0
    while position < len(content):
        size = batch_size(content, position)
        if size is None:
            raise CorruptBatch("a compressed message set is cut short")
        message = parse_message(content, position, size)
        if message.magic != wrapper.magic:
            raise CorruptBatch(f"magic {message.magic} inside a wrapper of {wrapper.magic}")
        if message.codec is not Codec.NONE:
            raise CorruptBatch("a compressed message inside a compressed message")
        if len(inner) == WRAPPED_LIMIT:
            raise DecompressedTooLarge(f"more than {WRAPPED_LIMIT} messages in a wrapper")
        inner.append(message)
        position += size
    if not inner:
        raise CorruptBatch("a compressed message set without messages")
    if wrapper.magic == 1:
        first_offset = wrapper.offset - inner[-1].offset
        inner = [message._replace(offset=first_offset + message.offset) for message in inner]
        if wrapper.timestamp_type is TimestampType.APPEND:
            inner = [message._replace(timestamp=wrapper.timestamp) for message in inner]
    return inner


def messages(
    buffer: bytes | bytearray | memoryview, *, limit: int = DEFAULT_LIMIT
) -> list[Message]:
    """Every message of a message set of magic 0 or 1, wrappers opened.

    Raises CorruptBatch for anything malformed, data that does not decompress included.
    """
    result: list[Message] = []
    for entry in parse_message_set(buffer):
        if entry.codec is Codec.NONE:
            result.append(entry)
            continue
        try:
            result.extend(open_wrapper(entry, limit=limit))
        except CompressionError as error:
            raise CorruptBatch(str(error)) from error
    return result


def encode_message(message: Message) -> bytes:
    """The bytes of one entry, checksum and all."""
    parts = [struct.pack(">bb", message.magic, message.attributes)]
    if message.magic == 1:
        parts.append(_INT64.pack(message.timestamp))
    for field in (message.key, message.value):
        parts.append(_INT32.pack(-1 if field is None else len(field)))
        parts.append(field or b"")
    body = b"".join(parts)
    header = _OFFSET_AND_SIZE.pack(message.offset, len(body) + 4)
    return header + zlib.crc32(body).to_bytes(4, "big") + body


def build_message_set(
    records: Sequence[Record],
    *,
    magic: int,
    codec: Codec = Codec.NONE,
    timestamp_type: TimestampType = TimestampType.CREATE,
) -> bytes:
    """A message set of `records` with their offsets; one wrapper around them if compressed.

    Headers are dropped; so are timestamps by magic 0. With append time, all records are expected
    to bear it. Raises UnsupportedConversion for zstd.
    """
    if codec is Codec.ZSTD:
        raise UnsupportedConversion(f"zstd does not exist in magic {magic}")
    if not records:
        return b""
    attributes = APPEND_TIME_FLAG if magic == 1 and timestamp_type else 0
    first_offset = records[0].offset if magic == 1 and codec is not Codec.NONE else 0
    content = b"".join(
        encode_message(
            Message(
                record.offset - first_offset,
                record.timestamp,
                record.key,
                record.value,
                magic,
                attributes,
            )
        )
        for record in records
    )
    if codec is Codec.NONE:
        return content
    packed = compress(codec, content, magic=magic)
    latest = max(record.timestamp for record in records)
    return encode_message(
        Message(records[-1].offset, latest, None, packed, magic, attributes | codec)
    )


def down_convert(
    buffer: bytes | bytearray | memoryview,
    *,
    magic: int,
    first_offset: int = 0,
    limit: int = DEFAULT_LIMIT,
) -> bytes:
    """The batches of `buffer`, of any format, as a message set of at most `magic` (0 or 1).

    For Fetch 0-1 (magic 0) and 2-3 (magic 1). Entries that are old enough pass unchanged. Records
    of uncompressed batches below `first_offset` are left out, since each becomes an entry of its
    own and some old clients take what they get. A batch cut short at the end is left out.

    A zstd batch ends the result, so that the client gets what lies before. Raises
    UnsupportedConversion where nothing does, and CorruptBatch for a malformed batch. The result
    may be empty: control batches have no older form.
    """
    view = memoryview(buffer)
    parts: list[bytes] = []
    for position, size, batch_magic in batch_positions(view):
        if batch_magic <= magic:
            parts.append(bytes(view[position : position + size]))
        elif batch_magic == 1:
            parts.append(_from_message(parse_message(view, position, size), first_offset, limit))
        else:
            batch = view[position : position + size]
            try:
                part = _from_batch(batch, magic=magic, first_offset=first_offset, limit=limit)
            except UnsupportedConversion:
                if not any(parts):
                    raise
                break
            parts.append(part)
    return b"".join(parts)


def _from_message(entry: Message, first_offset: int, limit: int) -> bytes:
    """An entry of magic 1 as magic 0."""
    codec = entry.codec
    if codec is Codec.NONE:
        return (
            encode_message(entry._replace(magic=0, attributes=0))
            if (entry.offset >= first_offset)
            else b""
        )
    try:
        inner = open_wrapper(entry, limit=limit)
    except CompressionError as error:
        raise CorruptBatch(str(error)) from error
    return build_message_set([Record(*message[:4]) for message in inner], magic=0, codec=codec)


def _from_batch(batch: memoryview, *, magic: int, first_offset: int, limit: int) -> bytes:
    """A batch of format 2 as `magic`."""
    header = parse_header(batch)
    codec = header.codec
    if header.is_control:
        return b""
    if codec is Codec.ZSTD:
        raise UnsupportedConversion("a zstd batch cannot be converted for an old client")
    records = records_of_batch(batch, limit=limit)
    if codec is Codec.NONE:
        records = [record for record in records if record.offset >= first_offset]
    return build_message_set(
        records, magic=magic, codec=codec, timestamp_type=header.timestamp_type
    )
