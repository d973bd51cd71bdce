"""CRC-32C against published vectors."""

import pytest

from barnabas_kafka.records.crc import crc32c


@pytest.mark.parametrize(
    ("data", "checksum"),
    [
        (b"", 0x00000000),
        (b"123456789", 0xE3069283),
        (bytes(32), 0x8A9136AA),
        (b"\xff" * 32, 0x62A8AB43),
        (bytes(range(32)), 0x46DD794E),
        (bytes(reversed(range(32))), 0x113FDB5C),
    ],
)
def test_published_vectors(data: bytes, checksum: int) -> None:
    """RFC 3720 B.4 and the check value of the Castagnoli polynomial."""
    assert crc32c(data) == checksum


def test_any_buffer_is_read_in_place() -> None:
    """The log checksums slices of the receive buffer; none of them may need a copy first."""
    buffer = bytearray(b"..123456789..")
    assert crc32c(memoryview(buffer)[2:11]) == crc32c(bytearray(b"123456789")) == 0xE3069283
