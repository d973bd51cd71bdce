"""kcat: metadata, produce, consume and offset queries from a shell."""

from __future__ import annotations

import json
import subprocess

import pytest

from tests.clients.brokers import Broker
from tests.clients.conftest import MakeTopic
from tests.waiting import RUN, seconds


def kcat(broker: Broker, *arguments: str, given: str = "") -> str:
    """Run kcat to its end and return what it printed."""
    done = subprocess.run(
        # It gives up after five seconds unless told, which a busy machine needs.
        ["kcat", "-b", broker.bootstrap, "-m", "60", *arguments],
        input=given,
        capture_output=True,
        text=True,
        timeout=seconds(RUN),
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_metadata_as_json(broker: Broker, make_topic: MakeTopic) -> None:
    """-L -J lists brokers, the controller, topics and where their partitions are."""
    topic = make_topic(partitions=2)
    listed = json.loads(kcat(broker, "-L", "-J"))
    assert listed["brokers"] == [{"id": 0, "name": broker.bootstrap}]
    assert listed["controllerid"] == 0
    (found,) = (entry for entry in listed["topics"] if entry["topic"] == topic)
    assert [partition["partition"] for partition in found["partitions"]] == [0, 1]
    for partition in found["partitions"]:
        assert partition["leader"] == 0
        assert partition["replicas"] == [{"id": 0}]
        assert partition["isrs"] == [{"id": 0}]


@pytest.mark.parametrize(
    "codec",
    [
        "none",
        "zstd",
        # The codecs are those of librdkafka, with which test_confluent_kafka.py runs each of them.
        *(pytest.param(it, marks=pytest.mark.soak) for it in ("gzip", "snappy", "lz4")),
    ],
)
def test_produce_and_consume(broker: Broker, topic: str, codec: str) -> None:
    """-P with keys and headers, -C from the beginning, from an offset, and the last ones."""
    lines = [f"key{i}:value {i} {'x' * 200}" for i in range(50)]
    kcat(
        broker,
        *("-P", "-t", topic, "-p", "0", "-K:", "-z", codec, "-H", "origin=kcat"),
        given="\n".join(lines) + "\n",
    )
    read = ["-C", "-q", "-e", "-t", topic, "-p", "0", "-f", "%o %k:%s %h\n"]
    expected = [f"{i} {line} origin=kcat" for i, line in enumerate(lines)]
    assert kcat(broker, *read, "-o", "beginning").splitlines() == expected
    assert kcat(broker, *read, "-o", "20").splitlines() == expected[20:]
    assert kcat(broker, *read, "-o", "-5").splitlines() == expected[-5:]
    assert kcat(broker, *read, "-o", "beginning", "-c", "3").splitlines() == expected[:3]


def test_offsets_by_time(broker: Broker, topic: str) -> None:
    """-Q asks for the offset of a time, the earliest and the latest; -C -o s@ starts there."""
    kcat(broker, "-P", "-t", topic, "-p", "0", given="a\nb\nc\n")
    assert kcat(broker, "-Q", "-t", f"{topic}:0:1000").split() == [topic, "[0]", "offset", "0"]
    assert kcat(broker, "-Q", "-t", f"{topic}:0:-1").split() == [topic, "[0]", "offset", "3"]
    assert kcat(broker, "-Q", "-t", f"{topic}:0:-2").split() == [topic, "[0]", "offset", "0"]
    read = ["-C", "-q", "-e", "-t", topic, "-p", "0", "-o", "s@1000"]
    assert kcat(broker, *read).split() == ["a", "b", "c"]


def test_topic_is_created_on_first_use(broker: Broker) -> None:
    """auto.create.topics.enable is on by default: producing to a new name makes the topic."""
    kcat(broker, "-P", "-t", "made-by-use", given="first\n")
    read = ["-C", "-q", "-e", "-t", "made-by-use", "-o", "beginning"]
    assert kcat(broker, *read).split() == ["first"]
