"""The JSON files of Kafka's tools: read, written, and refused with the place."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from barnabas_kafka.ids import TopicPartition
from barnabas_kafka.reassignment.files import (
    FileFormatError,
    read_elections,
    read_reassignment,
    read_topics,
    write_elections,
    write_reassignment,
    write_topics,
)

# How quick this is depends on what else runs on the machine.

PARTITIONS = st.builds(TopicPartition, st.sampled_from(["a", "b.c", "größe"]), st.integers(0, 9))
REPLICAS = st.sampled_from([(0,), (1, 2), (2, 1, 3), (9, 0, 4, 7)])


@given(st.dictionaries(PARTITIONS, REPLICAS, min_size=1))
def test_a_reassignment_comes_back(layout: dict[TopicPartition, tuple[int, ...]]) -> None:
    """What is written is read as the same."""
    assert read_reassignment(write_reassignment(layout)) == layout


@given(st.lists(PARTITIONS, min_size=1, unique=True))
def test_elections_and_topics_come_back(partitions: list[TopicPartition]) -> None:
    """In their order."""
    assert read_elections(write_elections(partitions)) == partitions
    topics = tuple(tp.topic for tp in partitions)
    assert read_topics(write_topics(topics)) == topics


def test_the_text_is_that_of_kafkas_tool() -> None:
    """Byte for byte, for those who compare files."""
    assert write_reassignment({TopicPartition("foo", 0): (1, 2)}) == (
        '{"version":1,"partitions":[{"topic":"foo","partition":0,"replicas":[1,2],'
        '"log_dirs":["any","any"]}]}'
    )


def test_version_and_log_directories_may_be_absent() -> None:
    """Files made by hand have neither."""
    text = '{"partitions": [{"topic": "t", "partition": 0, "replicas": [2, 1], "note": 1}]}'
    assert read_reassignment(text) == {TopicPartition("t", 0): (2, 1)}


def entry(**changes: Any) -> str:
    """A reassignment of one partition with some fields changed."""
    one = {"topic": "t", "partition": 0, "replicas": [1, 2]} | changes
    return json.dumps({"version": 1, "partitions": [one]})


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ('{"version": 1,\n  "partitions": [,]}', "line 2, column 18: it is no JSON"),
        ("", "line 1, column 1: it is no JSON"),
        ("[" * 100_000, "it is nested too deeply"),
        ("[]", "not an object in braces"),
        ('{"version": 2, "partitions": []}', "version: 2 is not known"),
        ('{"version": true, "partitions": []}', "version: True is not known"),
        ('{"version": 1}', "partitions: a list of objects is missing"),
        ('{"partitions": []}', "partitions: it names no partition"),
        ('{"partitions": [3]}', "partitions[0]: it is not an object in braces"),
        (entry(topic=3), "partitions[0].topic: a name is missing"),
        (entry(partition="0"), "partitions[0].partition: a number from 0 up is missing"),
        (entry(partition=-1), "partitions[0].partition: a number from 0 up is missing"),
        (entry(replicas=[]), "partitions[0].replicas: a list of brokers is missing"),
        (entry(replicas=[1, True]), "partitions[0].replicas[1]: a number from 0 up is missing"),
        (entry(replicas=[1, 1]), "partitions[0].replicas: [1, 1] names a broker twice"),
        (entry(log_dirs=["any"]), "partitions[0].log_dirs: it does not have one entry for each"),
        (entry(log_dirs=["any", "/d"]), "partitions[0].log_dirs[1]: '/d' is a log directory"),
    ],
)
def test_what_is_wrong_is_told_with_its_place(text: str, told: str) -> None:
    """Line and column of what is no JSON, the path of any other value."""
    with pytest.raises(FileFormatError) as refused:
        read_reassignment(text)
    assert told in str(refused.value)


def test_a_partition_that_is_there_twice() -> None:
    """Which of the two was meant, nobody knows."""
    one = {"topic": "t", "partition": 3, "replicas": [1]}
    text = json.dumps({"partitions": [one, one]})
    with pytest.raises(FileFormatError, match=r"partitions\[1\]: partition t-3 is there twice"):
        read_reassignment(text)
    with pytest.raises(FileFormatError, match=r"partitions\[1\]: partition t-3 is there twice"):
        read_elections(text)
