"""Exactly once from topic to topic: results and offsets in one transaction.

A worker that dies in the middle leaves an open transaction. The next one with its
`transactional.id` aborts that, and begins where the last committed one ended. Readers with
`isolation.level=read_committed` (the default here) never see what was aborted.
"""

import os
import signal

from confluent_kafka import Consumer, Producer, TopicPartition
from kitchen import BROKER, Tell, filled_topic, new_topic, next_of, number_in, told_by


def work(tell: Tell, source: str, sink: str, crash_at: int | None) -> None:
    """Double numbers, five to a transaction; at one of them, die before the commit."""
    producer = Producer(BROKER | {"transactional.id": f"doubling-{source}"})
    producer.init_transactions(30)  # From here on, a predecessor that still lives is fenced.
    settings = {
        "group.id": source,
        "group.instance.id": "worker",
        "enable.auto.commit": False,
        "auto.offset.reset": "earliest",
    }
    consumer = Consumer(BROKER | settings)
    consumer.subscribe([source])
    number = -1
    while number < 19:
        producer.begin_transaction()
        for _ in range(5):
            number = number_in(next_of(consumer))
            producer.produce(sink, str(2 * number))
        if number == crash_at:
            producer.flush(30)
            os.kill(os.getpid(), signal.SIGKILL)
        positions = consumer.position(consumer.assignment())
        producer.send_offsets_to_transaction(positions, consumer.consumer_group_metadata())
        producer.commit_transaction(30)
        tell(number)
    consumer.close()


def seen(topic: str, level: str) -> list[int]:
    """Every number in a topic, up to its end as it is now."""
    consumer = Consumer(BROKER | {"group.id": "unused", "isolation.level": level})
    consumer.assign([TopicPartition(topic, 0, 0)])
    _, end = consumer.get_watermark_offsets(TopicPartition(topic, 0))
    found = []
    while consumer.position([TopicPartition(topic, 0)])[0].offset < end:
        message = consumer.poll(0.1)  # The markers of transactions are no records.
        if message is not None:
            found.append(number_in(message))
    consumer.close()
    return found


if __name__ == "__main__":
    source, sink = filled_topic(20), new_topic()
    print(f"transactions that ended with {told_by(work, source, sink, 14)}, killed")
    print(f"transactions that ended with {told_by(work, source, sink, None)}")
    wanted = [2 * number for number in range(20)]
    print(f"committed: every result once and in order: {seen(sink, 'read_committed') == wanted}")
    print(f"written: {len(seen(sink, 'read_uncommitted'))} records")
