"""Producer snapshots: Kafka's bytes, and no trust in damaged ones."""

import pytest

from barnabas_broker.log.producer_snapshot import CorruptSnapshotError, decode, encode
from barnabas_broker.log.producer_state import BatchMetadata, ProducerEntry

ENTRY = ProducerEntry(77, 1, 3, 1_700_000_000_000, 12, (BatchMetadata(29, 929, 2, 5),))

# Written by Apache Kafka's layout by hand: version, CRC-32C, count, then one entry of 46 bytes.
BODY = bytes.fromhex(
    "00000001 000000000000004d 0001 0000001d 00000000000003a1"
    "00000002 0000018bcfe56800 00000003 000000000000000c"
)


def test_the_layout() -> None:
    """Version 1, a CRC-32C of everything behind it, and entries field by field."""
    data = encode([ENTRY])
    assert data[:2] == b"\x00\x01"
    assert data[6:] == BODY


def test_a_snapshot_is_read_back() -> None:
    """Only the last batch of a producer is kept, with the producer's last timestamp."""
    (entry,) = decode(encode([ENTRY]))
    assert (entry.producer_id, entry.epoch, entry.coordinator_epoch) == (77, 1, 3)
    assert entry.txn_first_offset == 12
    assert list(entry.batches) == [BatchMetadata(29, 929, 2, 1_700_000_000_000)]


def test_a_producer_without_data_has_no_batch() -> None:
    """One that only ever sent a marker."""
    (entry,) = decode(encode([ProducerEntry(5, 2)]))
    assert not entry.batches
    assert entry.txn_first_offset == -1


def test_no_producers_is_a_snapshot_too() -> None:
    """It says that there were none up to its offset."""
    assert decode(encode([])) == []


@pytest.mark.parametrize("position", range(len(encode([ENTRY]))))
def test_any_flipped_bit_is_noticed(position: int) -> None:
    """Wrong producer state would let duplicates in: the snapshot is refused instead."""
    data = bytearray(encode([ENTRY]))
    data[position] ^= 0x04
    with pytest.raises(CorruptSnapshotError):
        decode(bytes(data))


@pytest.mark.parametrize("length", [0, 9, 10, 30])
def test_any_torn_end_is_noticed(length: int) -> None:
    """A snapshot cut short is refused."""
    with pytest.raises(CorruptSnapshotError):
        decode(encode([ENTRY])[:length])
