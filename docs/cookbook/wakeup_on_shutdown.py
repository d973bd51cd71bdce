"""Shutting down: a signal ends the loop, what was handed out is committed, the group knows at once.

A consumer that is killed keeps its partitions until `session.timeout.ms` is over (45 seconds); one
that is closed gives them up at once. Python sees a signal between two polls, so poll for a moment
at a time, shorter than what the system waits before it kills (30 seconds in Kubernetes).
"""

import os
import signal
import threading
from types import FrameType

from confluent_kafka import Consumer
from confluent_kafka.admin import AdminClient
from kitchen import BROKER, Tell, filled_topic, next_of, number_in, told_by

SETTINGS = {"auto.offset.reset": "earliest"}


def serve(tell: Tell, topic: str) -> None:
    """Work until somebody says stop; the rest of the records is for others."""
    stopping = threading.Event()

    def stop(_number: int, _frame: FrameType | None) -> None:
        stopping.set()

    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, stop)
    consumer = Consumer(BROKER | SETTINGS | {"group.id": topic})
    consumer.subscribe([topic])
    try:
        while not stopping.is_set():
            message = consumer.poll(0.2)
            if message is None:
                continue
            tell(number_in(message))
            if number_in(message) == 4:
                os.kill(os.getpid(), signal.SIGTERM)  # What Kubernetes sends to a pod.
    finally:
        consumer.close()  # Commits what was handed out, and leaves the group.
    tell("closed")


if __name__ == "__main__":
    topic = filled_topic(10)
    print(f"until it was told to stop: {told_by(serve, topic)}")
    admin = AdminClient(BROKER)
    described = admin.describe_consumer_groups([topic])[topic].result(30)
    print(f"members left: {len(described.members)}")
    heir = Consumer(BROKER | SETTINGS | {"group.id": topic})
    heir.subscribe([topic])
    print(f"the next goes on with: {[number_in(next_of(heir)) for _ in range(5)]}")
    heir.close()
