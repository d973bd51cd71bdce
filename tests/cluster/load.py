"""Clients that work while brokers fail, and remember all they did.

Those of `under_load` are processes of their own (`tests.clients.client_process` says why), and
write down what they did and were told.
"""

from __future__ import annotations

import json
import sys
import tempfile
import threading
from collections import defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from itertools import pairwise
from math import inf
from pathlib import Path
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

from tests.clients.client_process import ClientProcess, tell
from tests.cluster.history import History, Outcome, Poll, Send
from tests.waiting import ANSWER, SETTLE, START, NotInTimeError, seconds, wait_for

PER_SECOND: Final = 300
"""Records of one producer: enough to meet every moment of a failure, few enough for two cores."""
ROUNDS: Final = 50
"""How often a reader polls between two looks at what it has."""

RECONNECT_MAX_MS: Final = 1000
"""As Kafka's own clients have it. librdkafka's default of 10 s is longer than a broker is away: its
producers would not connect to one that leads again, and the gap would be theirs."""

NEVER_MS: Final = 0
"""`message.timeout.ms`: a record waits for its brokers for as long as its test does."""


class Writer:
    """An idempotent producer with acks=all in a thread, which gives up nothing."""

    def __init__(
        self,
        bootstrap: str,
        name: str,
        topic: str,
        partitions: int,
        *,
        tell: Callable[[int, int], None] = lambda _place, _offset: None,
        **more: Any,
    ) -> None:
        """`tell` is called with the place of a record among those sent, and its offset."""
        self.name = name
        self._tell = tell
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
                "message.timeout.ms": NEVER_MS,
                "reconnect.backoff.max.ms": RECONNECT_MAX_MS,
                "log_level": 0,
                **more,
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

    def wait_for_more(self, count: int) -> None:
        """Wait until more than so many further records are acknowledged."""
        wanted = self._acknowledged + count
        wait_for(
            f"more than {wanted} acknowledged records of {self.name}",
            lambda: self._acknowledged,
            until=lambda acknowledged: acknowledged > wanted,
        )

    def wait_until_known(self) -> None:
        """Wait for an acknowledged record in every partition."""
        assert self._known.wait(seconds(SETTLE))

    def finish(self) -> list[Send]:
        """Send nothing more, and wait for all answers; what was sent, in that order."""
        self._stopping.set()
        self._thread.join()
        self._producer.flush(seconds(ANSWER))
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
            self._tell(place, offset)
        else:
            self._sends[place] = replace(sent, error=str(error))


def meet(producer: Producer) -> None:
    """Have an idempotent producer wait for its first record in each partition before it goes on.

    A partition takes any sequence from a producer of which it knows nothing, as Apache's does. When
    the first of several requests is refused, by a broker that does not know yet that it leads, and
    the next one is taken, librdkafka takes the first for acknowledged, too: it is lost, and no
    broker can tell.
    """
    assert producer.flush(seconds(SETTLE)) == 0


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

    def wait_for(self, count: int) -> None:
        """Wait until so many records are read."""
        wait_for(
            f"{count} records read by {self.name}",
            lambda: len(self.values),
            until=lambda read: read >= count,
        )

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
    bootstrap: str,
    topic: str,
    partitions: int,
    *,
    expected: int = 0,
    values: Collection[str] = (),
    **more: Any,
) -> list[Poll]:
    """Everything that is committed, from the first offset to the last.

    So many records are `expected` at least, and these `values`, and waited for: a leader that has
    just been elected learns from its followers how much of its log is committed, and a transaction
    ends in its partitions a little later than for its producer. What does not come is left out.
    A number alone says too little where more may have been written than was acknowledged.
    """
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": "final",
            "enable.auto.commit": False,
            "isolation.level": "read_committed",
            "auto.offset.reset": "error",
            "enable.partition.eof": True,
            "log_level": 0,
            **more,
        }
    )
    found: list[Poll] = []
    count = 0
    ended: set[int] = set()
    missing = set(values)

    def read() -> tuple[int, int, int]:
        nonlocal count
        for _ in range(ROUNDS):  # Bounded: others may go on writing.
            messages = consumer.consume(1000, 0.1)
            new = polls("final", messages)
            found.extend(new)
            missing.difference_update(value for poll in new for _, value in poll.records)
            for message in messages:
                error = message.error()
                if error is None:
                    count += 1
                elif error.code() == KafkaError._PARTITION_EOF:
                    ended.add(message.partition() or 0)
            if not messages:
                break
        return len(ended), count, len(missing)

    try:
        consumer.assign(
            [TopicPartition(topic, index, OFFSET_BEGINNING) for index in range(partitions)]
        )
        wait_for(
            f"the ends of {partitions} partitions of {topic} and {expected} records, none missing",
            read,
            until=lambda it: it[0] == partitions and it[1] >= expected and not it[2],
        )
    except NotInTimeError:
        if len(ended) < partitions:
            raise
    finally:
        consumer.close()
    return found


