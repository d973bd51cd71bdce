"""What is left of a batch, rule by rule."""

import pytest

from barnabas_broker.log import batches
from barnabas_broker.log.cleaner.filtering import BatchFilter, Kept, LastRecord, Rules
from barnabas_broker.log.cleaner.offset_map import OffsetMap
from barnabas_broker.log.cleaner.transactions import CleanedTransactions
from barnabas_broker.log.transaction_index import AbortedTransaction
from barnabas_kafka.records.batch import (
    BatchHeader,
    CorruptBatch,
    Record,
    parse_header,
    records,
    verify_crc,
)
from barnabas_kafka.records.builder import RecordContent, build_batch
from barnabas_kafka.records.compression import Codec
from barnabas_kafka.records.legacy import Message, build_message_set, encode_message, messages
from tests.broker.log.samples import NOW, marker_of
from tests.kafka.records.stored import stored_batch

KEPT_MS = 1000
A, B, C = (b"a", b"1"), (b"b", b"2"), (b"c", b"3")
CODECS = list(Codec)


def content(*pairs: tuple[bytes | None, bytes | None]) -> list[RecordContent]:
    return [
        (NOW + n, key, value, (("h", b"x"),) if n % 2 else ())
        for n, (key, value) in enumerate(pairs)
    ]


class Reported:
    """A filter with a map of the given last offsets."""

    def __init__(
        self,
        newest: dict[bytes, int],
        *,
        reach: int = 1000,
        now_ms: int = NOW,
        upper_bound: int = 10**6,
        producers: dict[int, LastRecord] | None = None,
        aborted: list[AbortedTransaction] | None = None,
    ) -> None:
        offsets = OffsetMap(1 << 16, load_factor=0.9, expected=100)
        for key, offset in newest.items():
            offsets.put(key, offset)
        offsets.reached(reach)
        if not newest and reach < 0:
            offsets.latest_offset = reach
        rules = Rules(
            now_ms=now_ms,
            delete_retention_ms=KEPT_MS,
            upper_bound=upper_bound,
            producers=producers or {},
        )
        self.filter = BatchFilter(rules, offsets, CleanedTransactions(aborted or []))

    def of(self, data: bytes, *, keep_legacy_tombstones: bool = True) -> Kept | None:
        batch = batches.parse(data, 0, 0)
        return self.filter.filter(
            batch, memoryview(data), keep_legacy_tombstones=keep_legacy_tombstones
        )

    def left(self, data: bytes) -> tuple[BatchHeader, list[Record]]:
        kept = self.of(data)
        assert kept is not None
        header = parse_header(kept.data)
        verify_crc(kept.data, 0, header)
        assert len(kept.data) == header.size
        assert kept.max_timestamp == header.max_timestamp
        return header, records(kept.data)


@pytest.mark.parametrize("codec", CODECS)
def test_a_batch_of_latest_records_is_kept_byte_for_byte(codec: Codec) -> None:
    """Nothing is recompressed, re-checksummed or moved without need."""
    data = build_batch(content(A, B), base_offset=5, codec=codec, leader_epoch=7)
    kept = Reported({b"a": 5, b"b": 6}).of(data)
    assert kept == Kept(data, NOW + 1)
    assert Reported({b"a": 3}).of(data) == Kept(data, NOW + 1), "the clean part may be newer"


@pytest.mark.parametrize("codec", CODECS)
def test_superseded_records_are_removed(codec: Codec) -> None:
    """The others keep offset, timestamp, headers, codec, epoch; the batch keeps its span."""
    data = build_batch(
        content(A, B, C, A),
        base_offset=5,
        codec=codec,
        leader_epoch=7,
        producer_id=9,
        producer_epoch=2,
        base_sequence=40,
    )
    before, every = parse_header(data), records(data)
    header, left = Reported({b"a": 8, b"b": 6, b"c": 100}).left(data)
    assert left == [every[1], every[3]]
    assert header == before._replace(
        batch_length=header.batch_length, crc=header.crc, record_count=2
    )


