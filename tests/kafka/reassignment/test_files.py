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
    read_moves,
    read_reassignment,
    read_topics,
    write_reassignment,
)

PARTITIONS = st.builds(TopicPartition, st.sampled_from(["a", "b.c", "größe"]), st.integers(0, 9))
REPLICAS = st.sampled_from([(0,), (1, 2), (2, 1, 3), (9, 0, 4, 7)])


@given(st.dictionaries(PARTITIONS, REPLICAS, min_size=1))
def test_a_reassignment_comes_back(layout: dict[TopicPartition, tuple[int, ...]]) -> None:
    """What is written is read as the same."""
    assert read_reassignment(write_reassignment(layout)) == layout


@given(st.lists(PARTITIONS, min_size=1, unique=True))
def test_elections_and_topics_come_back(partitions: list[TopicPartition]) -> None:
    """In their order."""
    entries = [{"topic": tp.topic, "partition": tp.partition} for tp in partitions]
    assert read_elections(json.dumps({"partitions": entries})) == partitions
    topics = tuple(dict.fromkeys(tp.topic for tp in partitions))
    named = [{"topic": name} for name in topics]
    assert read_topics(json.dumps({"version": 1, "topics": named})) == topics


def test_the_text_is_that_of_kafkas_tool() -> None:
    """Byte for byte, for those who compare files."""
    assert write_reassignment({TopicPartition("foo", 0): (1, 2)}) == (
        '{"version":1,"partitions":[{"topic":"foo","partition":0,"replicas":[1,2],'
        '"log_dirs":["any","any"]}]}'
    )


def test_version_and_log_directories_may_be_absent() -> None:
    """Files made by hand have neither."""
    text = '{"partitions": [{"topic": "t", "partition": 0, "replicas": [2, 1]}]}'
    assert read_reassignment(text) == {TopicPartition("t", 0): (2, 1)}


def entry(**changes: Any) -> str:
    """A reassignment of one partition with some fields changed."""
    one = {"topic": "t", "partition": 0, "replicas": [1, 2]} | changes
    return json.dumps({"version": 1, "partitions": [one]})


@pytest.mark.parametrize(
    ("text", "reported"),
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
        (entry(replica=[1]), "partitions[0].replica: there is no such field; did you mean repl"),
        (entry(note=1), "partitions[0].note: there is no such field; there are topic, partition"),
        ('{"partition": [], "partitions": []}', "partition: there is no such field; did you mean"),
        ('{"version": 1, "version": 1}', "a field is there twice in one object: version"),
    ],
)
def test_errors_are_reported_with_their_position(text: str, reported: str) -> None:
    """Line and column of what is no JSON, the path of any other value."""
    with pytest.raises(FileFormatError) as refused:
        read_reassignment(text)
    assert reported in str(refused.value)


def test_a_partition_that_is_there_twice() -> None:
    """Which of the two was meant, nobody knows."""
    one = {"topic": "t", "partition": 3, "replicas": [1]}
    text = json.dumps({"partitions": [one, one]})
    with pytest.raises(FileFormatError, match=r"partitions\[1\]: partition t-3 is there twice"):
        read_reassignment(text)
    with pytest.raises(FileFormatError, match=r"partitions\[1\]: partition t-3 is there twice"):
        read_elections(text)


def test_log_directories_are_read_where_they_are_wanted() -> None:
    """By partition and broker; `any` is none."""
    text = entry(log_dirs=["any", "/d2"])
    layout = {TopicPartition("t", 0): (1, 2)}
    assert read_moves(text) == (layout, {(TopicPartition("t", 0), 2): "/d2"})
    with pytest.raises(
        FileFormatError, match=r"log_dirs\[0\]: 'd1' is neither any nor an absolute"
    ):
        read_moves(entry(log_dirs=["d1", "any"]))


def test_a_topic_that_is_there_twice() -> None:
    """As Kafka's tool, which refuses duplicate topics."""
    text = '{"topics": [{"topic": "t"}, {"topic": "u"}, {"topic": "t"}]}'
    with pytest.raises(FileFormatError, match=r"topics\[2\]: topic t is there twice"):
        read_topics(text)


def test_all_errors_of_a_file_are_reported_together() -> None:
    """Nobody corrects a file of a hundred partitions one mistake a time."""
    good = {"topic": "t", "partition": 0, "replicas": [1]}
    entries = [good, {"topic": "t", "partition": -1}, good, {"topic": "", "replica": [1, 1]}, 7]
    with pytest.raises(FileFormatError) as refused:
        read_reassignment(json.dumps({"version": 3, "partitions": entries}))
    assert [problem.partition(":")[0] for problem in refused.value.problems] == [
        "version",
        "partitions[1].partition",
        "partitions[1].replicas",
        "partitions[2]",
        "partitions[3].replica",
        "partitions[3].topic",
        "partitions[3].partition",
        "partitions[3].replicas",
        "partitions[4]",
    ]
