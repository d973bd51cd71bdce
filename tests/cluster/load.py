"""Clients that work while brokers fail, and remember all they did."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from time import monotonic
from types import TracebackType
from typing import Any, Final, Self

from confluent_kafka import (
    OFFSET_BEGINNING,
    Consumer,
    KafkaError,
    Message,
    Producer,
    TopicPartition,
)

from tests.cluster.history import History, Outcome, Poll, Send

PER_SECOND: Final = 300
"""Records of one producer: enough to meet every moment of a failure, few enough for two cores."""

DEADLINE_S: Final = 90


class Writer:
    """An idempotent producer with acks=all in a thread, which gives up nothing."""

    def __init__(self, bootstrap: str, name: str, topic: str, partitions: int) -> None:
        self.name = name
        self._topic = topic
        self._partitions = partitions
        self._sends: list[Send] = []
        self._acknowledged = 0
        self._known = threading.Event()
        self._stopping = threading.Event()
        self._producer = Producer(
            {
                "bootstrap.servers": bootstrap,
                "enable.idempotence": True,
                "linger.ms": 5,
                "message.timeout.ms": DEADLINE_S * 1000,
                "log_level": 0,
            }
        )
        self._thread = threading.Thread(target=self._work, name=name)

    @property
    def acknowledged(self) -> int:
        """How many records the brokers have answered for."""
        return self._acknowledged

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.finish()

    def wait_until_known(self) -> None:
        """Wait for an acknowledged record in every partition."""
        assert self._known.wait(DEADLINE_S)

    def finish(self) -> list[Send]:
        """Send nothing more, and wait for all answers; what was sent, in that order."""
        self._stopping.set()
        self._thread.join()
        self._producer.flush(DEADLINE_S)
        return self._sends

    def _work(self) -> None:
        number = 0
        while not self._stopping.wait(0):
            partition = number % self._partitions
            value = f"{self.name}-{number}"
            place = len(self._sends)
            self._sends.append(Send(self.name, (self._topic, partition), value, Outcome.UNKNOWN))
            self._producer.produce(
                self._topic,
                value.encode(),
                partition=partition,
                on_delivery=partial(self._heard, place),
            )
            number += 1
            if number == self._partitions:
                meet(self._producer)
                self._known.set()
            self._producer.poll(1 / PER_SECOND)

    def _heard(self, place: int, error: KafkaError | None, message: Message) -> None:
        sent = self._sends[place]
        if error is None:
            self._acknowledged += 1
            offset = message.offset()
            # A retry that the broker knows already is acknowledged without one.
            offset = -1 if offset is None else offset
            self._sends[place] = Send(sent.producer, sent.partition, sent.value, Outcome.OK, offset)


def meet(producer: Producer) -> None:
    """Have an idempotent producer wait for its first record in each partition before it goes on.

    A partition takes any sequence from a producer of which it knows nothing, as Apache's does. When
    the first of several requests is refused, by a broker that does not know yet that it leads, and
    the next one is taken, librdkafka takes the first for acknowledged, too: it is lost, and no
    broker can tell.
    """
    assert producer.flush(DEADLINE_S) == 0


class Reader:
    """A consumer of all partitions, assigned, that reads while others write."""

    def __init__(self, bootstrap: str, name: str, topic: str, partitions: int, **more: Any) -> None:
        self.name = name
        self._polls: list[Poll] = []
        self._stopping = threading.Event()
        self._consumer = Consumer(
            {
                "bootstrap.servers": bootstrap,
                "group.id": name,
                "enable.auto.commit": False,
                "auto.offset.reset": "error",
                "log_level": 0,
                **more,
            }
        )
        self._consumer.assign(
            [TopicPartition(topic, index, OFFSET_BEGINNING) for index in range(partitions)]
        )
        self._thread = threading.Thread(target=self._work, name=name)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.finish()

    @property
    def values(self) -> list[str]:
        """What was read so far."""
        return [value for poll in list(self._polls) for _, value in poll.records]

    def finish(self) -> list[Poll]:
        """Read no more; what was read, in that order."""
        if not self._stopping.is_set():
            self._stopping.set()
            self._thread.join()
            self._consumer.close()
        return self._polls

    def _work(self) -> None:
        while not self._stopping.is_set():
            self._polls += polls(self.name, self._consumer.consume(500, 0.1))


def polls(consumer: str, messages: list[Message]) -> list[Poll]:
    """One poll for each partition, with what was read of it."""
    found: dict[tuple[str, int], list[tuple[int, str]]] = {}
    for message in messages:
        if message.error() is None:
            place: Any = (message.topic(), message.partition())
            value: Any = message.value()
            found.setdefault(place, []).append((message.offset() or 0, value.decode()))
    return [Poll(consumer, place, tuple(records)) for place, records in found.items()]


def read_all(
    bootstrap: str, topic: str, partitions: int, *, committed: bool = True, **more: Any
) -> list[Poll]:
    """Everything there is now, from the first offset to the last."""
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": "final",
            "enable.auto.commit": False,
            "isolation.level": "read_committed" if committed else "read_uncommitted",
            "auto.offset.reset": "error",
            "enable.partition.eof": True,
            "log_level": 0,
            **more,
        }
    )
    found: list[Poll] = []
    ended: set[int] = set()
    give_up_at = monotonic() + DEADLINE_S
    try:
        consumer.assign(
            [TopicPartition(topic, index, OFFSET_BEGINNING) for index in range(partitions)]
        )
        while len(ended) < partitions:
            assert monotonic() < give_up_at, f"read {ended} of {partitions} partitions to the end"
            messages = consumer.consume(1000, 0.1)
            found += polls("final", messages)
            for message in messages:
                error = message.error()
                if error is not None and error.code() == KafkaError._PARTITION_EOF:
                    ended.add(message.partition() or 0)
    finally:
        consumer.close()
    return found


@contextmanager
def under_load(bootstrap: str, topic: str, partitions: int) -> Iterator[History]:
    """Two producers and a consumer at work; the history is complete when the context has ended."""
    history = History()
    writers = [Writer(bootstrap, f"{topic}-writer-{n}", topic, partitions) for n in range(2)]
    with Reader(bootstrap, f"{topic}-reader", topic, partitions) as reader:
        with writers[0], writers[1]:
            for writer in writers:
                writer.wait_until_known()
            yield history
        for writer in writers:
            history.sends += writer.finish()
    history.polls += reader.finish()
    history.polls += read_all(bootstrap, topic, partitions)
