"""Compression: what each codec leaves of the same records on the wire and on disk.

The producer compresses whole batches, the broker keeps them as they are (`compression.type` of the
topic is `producer`), the consumer expands them. Larger batches compress better: give `linger.ms` a
few milliseconds. Clients before 2.1 cannot read zstd.
"""

import json

from confluent_kafka import Consumer, Producer, TopicPartition
from kitchen import BROKER, new_topic

RECORDS = 5000
record = '{"order": %d, "customer": "customer-%d", "state": "shipped", "carrier": "night train"}'
values = [record % (number, number * 7919 % 1000) for number in range(RECORDS)]


def bytes_sent(topic: str, codec: str) -> int:
    """Send everything and return what went over the wire, by the client's own statistics."""
    told: list[dict[str, int]] = []
    settings = {"compression.type": codec, "linger.ms": 50, "statistics.interval.ms": 100}
    producer = Producer(
        BROKER | settings | {"stats_cb": lambda text: told.append(json.loads(text))}
    )
    for value in values:
        producer.produce(topic, value)
    producer.flush(30)
    while not told or told[-1]["txmsgs"] < RECORDS:
        producer.poll(1)
    return told[-1]["tx_bytes"]


def values_in(topic: str) -> list[str]:
    """Read everything back."""
    consumer = Consumer(BROKER | {"group.id": "unused"})
    consumer.assign([TopicPartition(topic, 0, 0)])
    messages = consumer.consume(RECORDS, timeout=30)
    consumer.close()
    return [(message.value() or b"").decode() for message in messages]


sizes = {}
for codec in ("none", "gzip", "snappy", "lz4", "zstd"):
    topic = new_topic()
    sizes[codec] = bytes_sent(topic, codec)
    share = 100 * sizes[codec] // sizes["none"]
    print(f"{codec}: {sizes[codec]} bytes, {share} %, unchanged: {values_in(topic) == values}")
half = sizes.pop("none") / 2
print(f"less than half with each codec: {all(size < half for size in sizes.values())}")
