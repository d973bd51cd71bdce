"""The record walk, compiled and pure: same verdict for every input, and the right one."""

from pathlib import Path
from types import ModuleType

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from barnabas_kafka.records import batch, builder, walk
from barnabas_kafka.records.batch import CorruptBatch, parse_records
from barnabas_kafka.records.builder import RecordContent, append_varint, build_batch
from barnabas_kafka.records.compression import Codec
from tests.kafka.pure import pure
from tests.kafka.records.stored import stored_batch

Verdict = tuple[int, int, int, int, int]

BASE = 1_700_000_000_000


PURE = pure("barnabas_kafka.records.walk")
VARIANTS = [walk, PURE] if walk.COMPILED else [PURE]


@pytest.fixture(params=VARIANTS, ids=lambda module: module.__name__.rpartition(".")[2])
def variant(request: pytest.FixtureRequest) -> ModuleType:
    """The module as imported (compiled where it can be) and its source."""
    module: ModuleType = request.param
    return module


def _walk(
    variant: ModuleType,
    section: bytes,
    count: int,
    *,
    position: int = 0,
    index: int = 0,
    base: int = BASE,
    oldest: int = walk.SMALLEST,
    newest: int = walk.LARGEST,
    key_required: bool = False,
) -> Verdict:
    verdict: Verdict = variant.walk(
        section,
        position,
        index=index,
        count=count,
        base_timestamp=base,
        oldest=oldest,
        newest=newest,
        key_required=key_required,
    )
    return verdict


def _section(content: list[RecordContent], deltas: list[int] | None = None) -> bytes:
    return stored_batch(content, offset_deltas=deltas)[batch.HEADER_SIZE :]


def _number(value: int) -> bytes:
    target = bytearray()
    append_varint(target, value)
    return bytes(target)


def _framed(body: bytes) -> bytes:
    return _number(len(body)) + body


THREE: list[RecordContent] = [
    (BASE, b"a", b"1", []),
    (BASE + 500, None, b"2" * 200, [("h", b"x"), ("n", None)]),
    (BASE + 500, b"c", None, []),
]


def test_compiled_says_so() -> None:
    """COMPILED follows from what the import system loaded."""
    assert (Path(walk.__file__).suffix != ".py") is walk.COMPILED
    assert PURE.COMPILED is False


def test_sound_records(variant: ModuleType) -> None:
    """The verdict names the end, the latest timestamp and the first record that bears it."""
    section = _section(THREE)
    assert _walk(variant, section, 3) == (walk.OK, 3, len(section), BASE + 500, 1)


def test_no_records(variant: ModuleType) -> None:
    """An empty section with no records is sound; one byte of it is not."""
    assert _walk(variant, b"", 0) == (walk.OK, 0, 0, -1, -1)
    assert _walk(variant, b"\0", 0)[0] == walk.TRAILING_BYTES


def test_every_truncation(variant: ModuleType) -> None:
    """A section cut anywhere is refused with a structural fault at the record that is cut."""
    section = _section(THREE)
    for end in range(len(section)):
        fault, index, start, _, _ = _walk(variant, section[:end], 3)
        assert 0 < fault <= walk.STRUCTURAL
        assert start <= end
        assert index < 3


def test_bytes_behind_the_last_record(variant: ModuleType) -> None:
    """Fewer records than bytes for them is a fault."""
    assert _walk(variant, _section(THREE), 2)[:2] == (walk.TRAILING_BYTES, 2)
    assert _walk(variant, _section(THREE) + b"\0", 3)[:2] == (walk.TRAILING_BYTES, 3)


def test_more_records_than_bytes(variant: ModuleType) -> None:
    """A count above what is there ends at the end of the data."""
    assert _walk(variant, _section(THREE), 4)[:2] == (walk.CUT_SHORT, 3)


