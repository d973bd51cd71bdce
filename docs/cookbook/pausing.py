"""Pausing: take no more than can be worked on, and stay a member all the while.

Who does not poll for `max.poll.interval.ms` is thrown out of the group. So poll on; a paused
partition gives nothing, and goes on where it was when it is resumed.
"""

import queue
import threading

from confluent_kafka import Consumer
from kitchen import BROKER, filled_topic, number_in

RECORDS, ROOM = 20, 5
topic = filled_topic(RECORDS, partitions=2)
waiting: queue.Queue[int | None] = queue.Queue()
go = threading.Event()
done: list[int] = []


def work() -> None:
    """A worker that is slow: nothing is taken until `go`."""
    go.wait()
    while (number := waiting.get()) is not None:
        done.append(number)


worker = threading.Thread(target=work)
worker.start()
consumer = Consumer(BROKER | {"group.id": topic, "auto.offset.reset": "earliest"})
consumer.subscribe([topic])
taken = pauses = polls_in_pause = most = 0
paused = False
while taken < RECORDS:
    message = consumer.poll(0.1)
    if message is not None:
        assert not paused, "a paused partition gave something"
        waiting.put(number_in(message))
        taken += 1
    most = max(most, waiting.qsize())
    if not paused and waiting.qsize() >= ROOM:
        consumer.pause(consumer.assignment())
        paused = True
        pauses += 1
    elif paused and waiting.qsize() == 0:
        consumer.resume(consumer.assignment())
        paused = False
    elif paused:
        polls_in_pause += 1
        if polls_in_pause == 3:
            go.set()
waiting.put(None)
worker.join()
consumer.close()
print(f"paused: {pauses > 0}, polled in pauses: {polls_in_pause >= 3}, at most {most} waiting")
print(f"every record once: {sorted(done) == list(range(RECORDS))}")
