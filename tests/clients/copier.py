"""Copies a topic in transactions, in a process of its own, while the broker is killed.

In a process for the reason that `client_process` gives. At each moment that it was given it
writes a line, and goes on when it is told to by one; in a commit it does not wait before, only
after. It ends when all is copied, or when its standard input does.
"""

from __future__ import annotations

import select
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Final

from confluent_kafka import Consumer, KafkaException, Message, Producer, TopicPartition

from tests.clients.transactional import PARTITIONS
from tests.clients.under_load import REMEMBERING, retried, stopping
from tests.waiting import ANSWER, ATTEMPT_S, SETTLE, seconds

RECORDS: Final = 5000
AT_ONCE: Final = 400
#: The steps of a transaction, each in another one, in which it says where it is.
MOMENTS: Final = ("writing", "written", "offsets sent", "committing")


class CopierProcess:
    """The other side of a copier."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        self._process = process

    def moment(self) -> str | None:
        """Where it is, "" where it has copied everything, None where it says nothing any more."""
        assert self._process.stdout is not None
        # Longer than a member that was killed is waited for by its group.
        if not select.select([self._process.stdout], [], [], seconds(SETTLE))[0]:
            return None
        line = self._process.stdout.readline().decode().rstrip("\n")
        if not line:
            status = self._process.wait(seconds(ANSWER))
            assert status == 0, f"the copier failed: {status}"
        return line

    def go_on(self) -> None:
        """Let it go on from where it is."""
        assert self._process.stdin is not None
        self._process.stdin.write(b"\n")


@contextmanager
def copying(
    bootstrap: str, source: str, target: str, moments: Sequence[str]
) -> Iterator[CopierProcess]:
    """A copier of what is not copied yet, killed at the end if it has not ended."""
    command = [sys.executable, "-m", __name__, bootstrap, source, target, *moments]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, bufsize=0) as process:
        try:
            yield CopierProcess(process)
        finally:
            process.kill()


class Copier:
    """Reads committed records of one topic, and writes them and its offsets as one."""

    def __init__(self, bootstrap: str, source: str, target: str, *moments: str) -> None:
        self.bootstrap, self.source, self.target = bootstrap, source, target
        self.moments = list(moments)
        self.copied = 0
        # Otherwise it would wait in vain for its only broker, to send offsets.
        settings = {"transactional.id": "copier", "linger.ms": 0} | REMEMBERING
        self._producer = Producer({"bootstrap.servers": bootstrap} | settings)

    def run(self) -> None:
        """Copy what is left; every second transaction comes to the next moment, or a later one."""
        # Whatever one before had begun has ended then.
        retried(partial(self._producer.init_transactions, ATTEMPT_S))
        self.copied = self._copied_before()
        number = 0
        while self.copied < RECORDS and not stopping():
            # What an aborted transaction read is read again by a consumer that starts anew.
            consumer = self._consumer()
            consumer.subscribe([self.source])
            try:
                while self.copied < RECORDS and not stopping():
                    taken = self._taken(consumer)
                    if taken:
                        number += 1
                        moment = self.moments[0] if self.moments and number % 2 == 0 else ""
                        self._transaction(consumer, taken, moment)
                        self.copied += len(taken)
            except KafkaException as error:
                if not error.args[0].txn_requires_abort():
                    raise
                retried(partial(self._producer.abort_transaction, ATTEMPT_S))
            finally:
                consumer.close()

    def _copied_before(self) -> int:
        """As many records as the offsets that were committed with them say."""
        asked = [TopicPartition(self.source, it) for it in range(PARTITIONS)]
        consumer = self._consumer()
        try:
            return sum(
                max(it.offset, 0) for it in consumer.committed(asked, timeout=seconds(ANSWER))
            )
        finally:
            consumer.close()

    def _taken(self, consumer: Consumer) -> list[Message]:
        return [it for it in consumer.consume(AT_ONCE, 0.2) if it.error() is None]

    def _transaction(self, consumer: Consumer, taken: Sequence[Message], moment: str) -> None:
        self._producer.begin_transaction()
        for position, message in enumerate(taken):
            self._copy(message)
            if moment == "writing" and position == len(taken) // 2:
                self._tell(moment)
                _wait()
        assert self._producer.flush(seconds(ANSWER)) == 0
        if moment == "written":
            self._tell(moment)
            _wait()
        at = consumer.position(consumer.assignment())
        group = consumer.consumer_group_metadata()
        retried(partial(self._producer.send_offsets_to_transaction, at, group, ATTEMPT_S))
        if moment == "offsets sent":
            self._tell(moment)
            _wait()
        if moment == "committing":
            self._tell(moment)
        retried(partial(self._producer.commit_transaction, ATTEMPT_S))
        if moment == "committing":
            _wait()

    def _tell(self, moment: str) -> None:
        self.moments.remove(moment)
        print(moment, flush=True)

    def _copy(self, message: Message) -> None:
        self._producer.produce(self.target, message.value(), partition=message.partition() or 0)
        self._producer.poll(0)

    def _consumer(self) -> Consumer:
        settings = {
            "group.id": "copiers",
            "enable.auto.commit": False,
            "auto.offset.reset": "earliest",
            "isolation.level": "read_committed",
        } | REMEMBERING
        return Consumer({"bootstrap.servers": self.bootstrap} | settings)


def _wait() -> None:
    if not sys.stdin.readline():
        sys.exit("nobody is there to go on for")


if __name__ == "__main__":
    Copier(*sys.argv[1:]).run()
