"""Kafka Streams counts words with `exactly_once_v2` while the broker is killed."""

from __future__ import annotations

import struct
import subprocess
from collections import Counter, defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from random import Random
from typing import Final

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from tests.clients.brokers import Broker, broker_under_test
from tests.clients.transactional import SETTINGS, messages_in
from tests.oracle.apache import classpath
from tests.oracle.java_host import FLAGS
from tests.waiting import ANSWER, RUN, START, forget, seconds, wait_for, watch

WORD_COUNT: Final = Path(__file__).parent / "programs" / "WordCount.java"
PARTITIONS: Final = 2
WORDS: Final = ("all", "or", "nothing", "once", "and", "for", "ever")
LINES: Final = 1500
WORDS_OF_LINE: Final = 4


def _counts(broker: Broker) -> dict[str, list[int]]:
    """Each count of each word that was told, in the order of the topic."""
    of: defaultdict[str, list[int]] = defaultdict(list)
    for message in messages_in(broker, "out", PARTITIONS):
        key, value = message.key(), message.value()
        assert isinstance(key, bytes)
        assert value is not None
        (number,) = struct.unpack(">q", value)
        of[key.decode()].append(number)
    return of


def _until_told(broker: Broker, count: int) -> None:
    wait_for(
        f"counts that were told, to be {count}",
        lambda: sum(map(len, _counts(broker).values())),
        until=lambda reported: reported >= count,
        within=RUN,
    )


@contextmanager
def _counting(release: str, broker: Broker, *arguments: str, log: Path) -> Iterator[None]:
    program = [classpath(release, of="kafka-streams"), str(WORD_COUNT), broker.bootstrap]
    with log.open("wb") as output:
        process = subprocess.Popen(
            ["java", *FLAGS, "-cp", *program, *arguments],
            stdin=subprocess.PIPE,
            stdout=output,
            stderr=output,
        )
    assert process.stdin is not None
    watch("streams", process.pid, log, dumps=True)
    try:
        yield
        forget(process.pid)
        process.stdin.close()
        process.wait(seconds(START))
    finally:
        process.stdin.close()
        process.kill()
        process.wait()


def _write(broker: Broker, topic: str, lines: list[str]) -> None:
    producer = Producer({"bootstrap.servers": broker.bootstrap, "enable.idempotence": True})
    for number, line in enumerate(lines):
        producer.produce(topic, line, partition=number % PARTITIONS)
    assert producer.flush(seconds(ANSWER)) == 0


@pytest.mark.jvm
@pytest.mark.parametrize("release", ["3.9.1", "4.1.0"])
def test_words_are_counted_exactly_once(tmp_path: Path, release: str) -> None:
    """Each count of each word is told once and in order, though the broker is killed midway.

    By 3.9.1 with the first transaction protocol, by 4.1.0 with the second.
    """
    random = Random(7)
    lines = [" ".join(random.choices(WORDS, k=WORDS_OF_LINE)) for _ in range(LINES)]
    half = len(lines) // 2
    log = tmp_path / "streams.log"
    with broker_under_test(tmp_path / "broker", SETTINGS) as broker:
        admin = AdminClient({"bootstrap.servers": broker.bootstrap})
        topics = [NewTopic(name, num_partitions=PARTITIONS) for name in ("in", "out")]
        for made in admin.create_topics(topics).values():
            made.result(seconds(ANSWER))
        _write(broker, "in", lines[:half])
        state = str(tmp_path / "state")
        with _counting(release, broker, "in", "out", state, log=log):
            _until_told(broker, half)
            broker.kill()
            broker.start()
            _write(broker, "in", lines[half:])
            _until_told(broker, LINES * WORDS_OF_LINE)
        counts = _counts(broker)
    expected = Counter(word for line in lines for word in line.split())
    assert counts == {word: list(range(1, count + 1)) for word, count in expected.items()}
