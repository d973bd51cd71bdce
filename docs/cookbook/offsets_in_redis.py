"""Exactly once into Redis: results and offset in one MULTI … EXEC.

Redis runs the whole of it or nothing. It is as durable as Redis is: with `appendfsync everysec` a
power cut may take back a second, of results and offset alike, and the records are worked on again.
"""

import os

from confluent_kafka import Consumer, TopicPartition
from kitchen import BROKER, filled_topic, next_of, number_in
from redis import Redis

topic = filled_topic(20, partitions=2)
redis = Redis.from_url(os.environ.get("REDIS_URL", "redis://localhost:6379"))


def go_on(consumer: Consumer, partitions: list[TopicPartition]) -> None:
    """Begin each partition where Redis says."""
    for each in partitions:
        each.offset = int(redis.hget(f"{topic}:offsets", str(each.partition)) or 0)
    consumer.assign(partitions)


def run(records: int, *, crash: bool = False) -> None:
    """Add up numbers; a crash comes with one more record half sent."""
    consumer = Consumer(BROKER | {"group.id": topic, "enable.auto.commit": False})
    consumer.subscribe([topic], on_assign=go_on)
    for number in range(records + crash):
        message = next_of(consumer)
        transaction = redis.pipeline(transaction=True)
        transaction.incrby(f"{topic}:sum", number_in(message))
        transaction.incr(f"{topic}:count")
        place = (message.offset() or 0) + 1
        transaction.hset(f"{topic}:offsets", str(message.partition()), str(place))
        if number < records:
            transaction.execute()
    consumer.close()


run(7, crash=True)
run(13)
count, total = (int(redis.get(f"{topic}:{name}") or 0) for name in ("count", "sum"))
print(f"{count} records, their sum {total}: each once: {total == sum(range(20))}")
redis.close()
