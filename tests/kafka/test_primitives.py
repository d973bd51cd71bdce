"""The parts that all of the library stands on: numbers as they travel, ids, native integers."""

from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from barnabas_kafka import native
from barnabas_kafka.ids import ZERO_UUID, TopicPartition, uuid_from_base64, uuid_to_base64
from barnabas_kafka.primitives import (
    read_uvarint,
    skip_tagged_fields,
    uvarint,
)


@pytest.mark.parametrize(
    ("value", "encoded"),
    [
        (0, "00"),
        (127, "7f"),
        (128, "8001"),
        (16_383, "ff7f"),
        (16_384, "808001"),
        (2_097_151, "ffff7f"),
        (2_097_152, "80808001"),
        (268_435_455, "ffffff7f"),
        (268_435_456, "8080808001"),
        (0xFFFF_FFFF, "ffffffff0f"),
    ],
)
def test_uvarint_at_its_boundaries(value: int, encoded: str) -> None:
    """Each group of seven bits takes one more byte, low group first."""
    data = bytes.fromhex(encoded)
    assert uvarint(value) == data
    assert read_uvarint(b"?" + data + b"?", 1) == (value, 1 + len(data))


@given(st.integers(0, 0xFFFF_FFFF))
def test_uvarint_round_trip(value: int) -> None:
    """What is written is read."""
    assert read_uvarint(memoryview(uvarint(value)), 0) == (value, len(uvarint(value)))


def test_uvarint_is_never_negative() -> None:
    """An unsigned number below zero is a mistake of the caller."""
    with pytest.raises(ValueError, match="negative"):
        uvarint(-1)


@pytest.mark.parametrize("encoded", ["ffffffff10", "ffffffff8f01", "808080808000"])
def test_uvarint_has_at_most_32_bits(encoded: str) -> None:
    """A fifth byte with more than four bits, or a sixth byte, is malformed."""
    with pytest.raises(ValueError, match="32 bits"):
        read_uvarint(bytes.fromhex(encoded), 0)


@pytest.mark.parametrize("encoded", ["", "80", "8080", "808080", "80808080"])
def test_numbers_cut_off(encoded: str) -> None:
    """A number that the buffer does not finish is a read past its end."""
    with pytest.raises(IndexError):
        read_uvarint(bytes.fromhex(encoded), 0)


def test_tagged_fields_are_skipped() -> None:
    """The position after the section, whatever the fields hold."""
    section = b"\2" + b"\0\1x" + b"\x80\1\3abc"
    assert skip_tagged_fields(section + b"rest", 0) == len(section)
    assert skip_tagged_fields(b"\0", 0) == 1


@pytest.mark.parametrize("section", [b"", b"\1", b"\1\0", b"\1\0\2x", b"\2\0\0"])
def test_tagged_fields_cut_off(section: bytes) -> None:
    """A section that the buffer does not finish is a read past its end."""
    with pytest.raises(IndexError):
        skip_tagged_fields(section, 0)


def test_i64_is_int_at_run_time() -> None:
    """Running from source needs no package for the type and converts like int."""
    assert native.i64 is int


def test_partition_is_named_like_its_directory() -> None:
    """Topics may contain dashes; the partition follows the last."""
    assert str(TopicPartition("orders-eu", 3)) == "orders-eu-3"


def test_known_ids() -> None:
    """Kafka's own constants in its own text form."""
    assert uuid_to_base64(ZERO_UUID) == "AAAAAAAAAAAAAAAAAAAAAA"
    assert uuid_to_base64(UUID(int=1)) == "AAAAAAAAAAAAAAAAAAAAAQ"


@given(st.uuids())
def test_round_trip(value: UUID) -> None:
    """22 characters that are safe in file names and URLs."""
    text = uuid_to_base64(value)
    assert len(text) == 22
    assert uuid_from_base64(text) == value


@pytest.mark.parametrize("text", ["", "AAAA", "A" * 24, "AAAAAAAAAAAAAAAAAAAAA", "ä" * 22])
def test_invalid_ids_are_refused(text: str) -> None:
    """Anything but sixteen bytes in base64 is refused."""
    with pytest.raises(ValueError, match="an id"):
        uuid_from_base64(text)
