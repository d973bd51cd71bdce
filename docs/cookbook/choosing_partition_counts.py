"""How many partitions: the rate you need, by the rates you measure with one.

One partition takes what one producer can write, and what one consumer can work on; the slower of
the two decides. Leave room for growth: adding partitions later moves keys to other partitions.
"""

import math
import time

from confluent_kafka import Consumer, Producer, TopicPartition
from kitchen import BROKER, new_topic, next_of

RECORDS = 50_000


def partitions_for(needed: float, written: float, worked: float, *, growth: float = 2) -> int:
    """Partitions for `needed` records a second, of which one takes `written` and `worked`."""
    return max(1, math.ceil(growth * needed / min(written, worked)))


def write(topic: str) -> int:
    """Records a second into one partition, all acknowledged."""
    producer = Producer(BROKER | {"acks": "all", "linger.ms": 5})
    begin = time.perf_counter()
    for number in range(RECORDS):
        producer.produce(topic, f"{number:0200d}", partition=0)
        producer.poll(0)
    producer.flush(30)
    return round(RECORDS / (time.perf_counter() - begin))


def work(topic: str) -> int:
    """Records a second out of it, with the work that is yours in place of this parsing."""
    begin = time.perf_counter()
    consumer = Consumer(BROKER | {"group.id": "unused"})
    consumer.assign([TopicPartition(topic, 0, 0)])
    for _ in range(RECORDS):
        int(next_of(consumer).value() or b"")
    rate = round(RECORDS / (time.perf_counter() - begin))
    consumer.close()
    return rate


# The consumer is the slow one: 30,000 a second of 2,000 each are 15, and 30 with room to double.
print(f"30000 needed, 50000 written, 2000 worked: {partitions_for(30_000, 50_000, 2_000)}")
print(f"30000 needed, 50000 written, 80000 worked: {partitions_for(30_000, 50_000, 80_000)}")
topic = new_topic()
written, worked = write(topic), work(topic)
print(f"measured: {written} written, {worked} worked")
print(f"for 1000000 a second: {partitions_for(1_000_000, written, worked)}")
