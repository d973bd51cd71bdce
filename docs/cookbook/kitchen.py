"""What every recipe begins with: the broker's address, a topic of its own, a process to kill."""

import multiprocessing
import os
import uuid
from collections.abc import Callable
from multiprocessing.connection import Connection

from confluent_kafka import Consumer, Message, Producer
from confluent_kafka.admin import AdminClient, NewTopic

BROKER = {"bootstrap.servers": os.environ.get("BARNABAS_BOOTSTRAP", "localhost:9092")}
Tell = Callable[[object], None]


def new_topic(partitions: int = 1, **settings: str) -> str:
    """Make a topic that nobody used before and return its name."""
    name = f"cookbook-{uuid.uuid4().hex[:12]}"
    admin = AdminClient(BROKER)
    new = NewTopic(name, partitions, 1, config=settings)
    admin.create_topics([new])[name].result(60)
    return name


def filled_topic(records: int, partitions: int = 1) -> str:
    """Make a topic with the records `0`, `1`, `2`…, dealt out over its partitions."""
    name = new_topic(partitions)
    fill(name, records, partitions)
    return name


def fill(topic: str, records: int, partitions: int = 1) -> None:
    """Write the records `0`, `1`, `2`…, dealt out over the partitions."""
    producer = Producer(BROKER)
    for number in range(records):
        producer.produce(topic, str(number), partition=number % partitions)
    producer.flush(60)


def next_of(consumer: Consumer) -> Message:
    """The next record; whoever waits a minute for it has a problem."""
    message = consumer.poll(60)
    assert message is not None, "nothing came"
    assert message.error() is None, message.error()
    return message


def number_in(message: Message) -> int:
    """What `filled_topic` wrote into a record."""
    return int(message.value() or b"")


def told_by(work: Callable[..., None], *arguments: object) -> list[object]:
    """Run work(tell, *arguments) in a process of its own; what it told before it ended or died."""
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe(duplex=False)
    process = context.Process(target=_run, args=(theirs, work, *arguments))
    process.start()
    theirs.close()
    told: list[object] = []
    try:
        while True:
            told.append(ours.recv())
    except EOFError:  # The other end is closed, however that came.
        process.join()
    return told


def _run(pipe: Connection, work: Callable[..., None], *arguments: object) -> None:
    work(pipe.send, *arguments)
