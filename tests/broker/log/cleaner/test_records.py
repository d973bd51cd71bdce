"""Copying some records of a batch."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from barnabas_broker.log.cleaner.records import joined, rebased, spans
from barnabas_kafka.records.batch import HEADER_SIZE, CorruptBatch, parse_header, parse_records
from barnabas_kafka.records.builder import build_batch

_nullable = st.none() | st.binary(max_size=200)
_contents = st.lists(
    st.tuples(
        st.integers(0, 1 << 41),
        _nullable,
        _nullable,
        st.lists(st.tuples(st.text(max_size=5), _nullable), max_size=2),
    ),
    min_size=1,
    max_size=8,
)


@given(_contents, st.lists(st.booleans(), min_size=8, max_size=8), st.integers(-(1 << 41), 1 << 41))
def test_kept_records_are_unchanged(
    contents: list[tuple[int, bytes | None, bytes | None, list[tuple[str, bytes | None]]]],
    choice: list[bool],
    shift: int,
) -> None:
    """Any selection of records reads back as those records, with the base moved or not."""
    data = build_batch(contents)
    header, section = parse_header(data), data[HEADER_SIZE:]
    every = parse_records(section, header)
    found = spans(section, len(contents))
    assert [(one.key, one.has_value) for one in found] == [
        (record.key, record.value is not None) for record in every
    ]
    kept = [span for span, stays in zip(found, choice, strict=False) if stays]
    expected = [record for record, stays in zip(every, choice, strict=False) if stays]
    smaller = header._replace(record_count=len(kept))
    assert parse_records(joined(section, kept), smaller) == expected
    moved = smaller._replace(base_timestamp=header.base_timestamp - shift)
    assert parse_records(rebased(section, kept, shift), moved) == expected


@pytest.mark.parametrize("cut", [1, 5, 12])
def test_damaged_sections(cut: int) -> None:
    """A batch that is no batch stops the cleaning instead of losing records."""
    data = build_batch([(1, b"key", b"value", ()), (2, b"key", b"value", ())])[HEADER_SIZE:]
    with pytest.raises(CorruptBatch):
        spans(data[:-cut], 2)
    with pytest.raises(CorruptBatch):
        spans(data, 1)