@pytest.mark.parametrize(
    ("section", "fault"),
    [
        (_number(-1), walk.BAD_LENGTH),
        (_number(7) + bytes(6), walk.BAD_LENGTH),
        (_number(2**31 - 1) + bytes(6), walk.BAD_LENGTH),
        (b"\xff\xff\xff\xff\xff\x01", walk.BAD_NUMBER),
        (b"\xff\xff\xff\xff\x10", walk.BAD_NUMBER),
        (_framed(b"\0" + b"\xff" * 9 + b"\x02" + bytes(5)), walk.BAD_NUMBER),
        (_framed(b"\0\0\0" + _number(-2) + b"\1\0"), walk.BAD_FIELD),
        (_framed(b"\0\0\0" + _number(4) + b"\1\0"), walk.BAD_FIELD),
        (_framed(b"\0\0\0\1" + _number(2) + b"\0"), walk.BAD_FIELD),
        (_framed(b"\0\0\0\1\1" + _number(-1)), walk.BAD_HEADER_COUNT),
        (_framed(b"\0\0\0\1\1" + _number(2) + b"\0"), walk.BAD_HEADER_COUNT),
        (_framed(b"\0\0\0\1\1" + _number(1) + b"\1\1"), walk.BAD_HEADER_KEY),
        (_framed(b"\0\0\0\1\1" + _number(1) + b"\2k" + _number(-3)), walk.BAD_FIELD),
        (_framed(b"\0\0\0\1\1" + _number(1) + b"\x10k"), walk.BAD_FIELD),
        (_framed(b"\0\0\0\1\1\0\0"), walk.LENGTH_MISMATCH),
        (_framed(b"\0\0\0\1\1") + b"\0", walk.LENGTH_MISMATCH),
        (_framed(b"\0" + _number(2**63 - 1) + b"\0\1\1\0"), walk.TIMESTAMP_OVERFLOW),
        (_framed(b"\0" + _number(-(2**63)) + b"\0\1\1\0"), walk.OK),
    ],
)
def test_structural_faults(variant: ModuleType, section: bytes, fault: int) -> None:
    """Each way a record can fail to be one has its own name, and ends the walk where it began."""
    verdict = _walk(variant, section, 1)
    assert verdict[0] == fault
    if fault != walk.OK:
        assert verdict[1:] == (0, 0, -1, -1)


def test_timestamps_below_the_smallest_number(variant: ModuleType) -> None:
    """A negative base and a negative difference may not wrap round either."""
    section = _framed(b"\0" + _number(-(2**63)) + b"\0\1\1\0")
    assert _walk(variant, section, 1, base=-1)[0] == walk.TIMESTAMP_OVERFLOW
    assert _walk(variant, section, 1, base=0)[0] == walk.OK


def test_long_forms_of_short_numbers(variant: ModuleType) -> None:
    """Numbers padded with empty groups are legal, as in Java."""
    padded = b"\x82\x80\x80\x80\x00"  # 1 in five bytes
    section = _framed(
        b"\0" + b"\x82" + b"\x80" * 8 + b"\x00" + b"\x80\x00" + b"\1" + padded + b"v\0"
    )
    assert _walk(variant, section, 1) == (walk.OK, 1, len(section), BASE + 1, 0)


@pytest.mark.parametrize("deltas", [[1, 2, 3], [0, 2, 3], [0, 1, 1], [0, 1, -2]])
def test_offset_deltas_count_up_from_zero(variant: ModuleType, deltas: list[int]) -> None:
    """The first delta that does not is refused, and the walk can go on behind it."""
    section = _section(THREE, deltas)
    wrong = next(i for i, delta in enumerate(deltas) if i != delta)
    fault, index, position, _, _ = _walk(variant, section, 3)
    assert (fault, index) == (walk.OFFSET_NOT_CONTIGUOUS, wrong)
    if wrong == 2:
        assert position == len(section)


def test_missing_keys_are_found_one_by_one(variant: ModuleType) -> None:
    """With keys required, the walk stops at each record without and resumes behind it."""
    content: list[RecordContent] = [(BASE + i, b"k" if i % 3 else None, b"", []) for i in range(9)]
    section = _section(content)
    assert _walk(variant, section, 9)[0] == walk.OK
    found = []
    index = position = 0
    while True:
        fault, index, position, _, _ = _walk(
            variant, section, 9, index=index, position=position, key_required=True
        )
        if fault == walk.OK:
            break
        assert fault == walk.KEY_MISSING
        found.append(index)
        index += 1
    assert found == [0, 3, 6]
    assert (index, position) == (9, len(section))