class Load:
    """Two producers and a consumer at work on a topic; `history` is complete when they are done."""

    def __init__(
        self,
        directory: Path,
        bootstrap: str,
        topic: str,
        partitions: int,
        properties: Mapping[str, str],
    ) -> None:

        def client(role: str, name: str) -> ClientProcess:
            where = bootstrap, topic, str(partitions), json.dumps(dict(properties))
            return ClientProcess(directory / f"{name}.jsonl", __name__, role, name, *where)

        self.history = History()
        self.gap_s = 0.0
        """The longest time in which a partition took no record of any producer."""
        self.partitions = partitions
        self.taken: dict[int, list[float]] = {}
        """When each partition took a record of any producer, once they have ended."""
        self._topic, self._partitions = topic, partitions
        self._reader = client("reader", f"{topic}-reader")
        self._writers = [client("writer", f"{topic}-writer-{it}") for it in range(2)]

    def acknowledged(self) -> int:
        """How many records the brokers have answered for."""
        return sum(writer.lines() for writer in self._writers)

    def wait_until_under_way(self) -> None:
        """Wait until each producer has an acknowledged record in every partition."""
        wait_for(
            f"{self._partitions} acknowledged records of each producer",
            lambda: [writer.lines() for writer in self._writers],
            until=lambda lines: min(lines) >= self._partitions,
        )

    def longest_gap_s(self, after: float = 0.0, until: float = inf) -> float:
        """The longest time in which a partition took no record, of those that touch this span."""
        return max(
            later - earlier
            for times in self.taken.values()
            for earlier, later in pairwise(times)
            if later >= after and earlier <= until
        )

    def _times(self) -> dict[int, list[float]]:
        times: dict[int, list[float]] = defaultdict(list)
        for writer in self._writers:
            for line in writer.reported():
                if "ok" in line:
                    times[line["ok"] % self._partitions].append(line["at"])
        return {partition: sorted(each) for partition, each in times.items()}

    def finish(self) -> None:
        """End the clients, and remember what each of them sent, was told and read.

        A producer that had to be killed has vanished, as clients do: what it was told counts, and
        nothing else of it. One has to be left.
        """
        left = [writer.name for writer in self._writers if writer.end(seconds(START))]
        assert left, "both producers had to be killed"
        for writer in self._writers:
            sends = self._sends(writer)
            if writer.name not in left:
                sends = [send for send in sends if send.outcome is Outcome.OK]
            self.history.sends += sends
        self.taken = self._times()
        self.gap_s = self.longest_gap_s()
        self._reader.end(seconds(START))
        for line in self._reader.reported():
            records = tuple((offset, value) for offset, value in line["records"])
            place = self._topic, line["partition"]
            self.history.polls.append(Poll(self._reader.name, place, records))

    def kill(self) -> None:
        """End what still runs."""
        for client in (*self._writers, self._reader):
            client.kill()

    def _sends(self, writer: ClientProcess) -> list[Send]:
        offsets: dict[int, int] = {}
        errors: dict[str, str] = {}
        count = 0
        for line in writer.reported():
            if "ok" in line:
                offsets[line["ok"]] = line["offset"]
            errors |= line.get("errors", {})
            count = max(count, line.get("sent", line.get("ok", 0) + 1))
        return [
            Send(
                writer.name,
                (self._topic, number % self._partitions),
                f"{writer.name}-{number}",
                Outcome.OK if number in offsets else Outcome.UNKNOWN,
                offsets.get(number, -1),
                error=errors.get(str(number), ""),
            )
            for number in range(count)
        ]


@contextmanager
def under_load(
    bootstrap: str, topic: str, partitions: int, properties: Mapping[str, str] | None = None
) -> Iterator[Load]:
    """Load that has begun; its history is complete when the context has ended.

    `properties`: what clients need to connect.
    """
    with tempfile.TemporaryDirectory(prefix="load-") as directory:
        load = Load(Path(directory), bootstrap, topic, partitions, properties or {})
        try:
            load.wait_until_under_way()
            yield load
            load.finish()
        finally:
            load.kill()
    reported = [send.value for send in load.history.sends if send.outcome is Outcome.OK]
    load.history.polls += read_all(
        bootstrap, topic, partitions, expected=len(reported), values=reported, **(properties or {})
    )


def main(role: str, name: str, bootstrap: str, *given: str) -> None:
    """A client of this role until the standard input ends."""
    topic, partitions, properties = given
    if role == "writer":
        more = json.loads(properties)
        writer = Writer(bootstrap, name, topic, int(partitions), tell=_acknowledged, **more)
        with writer:
            sys.stdin.read()
        sends = writer.finish()
        errors = {place: send.error for place, send in enumerate(sends) if send.error}
        tell(sent=len(sends), errors=errors)
    else:
        with Reader(bootstrap, name, topic, int(partitions), **json.loads(properties)) as reader:
            sys.stdin.read()
        for poll in reader.finish():
            tell(partition=poll.partition[1], records=poll.records)


def _acknowledged(place: int, offset: int) -> None:
    tell(ok=place, offset=offset, at=monotonic())


if __name__ == "__main__":
    main(*sys.argv[1:])
