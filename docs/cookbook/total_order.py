"""Total order: only within a partition. One consumer alone does not make it.

One partition and one consumer have it, at the speed of one partition. With several, one consumer
that has them all can merge by something that orders the records, here the time they are stamped
with; it has to hold a record of each partition before it knows which is next.
"""

import heapq
from collections.abc import Iterator

from confluent_kafka import Consumer, Producer, TopicPartition
from kitchen import BROKER, filled_topic, new_topic, next_of, number_in

RECORDS = 300


def stamped_topic(partitions: int) -> str:
    """A topic whose records say by their time when they were sent."""
    topic = new_topic(partitions, **{"retention.ms": "-1"})  # What is old is kept, too.
    producer = Producer(BROKER)
    for number in range(RECORDS):
        # Uneven, as keys are.
        where = number % 7 % partitions
        producer.produce(topic, str(number), partition=where, timestamp=1_000_000 + number)
    producer.flush(30)
    return topic


def reading(topic: str, partitions: int) -> list[int]:
    """What one consumer of all partitions sees."""
    consumer = Consumer(BROKER | {"group.id": "unused"})
    consumer.assign([TopicPartition(topic, number, 0) for number in range(partitions)])
    seen = [number_in(next_of(consumer)) for _ in range(RECORDS)]
    consumer.close()
    return seen


def of_partition(topic: str, number: int) -> Iterator[tuple[int, int]]:
    """The records of one partition with their times, up to its end as it is now."""
    consumer = Consumer(BROKER | {"group.id": "unused"})
    place = TopicPartition(topic, number, 0)
    _, end = consumer.get_watermark_offsets(place)
    consumer.assign([place])
    for _ in range(end):
        message = next_of(consumer)
        yield message.timestamp()[1], number_in(message)
    consumer.close()


wanted = list(range(RECORDS))
print(f"one partition, one consumer: in order: {reading(filled_topic(RECORDS), 1) == wanted}")
topic = stamped_topic(3)
seen = reading(topic, 3)
print(f"three partitions, one consumer: in order: {seen == wanted}")
apart = [[n for n in seen if n % 7 % 3 == number] for number in range(3)]
print(f"each of the three by itself: {all(part == sorted(part) for part in apart)}")
merged = [value for _, value in heapq.merge(*(of_partition(topic, n) for n in range(3)))]
print(f"merged by time: in order: {merged == wanted}")
