"""One consumer, many workers: more work at a time than there are partitions.

Workers end in another order than they began in, so the order of a partition is lost, and a commit
may only go as far as everything before is done: else a crash loses what still was in work.
"""

import os
import signal
import threading
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait

from confluent_kafka import Consumer, Message, TopicPartition
from kitchen import BROKER, Tell, filled_topic, next_of, number_in, told_by

WORKERS, RECORDS = 4, 20


class Done:
    """What of a partition is done, and up to where all of it is."""

    def __init__(self, begin: int) -> None:
        self.next = begin
        self._ahead: set[int] = set()

    def add(self, offset: int) -> None:
        """One more is done."""
        self._ahead.add(offset)
        while self.next in self._ahead:
            self._ahead.remove(self.next)
            self.next += 1


def run(tell: Tell, topic: str, stuck: int | None) -> None:
    """Work on everything; with one record stuck, be killed when all others are done."""
    settings = {
        "group.id": topic,
        "group.instance.id": "worker",
        "enable.auto.commit": False,
        "auto.offset.reset": "earliest",
    }
    consumer = Consumer(BROKER | settings)
    consumer.subscribe([topic])
    never = threading.Event()

    def work(message: Message) -> Message:
        if number_in(message) == stuck:
            never.wait()
        return message

    last = None
    in_work: set[Future[Message]] = set()
    done: Done | None = None
    with ThreadPoolExecutor(WORKERS) as pool:
        while last != RECORDS - 1 or in_work:
            if last != RECORDS - 1:
                message = next_of(consumer)
                done = done or Done(message.offset() or 0)
                last = number_in(message)
                in_work.add(pool.submit(work, message))
            if len(in_work) < WORKERS and last != RECORDS - 1:
                continue  # No more than the workers can take: the rest waits in the broker.
            ended, in_work = wait(in_work, return_when=FIRST_COMPLETED)
            assert done is not None
            for each in ended:
                tell(number_in(each.result()))
                done.add(each.result().offset() or 0)
            consumer.commit(offsets=[TopicPartition(topic, 0, done.next)], asynchronous=False)
            if stuck is not None and len(in_work) == 1 and last == RECORDS - 1:
                os.kill(os.getpid(), signal.SIGKILL)
    consumer.close()


if __name__ == "__main__":
    topic = filled_topic(RECORDS)
    before, after = told_by(run, topic, 3), told_by(run, topic, None)
    everything = set(range(RECORDS))
    print(f"done before it was killed: all but 3: {set(before) == everything - {3}}")
    print(f"done after: from 3 on: {set(after) == set(range(3, RECORDS))}")
    print(f"lost: {sorted(everything - {*before, *after})}")
