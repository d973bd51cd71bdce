"""One producer for many threads: it is made for that, and batches better than one for each.

What one thread sends to a partition stays in its order. Callbacks come in whichever thread polls,
so they only touch what several may touch.
"""

import threading

from confluent_kafka import Consumer, Message, Producer, TopicPartition
from kitchen import BROKER, new_topic, next_of

THREADS, RECORDS = 4, 200
topic = new_topic()
producer = Producer(BROKER | {"enable.idempotence": True, "linger.ms": 5})
failed: list[object] = []


def delivered(error: object, _: Message) -> None:
    """Appending to a list is safe from every thread."""
    if error is not None:
        failed.append(error)


def send(name: str) -> None:
    """What each thread does."""
    for number in range(RECORDS):
        producer.produce(topic, str(number), name, on_delivery=delivered)
        producer.poll(0)


threads = [threading.Thread(target=send, args=(f"thread {n}",)) for n in range(THREADS)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
producer.flush(30)  # Once, when all have ended.

consumer = Consumer(BROKER | {"group.id": "unused"})
consumer.assign([TopicPartition(topic, 0, 0)])
seen: dict[bytes | None, list[int]] = {}
for _ in range(THREADS * RECORDS):
    message = next_of(consumer)
    seen.setdefault(message.key(), []).append(int(message.value() or b""))
consumer.close()
print(f"{len(seen)} threads, failed: {len(failed)}")
print(f"each in its order: {all(numbers == list(range(RECORDS)) for numbers in seen.values())}")
