"""Ways to commit: by itself, waiting for it, not waiting for it, and partition by partition.

What is committed is the offset of the next record to read, not that of the last one read.
"""

from confluent_kafka import Consumer, TopicPartition
from kitchen import BROKER, filled_topic, next_of

PARTITIONS = 2
BY_HAND: dict[str, object] = {"enable.auto.commit": False}
topic = filled_topic(20, PARTITIONS)


def consumer_of(group: str, settings: dict[str, object]) -> Consumer:
    """A consumer that begins where the group is, or at the beginning."""
    base = {"group.id": f"{topic}-{group}", "auto.offset.reset": "earliest"}
    made = Consumer(BROKER | base | settings)
    made.subscribe([topic])
    return made


def committed(group: str) -> list[int]:
    """Where the group would go on, partition by partition; -1001 is nowhere."""
    asking = Consumer(BROKER | {"group.id": f"{topic}-{group}"})
    places = asking.committed([TopicPartition(topic, n) for n in range(PARTITIONS)], timeout=30)
    asking.close()
    return [place.offset for place in places]


# By itself: every five seconds (auto.commit.interval.ms) and at close, what was handed out. That is
# committed even where it is not yet worked on, so a crash may lose it.
consumer = consumer_of("auto", {})
for _ in range(20):
    next_of(consumer)
consumer.close()
print(f"auto: {committed('auto')}")

# By itself, but only what you say is done: at least once without a commit of your own.
consumer = consumer_of("stored", {"enable.auto.offset.store": False})
for number in range(20):
    message = next_of(consumer)
    if number < 19:  # The last one was not worked on.
        consumer.store_offsets(message)
consumer.close()
print(f"auto of what was stored: one is open: {sum(committed('stored')) == 19}")

# Waiting: slow, and sure. It raises KafkaException where the group has gone on without us.
consumer = consumer_of("sync", BY_HAND)
for _ in range(20):
    done = consumer.commit(next_of(consumer), asynchronous=False)
    assert done is not None
consumer.close()
print(f"sync: {committed('sync')}")

# Not waiting: fast; the callback comes from poll. The last one is waited for.
answers: list[object] = []
consumer = consumer_of("async", BY_HAND | {"on_commit": lambda error, _: answers.append(error)})
for _ in range(20):
    consumer.commit(next_of(consumer), asynchronous=True)
consumer.commit(asynchronous=False)
consumer.close()
print(f"async: {committed('async')}, errors: {[error for error in answers if error]}")

# Partition by partition: what is done in one does not wait for the others.
consumer = consumer_of("by-partition", BY_HAND)
for message in (next_of(consumer) for _ in range(20)):
    if message.partition() == 1 and (message.offset() or 0) % 5 == 4:
        place = TopicPartition(topic, 1, (message.offset() or 0) + 1)
        consumer.commit(offsets=[place], asynchronous=False)
consumer.close()
print(f"by partition: {committed('by-partition')}")