def test_the_greatest_timestamp_follows_the_records() -> None:
    """Unless the broker's clock gave it, which holds for the batch as a whole."""
    data = build_batch(content(A, B), base_offset=5)
    header, _ = Reported({b"b": 9}).left(data)
    assert header.max_timestamp == NOW
    data = stored_batch(content(A, B), base_offset=5, append_time=True, max_timestamp=NOW + 9)
    header, left = Reported({b"b": 9}).left(data)
    assert (header.max_timestamp, [one.timestamp for one in left]) == (NOW + 9, [NOW + 9])


def test_beyond_the_reach_of_the_map_everything_stays() -> None:
    """A pass that ended early says nothing of later records, keys or not."""
    data = build_batch(content(A, (None, b"x"), A), base_offset=5)
    assert Reported({b"a": 3}, reach=4).of(data) == Kept(data, NOW + 2)
    _, left = Reported({b"a": 6}, reach=6).left(data)
    assert [one.offset for one in left] == [7]


def test_records_without_a_key_go() -> None:
    """They may be there from before the topic was compacted; they are counted."""
    reported = Reported({})
    assert reported.of(build_batch(content((None, b"x"), (None, None)))) is None
    assert reported.filter.counts.keyless == 2


def test_the_life_of_a_tombstone() -> None:
    """Its first cleaning sets the horizon, the next ones keep it, and behind it the record goes."""
    data = build_batch(content(A, (b"b", None)), base_offset=5, codec=Codec.LZ4)
    newest = {b"a": 5, b"b": 6}
    header, left = Reported(newest).left(data)
    assert header.delete_horizon_ms == NOW + KEPT_MS
    assert left == records(data), "timestamps survive the new base"
    assert header.codec is Codec.LZ4
    first = Reported(newest).of(data)
    assert first is not None
    again = Reported({}, now_ms=NOW + KEPT_MS - 1).of(bytes(first.data))
    assert again == first, "the horizon does not move"
    header, left = Reported({}, now_ms=NOW + KEPT_MS).left(bytes(first.data))
    assert [(one.key, one.timestamp) for one in left] == [(b"a", NOW)]
    assert header.delete_horizon_ms == NOW + KEPT_MS, "the base stays while deltas refer to it"


def test_a_tombstone_is_superseded_like_any_record() -> None:
    """A later value takes its place at once."""
    assert Reported({b"b": 9}).of(build_batch(content((b"b", None)), base_offset=5)) is None


def test_the_last_batch_of_a_producer_keeps_its_header() -> None:
    """The next sequence is judged by it, so it outlives its records; other batches do not."""
    data = build_batch(
        content(A, A), base_offset=5, producer_id=9, producer_epoch=2, base_sequence=40,
        codec=Codec.GZIP, leader_epoch=3,
    )  # fmt: skip
    newest = {b"a": 100}
    header, left = Reported(newest, producers={9: LastRecord(6, 2)}).left(data)
    assert left == []
    assert header == parse_header(data)._replace(
        batch_length=49, crc=header.crc, attributes=0, base_timestamp=-1, record_count=0
    )
    kept = Reported(newest, producers={9: LastRecord(6, 2)}).of(data)
    assert kept is not None
    reported = Reported(newest, producers={9: LastRecord(6, 2)})
    assert reported.of(bytes(kept.data)) == kept, "an empty batch can be cleaned again"
    assert Reported(newest, producers={9: LastRecord(20, 2)}).of(bytes(kept.data)) is None
    assert Reported(newest).of(data) is None, "a producer that has expired keeps nothing"


def test_the_last_batch_of_the_range_keeps_its_header() -> None:
    """Readers learn from it how far the offsets went."""
    data = build_batch(content(A, A), base_offset=5)
    assert Reported({b"a": 100}, upper_bound=8).of(data) is None
    header, left = Reported({b"a": 100}, upper_bound=7).left(data)
    assert (header.last_offset, left) == (6, [])


def test_aborted_records_go() -> None:
    """Whether they are newest or not; the transaction's marker stays for a while."""
    reported = Reported({b"a": 3}, aborted=[AbortedTransaction(9, 5, 7, 8)])
    data = build_batch(
        content(A, B), base_offset=5, transactional=True, producer_id=9, producer_epoch=0,
        base_sequence=0,
    )  # fmt: skip
    assert reported.of(data) is None


def moved(data: bytes, offset: int) -> bytes:
    return offset.to_bytes(8, "big") + data[8:]