def test_an_empty_key_is_a_key(variant: ModuleType) -> None:
    """Only null is missing."""
    assert _walk(variant, _section([(BASE, b"", b"", [])]), 1, key_required=True)[0] == walk.OK


def test_timestamp_bounds(variant: ModuleType) -> None:
    """Both bounds are inclusive; "no timestamp" is within any."""
    section = _section(THREE)
    assert _walk(variant, section, 3, oldest=BASE, newest=BASE + 500)[0] == walk.OK
    late = _walk(variant, section, 3, newest=BASE + 499)
    assert late[:2] == (walk.TIMESTAMP_OUT_OF_BOUNDS, 1)
    assert late[3:] == (BASE, 0)
    early = _walk(variant, section, 3, oldest=BASE + 1)
    assert early[:2] == (walk.TIMESTAMP_OUT_OF_BOUNDS, 0)
    assert early[3:] == (-1, -1)
    none = _section([(-1, None, None, [])])
    assert _walk(variant, none, 1, base=-1, oldest=BASE)[0] == walk.OK


NULLABLE = st.none() | st.binary(max_size=200)
RECORDS = st.lists(
    st.tuples(
        st.integers(BASE - 10**10, BASE + 10**10),
        NULLABLE,
        NULLABLE,
        st.lists(st.tuples(st.text(max_size=3), NULLABLE), max_size=2),
    ),
    min_size=1,
    max_size=6,
)


def _both(section: bytes, count: int, **options: int) -> Verdict:
    """The verdict, after both variants have given the same one."""
    verdict = _walk(PURE, section, count, **options)  # type: ignore[arg-type]
    assert _walk(walk, section, count, **options) == verdict  # type: ignore[arg-type]
    return verdict


@settings(max_examples=400)
@given(
    content=RECORDS,
    edits=st.lists(st.tuples(st.integers(0, 2000), st.integers(0, 255)), max_size=4),
    cut=st.integers(0, 40),
    count_change=st.integers(-1, 1),
    key_required=st.booleans(),
)
def test_variants_agree_on_mutated_records(
    content: list[RecordContent],
    edits: list[tuple[int, int]],
    cut: int,
    count_change: int,
    key_required: bool,
) -> None:
    """Compiled and pure give the same answer to damaged sections, resumed walks included.

    Where the answer is OK the section also reads as records; where it is a structural fault it
    does not: the reader used elsewhere and the walk know the same format.
    """
    section = bytearray(_section(content))
    for where, value in edits:
        section[where % len(section)] = value
    damaged = bytes(section[: len(section) - cut] if cut < 20 else section)
    count = len(content) + count_change
    header = batch.parse_header(build_batch(content))
    header = header._replace(record_count=count)
    options = {"base": header.base_timestamp, "key_required": key_required}
    fault, index, position, _, _ = _both(damaged, count, **options)
    while fault > walk.STRUCTURAL:
        fault, index, position, _, _ = _both(
            damaged, count, index=index + 1, position=position, **options
        )
    if fault == walk.OK:
        assert len(parse_records(damaged, header)) == count
    elif fault != walk.TIMESTAMP_OVERFLOW:
        with pytest.raises(CorruptBatch):
            parse_records(damaged, header)


@settings(max_examples=300)
@given(
    section=st.binary(max_size=60),
    count=st.integers(0, 5),
    base=st.integers(walk.SMALLEST, walk.LARGEST),
    oldest=st.integers(walk.SMALLEST, walk.LARGEST),
    newest=st.integers(walk.SMALLEST, walk.LARGEST),
)
def test_variants_agree_on_noise(
    section: bytes, count: int, base: int, oldest: int, newest: int
) -> None:
    """Random bytes and extreme numbers get the same answer, and never an exception."""
    _both(section, count, base=base, oldest=oldest, newest=newest)


