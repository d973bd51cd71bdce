"""Names in a data directory."""

import uuid
from pathlib import Path

import pytest

from barnabas_broker.log import names
from barnabas_kafka.ids import TopicPartition

UNIQUE = uuid.UUID("0123456789abcdef0123456789abcdef")


def test_segments_are_named_by_twenty_digits() -> None:
    """The base offset, padded, so that names sort as offsets do."""
    path = names.segment_file(Path("d"), 368769, names.LOG)
    assert path.name == "00000000000000368769.log"
    assert names.offset_of(path.name) == 368769


@pytest.mark.parametrize("name", ["leader-epoch-checkpoint", "partition.metadata", ".lock", ""])
def test_other_files_have_no_offset(name: str) -> None:
    """Side files are not segments."""
    assert names.offset_of(name) is None


def test_partition_directories() -> None:
    """The topic may hold dashes; the partition is what follows the last one."""
    tp = TopicPartition("a-b-c", 12)
    assert names.partition_directory(tp) == "a-b-c-12"
    assert names.parse_partition_directory("a-b-c-12") == tp


@pytest.mark.parametrize(
    "name", ["lost+found", "orders", "orders-", "-3", "remote-log-index-cache", "snapshot"]
)
def test_other_directories_hold_no_partition(name: str) -> None:
    """What is not ``topic-partition`` is left alone."""
    assert names.parse_partition_directory(name) is None


def test_directories_on_their_way_out() -> None:
    """Named uniquely, so that a topic may be created anew at once."""
    name = names.delete_directory(TopicPartition("orders", 3), UNIQUE)
    assert name == "orders-3.0123456789abcdef0123456789abcdef-delete"
    assert names.is_marked_for_deletion(name)
    assert not names.is_marked_for_deletion("orders-3")
    assert not names.is_marked_for_deletion("my-delete-3")


def test_directories_of_no_topic_any_more() -> None:
    """They hold no partition, and nobody deletes them."""
    name = names.stray_directory(TopicPartition("orders", 3), UNIQUE)
    assert name == "orders-3.0123456789abcdef0123456789abcdef-stray"
    assert not names.is_marked_for_deletion(name)
    assert names.parse_partition_directory(name) is None


def test_long_topic_names_are_cut_for_deletion() -> None:
    """The longest topic name plus the suffix would not fit in a file name."""
    name = names.delete_directory(TopicPartition("t" * 249, 3), UNIQUE)
    assert len(name) == 255
    assert names.is_marked_for_deletion(name)


def test_future_replicas() -> None:
    """A replica that Apache was moving between directories."""
    name = "orders-3.0123456789abcdef0123456789abcdef-future"
    assert names.parse_future_directory(name) == TopicPartition("orders", 3)
    assert names.parse_future_directory("orders-future-3") is None
    tp = TopicPartition("o" * 249, 3)
    assert not names.may_move(tp)
    assert names.may_move(TopicPartition("o" * 200, 3))