def test_the_life_of_a_marker() -> None:
    """It stays with its records, then until its horizon, and for ever as its producer's end."""
    records_of_9 = build_batch(
        content(A), base_offset=5, transactional=True, producer_id=9, producer_epoch=0,
        base_sequence=0,
    )  # fmt: skip
    marker = moved(marker_of(9, 0, commit=True), 6)
    reported = Reported({b"a": 5})
    assert reported.of(records_of_9) is not None
    kept = reported.of(marker)
    assert kept is not None
    assert kept.data == marker, "its transaction has records left"

    header, left = Reported({}).left(marker)
    assert header.delete_horizon_ms == NOW + KEPT_MS
    assert [(one.key, one.value, one.timestamp) for one in left] == [
        (one.key, one.value, one.timestamp) for one in records(marker)
    ]
    marked = Reported({}).of(marker)
    assert marked is not None
    waiting = Reported({}, now_ms=NOW + KEPT_MS - 1).of(bytes(marked.data))
    assert waiting == marked
    late = NOW + KEPT_MS
    assert Reported({}, now_ms=late).of(bytes(marked.data)) is None
    header, left = Reported({}, now_ms=late, producers={9: LastRecord(None, 0)}).left(
        bytes(marked.data)
    )
    assert left == []
    assert header.is_control
    assert (
        Reported({}, now_ms=late, producers={9: LastRecord(None, 1)}).of(bytes(marked.data)) is None
    )


@pytest.mark.parametrize("magic", [0, 1])
@pytest.mark.parametrize("codec", [Codec.NONE, Codec.GZIP, Codec.SNAPPY, Codec.LZ4])
def test_old_formats(magic: int, codec: Codec) -> None:
    """Wrappers lose some of their messages; each one that stays keeps its offset."""
    every = [
        Record(offset, NOW if magic else -1, key, value)
        for offset, key, value in [(5, b"a", b"1"), (6, b"b", b"2"), (8, b"c", b"3")]
    ]
    newest = {b"a": 7, b"b": 6, b"c": 8}
    data = build_message_set(every, magic=magic, codec=codec)
    reported = Reported(newest)
    size = int.from_bytes(data[8:12], "big") + 12
    entries = (
        [data]
        if codec is not Codec.NONE
        else [data[n : n + size] for n in range(0, len(data), size)]
    )
    left = b"".join(
        bytes(kept.data) for entry in entries if (kept := reported.of(entry)) is not None
    )
    assert [(one.offset, one.timestamp, one.key, one.value) for one in messages(left)] == [
        record[:4] for record in every[1:]
    ]
    assert Reported(dict.fromkeys(newest, 100)).of(entries[0]) is None
    assert Reported({}).of(entries[0]) == Kept(entries[0], NOW if magic else -1)


def test_old_tombstones_go_by_the_age_of_their_segment() -> None:
    """There is no room for a horizon in formats 0 and 1."""
    data = encode_message(Message(5, NOW, b"a", None, 1, 0))
    reported = Reported({b"a": 5})
    assert reported.of(data, keep_legacy_tombstones=True) == Kept(data, NOW)
    assert reported.of(data, keep_legacy_tombstones=False) is None


def test_a_corrupt_batch_stops_the_cleaning() -> None:
    """Records that do not decompress stop the cleaning."""
    data = bytearray(build_batch(content(A), codec=Codec.ZSTD))
    data[70:74] = b"\0\0\0\0"
    with pytest.raises(CorruptBatch):
        Reported({}).of(bytes(data))
    old = bytearray(build_message_set([Record(1, 1, b"a", b"b")], magic=1, codec=Codec.GZIP))
    old[-3] ^= 1
    with pytest.raises(CorruptBatch):
        Reported({}).of(bytes(old))


def test_read_and_kept_records_are_counted() -> None:
    """For the log line and the metrics."""
    reported = Reported({b"a": 6})
    data = build_batch(content(A, A), base_offset=5)
    kept = reported.of(data)
    assert kept is not None
    counts = reported.filter.counts
    assert (counts.records_read, counts.records_kept) == (2, 1)
    assert (counts.bytes_read, counts.bytes_kept) == (len(data), len(kept.data))