@settings(max_examples=300)
@given(
    delta=st.integers(walk.SMALLEST, walk.LARGEST),
    base=st.integers(walk.SMALLEST, walk.LARGEST),
)
def test_timestamps_at_the_ends_of_the_range(delta: int, base: int) -> None:
    """The sum of base and difference is exact or refused; fixed-width integers do not wrap."""
    section = _framed(b"\0" + _number(delta) + b"\0\1\1\0")
    fault, _, _, latest, _ = _both(section, 1, base=base)
    if walk.SMALLEST <= base + delta <= walk.LARGEST:
        assert fault == walk.OK
        assert latest == max(-1, base + delta)
    else:
        assert fault == walk.TIMESTAMP_OVERFLOW


def test_built_batches_are_valid(variant: ModuleType) -> None:
    """A large batch of our own passes, however long its numbers are."""
    content: list[RecordContent] = [
        (BASE + i * 10_000, b"k" * (i % 70), b"v" * (i * 11 % 5000), [("h" * (i % 3), b"")])
        for i in range(300)
    ]
    section = builder.build_batch(content)[batch.HEADER_SIZE :]
    assert _walk(variant, section, 300, key_required=True) == (
        walk.OK,
        300,
        len(section),
        BASE + 299 * 10_000,
        299,
    )


def _plain(variant: ModuleType, data: bytes, *, largest: int = 1 << 20) -> tuple[int, int, int]:
    answer: tuple[int, int, int] = variant.plain_batch(
        b"before" + data + b"behind",
        6,
        6 + len(data),
        largest=largest,
        oldest=0,
        newest=walk.LARGEST,
        key_required=False,
    )
    return answer


def test_a_plain_batch(variant: ModuleType) -> None:
    """Count, latest timestamp and the first record that bears it, of a batch without faults."""
    data = build_batch(THREE, producer_id=1, producer_epoch=0, base_sequence=0)
    assert _plain(variant, data) == (3, BASE + 500, 1)
    assert _plain(variant, data, largest=len(data)) == (3, BASE + 500, 1)
    assert _plain(variant, data, largest=len(data) - 1) == (0, 0, 0)


@pytest.mark.parametrize("position", range(batch.HEADER_SIZE))
def test_headers_that_are_not_plain(variant: ModuleType, position: int) -> None:
    """Any change to a header is noticed, but in the fields that say nothing about the records."""
    data = bytearray(build_batch(THREE, producer_id=1, producer_epoch=0, base_sequence=0))
    data[position] ^= 0x81
    leader_epoch, checksum, producer = range(12, 16), range(17, 21), range(43, 53)
    free = {*leader_epoch, *checksum, *producer, *range(54, 57)}  # and the sequence, but its sign
    assert (_plain(variant, bytes(data))[0] == 3) is (position in free)


@pytest.mark.parametrize("codec", list(Codec))
def test_a_compressed_head(variant: ModuleType, codec: Codec) -> None:
    """It is one with a codec, a whole header and the right length."""
    data = build_batch(THREE, codec=codec, producer_id=1, producer_epoch=0, base_sequence=0)
    head = data[: batch.HEADER_SIZE]
    assert variant.compressed_head(head, len(data)) == (0 if codec is Codec.NONE else 3)
    assert variant.compressed_head(head, len(data) + 1) == 0
    assert variant.compressed_head(head[:-1], len(data)) == 0


@pytest.mark.parametrize("position", range(batch.HEADER_SIZE))
def test_heads_that_are_not_usual(variant: ModuleType, position: int) -> None:
    """Any change is noticed, but in the fields that the checksum and the records are held to."""
    data = build_batch(THREE, codec=Codec.LZ4, producer_id=1, producer_epoch=0, base_sequence=0)
    head = bytearray(data[: batch.HEADER_SIZE])
    head[position] ^= 0x81
    unseen = {*range(12, 16), *range(17, 21), *range(27, 53), *range(54, 57)}
    assert (variant.compressed_head(bytes(head), len(data)) == 3) is (position in unseen)


@given(data=st.binary(max_size=100))
def test_variants_agree_on_what_is_plain(data: bytes) -> None:
    """Noise is plain to neither variant, whatever its length."""
    assert [_plain(variant, data) for variant in VARIANTS] == [(0, 0, 0)] * len(VARIANTS)
