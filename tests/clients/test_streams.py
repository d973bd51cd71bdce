"""Kafka Streams counts words with `exactly_once_v2` while the broker is killed."""

from __future__ import annotations

import struct
import subprocess
import time
from collections import Counter, defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from random import Random
from typing import Final

import pytest
from confluent_kafka import OFFSET_BEGINNING, Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from tests.clients import librdkafka
from tests.clients.brokers import Broker, broker_under_test
from tests.clients.transactional import PATIENCE_S, SETTINGS
from tests.oracle.apache import classpath
from tests.oracle.java_host import FLAGS

WORD_COUNT: Final = Path(__file__).parent / "programs" / "WordCount.java"
PARTITIONS: Final = 2
WORDS: Final = ("all", "or", "nothing", "once", "and", "for", "ever")
LINES: Final = 1500
WORDS_OF_LINE: Final = 4
#: How long a count may take that waits for a broker, its group, and a transaction that timed out.
CATCH_UP_S: Final = 150.0


class Counts:
    """What the program tells: each count of each word, in the order of the topic."""

    def __init__(self, broker: Broker, topic: str) -> None:
        self._reader: Consumer = librdkafka.consumer(
            broker.bootstrap, **{"isolation.level": "read_committed"}
        )
        places = [TopicPartition(topic, it, OFFSET_BEGINNING) for it in range(PARTITIONS)]
        self._reader.assign(places)
        self.of: defaultdict[str, list[int]] = defaultdict(list)
        self.told = 0

    def read_until(self, count: int, log: Path) -> None:
        """Read until so many counts were told."""
        give_up_at = time.monotonic() + CATCH_UP_S
        while self.told < count:
            tail = log.read_text(errors="replace")[-3000:]
            assert time.monotonic() < give_up_at, f"{self.told} of {count}\n{tail}"
            self.read(0.5)

    def read(self, patience_s: float) -> int:
        """Read what there is; how much that was."""
        found = [it for it in self._reader.consume(500, timeout=patience_s) if it.error() is None]
        for message in found:
            key, value = message.key(), message.value()
            assert isinstance(key, bytes)
            assert value is not None
            (number,) = struct.unpack(">q", value)
            self.of[key.decode()].append(number)
        self.told += len(found)
        return len(found)

    def close(self) -> None:
        self._reader.close()


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
    try:
        yield
        process.stdin.close()
        process.wait(PATIENCE_S)
    finally:
        process.stdin.close()
        process.kill()
        process.wait()


def _write(broker: Broker, topic: str, lines: list[str]) -> None:
    producer = Producer({"bootstrap.servers": broker.bootstrap, "enable.idempotence": True})
    for number, line in enumerate(lines):
        producer.produce(topic, line, partition=number % PARTITIONS)
    assert producer.flush(PATIENCE_S) == 0


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
            made.result(60)
        _write(broker, "in", lines[:half])
        counts = Counts(broker, "out")
        state = str(tmp_path / "state")
        with _counting(release, broker, "in", "out", state, log=log):
            counts.read_until(half, log)
            broker.kill()
            broker.start()
            _write(broker, "in", lines[half:])
            counts.read_until(LINES * WORDS_OF_LINE, log)
        while counts.read(1.0):
            pass
        counts.close()
    expected = Counter(word for line in lines for word in line.split())
    assert counts.of == {word: list(range(1, count + 1)) for word, count in expected.items()}
