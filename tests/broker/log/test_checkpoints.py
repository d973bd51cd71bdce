"""The text files of a data directory, as Apache Kafka writes and reads them."""

from uuid import UUID

import pytest

from barnabas_broker.log import checkpoints, partition_metadata
from barnabas_broker.log.checkpoints import MalformedCheckpointError
from barnabas_broker.log.epochs import EpochEntry
from barnabas_kafka.ids import TopicPartition

TOPIC_ID = UUID("3aa6a8f8-7f0c-4d7e-b2bb-7d2fa26cb8bd")


def test_offset_checkpoints() -> None:
    """Version, count, and a line per partition."""
    offsets = {TopicPartition("orders", 0): 17, TopicPartition("a.b_c-d", 12): 2**40}
    data = checkpoints.format_offsets(offsets)
    assert data == b"0\n2\norders 0 17\na.b_c-d 12 1099511627776\n"
    assert checkpoints.parse_offsets(data) == offsets


def test_epoch_checkpoints() -> None:
    """Version, count, and a line per epoch."""
    entries = [EpochEntry(0, 0), EpochEntry(3, 99)]
    data = checkpoints.format_epochs(entries)
    assert data == b"0\n2\n0 0\n3 99\n"
    assert checkpoints.parse_epochs(data) == entries


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"0\n",
        b"1\n0\n",
        b"0\n2\norders 0 17\n",
        b"0\n1\norders 0\n",
        b"0\n1\norders zero 17\n",
        b"0\nmany\n",
        b"\xff\xfe\n0\n",
    ],
)
def test_malformed_offsets_are_refused(data: bytes) -> None:
    """A checkpoint that lost lines must not pass for a short one."""
    with pytest.raises(MalformedCheckpointError):
        checkpoints.parse_offsets(data)


@pytest.mark.parametrize("data", [b"0\n1\n0\n", b"0\n1\n-1 5\n", b"0\n1\na b\n"])
def test_malformed_epochs_are_refused(data: bytes) -> None:
    """So are lines that are no epoch and offset."""
    with pytest.raises(MalformedCheckpointError):
        checkpoints.parse_epochs(data)


def test_partition_metadata() -> None:
    """The topic id in its 22-character form."""
    data = partition_metadata.encode(TOPIC_ID)
    assert data == b"version: 0\ntopic_id: Oqao-H8MTX6yu30vomy4vQ"
    assert partition_metadata.parse(data) == TOPIC_ID


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"version: 1\ntopic_id: Oqao-H8MTX6yu30vomy4vQ",
        b"version: 0\ntopic_id: short",
        b"version: 0\ntopic_id: AAAAAAAAAAAAAAAAAAAAAA",
    ],
)
def test_malformed_partition_metadata_is_refused(data: bytes) -> None:
    """No id, a strange version, or the id that stands for none."""
    with pytest.raises(MalformedCheckpointError):
        partition_metadata.parse(data)


def test_the_clean_shutdown_marker() -> None:
    """Version 0 of Kafka 3.8's JSON, with the broker epoch."""
    assert checkpoints.format_clean_shutdown(25) == b'{"version":0,"brokerEpoch":25}'


def test_meta_properties_are_escaped() -> None:
    """As Java's Properties.store would: separators in values get a backslash."""
    assert checkpoints.format_meta_properties({"a": "b=c:d"}) == b"a=b\\=c\\:d\n"
