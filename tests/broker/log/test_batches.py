"""Walking segment files of all formats by their headers."""

import struct
from pathlib import Path

import pytest

from barnabas_broker.log import batches
from barnabas_broker.log.batches import CorruptSegmentError
from barnabas_broker.log.contents import records_of
from barnabas_broker.log.files import DataFile
from barnabas_broker.log.predicted import most_inflated
from barnabas_kafka.records.builder import build_batch
from barnabas_kafka.records.compression import Codec
from barnabas_kafka.records.legacy import Message, encode_message
from tests.broker.log.samples import NOW, batch_of

OLD = encode_message(Message(0, -1, None, b"", 0, 0))
NEWER = encode_message(Message(1, NOW, b"k", b"v", 1, 0))


def file_of(tmp_path: Path, data: bytes) -> DataFile:
    path = tmp_path / "0.log"
    path.write_bytes(data)
    return DataFile.open(path)


def test_a_file_may_mix_formats(tmp_path: Path) -> None:
    """A log written by three generations of brokers, back to back."""
    data = OLD + NEWER + batch_of(3, offset=2, leader_epoch=5, producer=(9, 1, 4))
    found = list(batches.walk(file_of(tmp_path, data)))
    assert [batch.magic for batch in found] == [0, 1, 2]
    assert [batch.last_offset for batch in found] == [0, 1, 4]
    assert [batch.leader_epoch for batch in found] == [-1, -1, 5]
    assert [batch.max_timestamp for batch in found] == [-1, NOW, NOW + 2]
    assert [batch.next_position for batch in found][-1] == len(data)
    last = found[2]
    assert (last.producer_id, last.producer_epoch, last.base_sequence) == (9, 1, 4)
    assert last.record_count == 3


def test_the_shortest_message_ends_a_file(tmp_path: Path) -> None:
    """It is shorter than the header of a batch, and whole."""
    file = file_of(tmp_path, NEWER + OLD)
    assert len(list(batches.walk(file))) == 2
    assert len(list(batches.scan(file))) == 2


@pytest.mark.parametrize("walk", [batches.walk, batches.scan])
def test_a_torn_end_ends_the_walk(tmp_path: Path, walk: object) -> None:
    """At every byte of the last batch."""
    assert callable(walk)
    whole = batch_of(2)
    for size in range(len(whole)):
        assert len(list(walk(file_of(tmp_path, whole + whole[:size])))) == 1


def test_windows_are_read_on(tmp_path: Path) -> None:
    """Many small batches, and ones larger than any window, come out alike from walk and scan."""
    sizes = [1, 9000, 30, *range(200), 2_000_000, 5]
    data = b"".join(batch_of(size=size, offset=number) for number, size in enumerate(sizes))
    file = file_of(tmp_path, data)
    walked = list(batches.walk(file))
    assert [batch.base_offset for batch in walked] == list(range(len(sizes)))
    assert [batch for batch, _ in batches.scan(file)] == walked
    assert b"".join(bytes(content) for _, content in batches.scan(file)) == data


def test_finding_equals_walking(tmp_path: Path) -> None:
    """The quick search gives what the walk would."""
    data = b"".join(batch_of(3, size=50, offset=number * 5) for number in range(300))
    file = file_of(tmp_path, data)
    walked = list(batches.walk(file))
    for offset in (0, 2, 3, 4, 5, 700, 1497):
        expected = next(batch for batch in walked if batch.last_offset >= offset)
        assert batches.find(file, 0, offset) == expected
    assert batches.find(file, 0, 1498) is None
    size = walked[0].size
    for limit in (0, 1, size - 1, size, 5 * size + 3, len(data), len(data) + 9):
        assert batches.last_boundary(file, 0, limit) == min(limit, len(data)) // size * size


@pytest.mark.parametrize(
    ("damage", "reason"),
    [
        ((8, struct.pack(">i", 0)), "shorter than any record"),
        ((8, struct.pack(">i", -5)), "shorter than any record"),
        ((8, struct.pack(">i", 20)), "shorter than a batch header"),
        ((16, b"\x07"), "magic 7"),
        ((70, b"\xff"), "CRC"),
    ],
)
def test_corrupt_batches_are_refused(
    tmp_path: Path, damage: tuple[int, bytes], reason: str
) -> None:
    """With its position, before anything is allocated by its length."""
    good = batch_of(2)
    position, content = damage
    data = bytearray(good + good)
    start = len(good) + position
    data[start : start + len(content)] = content
    with pytest.raises(CorruptSegmentError, match=reason) as caught:
        list(batches.scan(file_of(tmp_path, bytes(data))))
    assert caught.value.position == len(good)


def test_a_length_beyond_the_file_is_a_torn_end(tmp_path: Path) -> None:
    """Two gigabytes promised by a flipped bit are not read."""
    data = bytearray(batch_of())
    data[8:12] = struct.pack(">i", 2**31 - 1)
    assert list(batches.scan(file_of(tmp_path, bytes(data)))) == []


@pytest.mark.parametrize(
    "data",
    [
        batch_of(1, offset=5),
        encode_message(Message(5, NOW, b"key", b"v" * 20, 1, 0)),
        encode_message(Message(5, NOW, b"key", b"v" * 20, 0, 0)),
    ],
)
def test_every_format_gives_offset_key_and_value(data: bytes) -> None:
    """Whoever reads the log need not know who wrote it."""
    (record,) = records_of(batches.parse(data, 0, 0), data)
    assert (record.offset, record.key, record.value) == (5, b"key", b"v" * 20)


LIMIT = 1 << 30


@pytest.mark.parametrize("codec", [Codec.NONE, Codec.GZIP, Codec.SNAPPY, Codec.LZ4])
def test_no_batch_comes_to_more(codec: Codec) -> None:
    """Not even one of nothing but zeros; nor is it said of a codec that all may be so."""
    size = 4 << 20
    batch = build_batch([(1000, None, bytes(size), ())], codec=codec)
    assert size <= most_inflated(batch, limit=LIMIT) < LIMIT


def test_batches_without_a_size_bound_count_as_the_limit() -> None:
    """Zstandard, old formats, and what is no batch at all."""
    batch = build_batch([(1000, None, b"x", ())], codec=Codec.ZSTD)
    old = bytearray(batch)
    old[16] = 1
    for records in (batch, old, b"", b"x" * 10):
        assert most_inflated(records, limit=LIMIT) == LIMIT
