"""Own partitioning: what is for the auditors goes to the last partition, the rest anywhere else.

librdkafka has ready-made partitioners (`partitioner`: murmur2_random is that of Java's producers);
for one of your own, say the partition with each record.
"""

import random

from confluent_kafka import Consumer, Producer, TopicPartition
from kitchen import BROKER, new_topic, next_of

topic = new_topic(partitions=5)
producer = Producer(BROKER)


def partition_of(key: bytes | None, partitions: int) -> int:
    """The last one for keys with `audit` in them; any of the others, if there are others."""
    if partitions == 1 or (key is not None and b"audit" in key):
        return partitions - 1
    return random.randrange(partitions - 1)


def partitions_of(topic: str) -> int:
    """How many there are now; a program that runs long asks again from time to time."""
    return len(producer.list_topics(topic, timeout=30).topics[topic].partitions)


partitions = partitions_of(topic)
for number in range(200):
    key = b"audit" if number % 10 == 0 else None if number % 2 else b"order"
    producer.produce(topic, str(number), key, partition=partition_of(key, partitions))
producer.flush(30)

consumer = Consumer(BROKER | {"group.id": "unused"})
consumer.assign([TopicPartition(topic, number, 0) for number in range(partitions)])
where: dict[bool, set[int | None]] = {True: set(), False: set()}
for _ in range(200):
    message = next_of(consumer)
    where[message.key() == b"audit"].add(message.partition())
consumer.close()
print(f"audit: {sorted(where[True])}, others: {sorted(where[False])}")
