"""The demonstration: small, on a real broker, and wrong on purpose."""

import os
import shutil
from collections.abc import Iterator
from typing import Self

import pytest
from confluent_kafka import Producer

from barnabas_broker.testing import Broker
from tools import demo
from tools.demo_input import Stream

RECORDS = [(b"key %d" % (number % 7), b"value %d" % number * number) for number in range(200)]


@pytest.fixture
def stream(kafka_broker: Broker, kafka_topic: str) -> Stream:
    """Two hundred records in three partitions, and the topic that the producer is warmed up on."""
    assert kafka_broker.running
    return Stream(kafka_topic, "records", RECORDS, 3, "zstd")


@pytest.mark.kafka_topic(partitions=3)
def test_what_is_sent_comes_back(kafka_broker: Broker, stream: Stream) -> None:
    """Every record is accounted for by partition and offset, and the bars reach their ends."""
    moved: list[int] = []
    sent, _ = demo.send(kafka_broker.bootstrap_servers, stream, moved.append)
    assert len(sent) == len(RECORDS)
    assert sum(moved) == stream.size
    moved.clear()
    demo.read_back(kafka_broker.bootstrap_servers, stream, sent, moved.append)
    assert sum(moved) == stream.size


@pytest.mark.kafka_topic(partitions=3)
def test_differences_are_found(kafka_broker: Broker, stream: Stream) -> None:
    """A changed byte, a lost record, a record too many: each is an error that says where."""
    bootstrap = kafka_broker.bootstrap_servers
    sent, _ = demo.send(bootstrap, stream, lambda _: None)
    (where, fingerprint) = next(iter(sent.items()))
    changed = {**sent, where: fingerprint[::-1]}
    with pytest.raises(demo.DemoError, match="differs from what was sent"):
        demo.read_back(bootstrap, stream, changed, lambda _: None)
    with pytest.raises(demo.DemoError, match=r"1 records of .* are missing, the first is 0@999"):
        demo.read_back(bootstrap, stream, {**sent, (0, 999): b""}, lambda _: None)
    producer = Producer({"bootstrap.servers": bootstrap})
    producer.produce(stream.topic, b"stray", partition=1)
    assert producer.flush(20) == 0
    with pytest.raises(demo.DemoError, match="was never sent"):
        demo.read_back(bootstrap, stream, sent, lambda _: None)


def test_a_refused_record_is_an_error(kafka_broker: Broker, kafka_topic: str) -> None:
    """The broker's limit is the default one here, and the record is above it."""
    large = Stream(kafka_topic, "large", [(b"k", b"x" * 2_000_000)], 1)
    with pytest.raises(demo.DemoError, match=f"1 records of {kafka_topic} refused"):
        demo.send(kafka_broker.bootstrap_servers, large, lambda _: None)


def test_digests_tell_key_from_value() -> None:
    """Null is not empty, and where the key ends matters."""
    pairs = [(b"ab", b"c"), (b"a", b"bc"), (None, b"abc"), (b"", b"abc"), (b"abc", None)]
    assert len({demo.digest(key, value) for key, value in pairs}) == len(pairs)


@pytest.fixture
def brokers(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[Broker]]:
    """The brokers that the demonstration starts; its input is small here."""
    started: list[Broker] = []

    class Noted(Broker):
        """A broker that is remembered."""

        def start(self) -> Self:
            """Start it and remember it."""
            started.append(self)
            return super().start()

    monkeypatch.setattr(demo, "Broker", Noted)
    monkeypatch.setattr(demo, "streams", lambda _: [Stream("demo.few", "few", RECORDS, 1)])
    yield started
    for broker in started:
        broker.close()
        shutil.rmtree(broker.directory, ignore_errors=True)


def test_the_whole_of_it_leaves_nothing_running(
    brokers: list[Broker], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Exit code 0, a report, no process and no file left."""
    monkeypatch.delenv("KEEP", raising=False)
    assert demo.main() == 0
    out = capsys.readouterr().out
    assert "All 200 records" in out
    for word in ("start-up", "round trip", "p50", "p99", "memory", "Nothing is left running"):
        assert word in out
    (broker,) = brokers
    assert not broker.running
    assert not broker.directory.exists()


def test_keep_leaves_a_broker_and_says_where(
    brokers: list[Broker], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """KEEP=1 is for trying things on what was just streamed in."""
    monkeypatch.setenv("KEEP", "1")
    assert demo.main() == 0
    out = capsys.readouterr().out
    (broker,) = brokers
    assert broker.running
    for word in (broker.bootstrap_servers, f"kill {broker.pid}", str(broker.directory)):
        assert word in " ".join(out.split())


def test_a_mismatch_is_a_failure_whatever_keep_says(
    brokers: list[Broker], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """One clear line, exit code 1, nothing left running."""
    monkeypatch.setenv("KEEP", "1")
    monkeypatch.setattr(demo, "digest", lambda key, value: os.urandom(16))
    assert demo.main() == 1
    assert "The demonstration failed: demo.few-0@0 differs" in capsys.readouterr().out
    assert not brokers[0].running
