"""A producer that loses nothing, doubles nothing, and keeps the order.

`enable.idempotence` brings acks=all and retries without doubles; the callback is where a record
that could not be delivered in two minutes is told, and has to be handled.
"""

from confluent_kafka import Consumer, Message, Producer, TopicPartition
from kitchen import BROKER, new_topic

topic = new_topic()
producer = Producer(BROKER | {"enable.idempotence": True, "delivery.timeout.ms": 120_000})
failed: list[Message] = []


def delivered(error: object, message: Message) -> None:
    """Keep what failed; a real program stores it, alarms, or stops."""
    if error is not None:
        failed.append(message)


for number in range(1000):
    while True:
        try:
            producer.produce(topic, str(number), on_delivery=delivered)
            break
        except BufferError:  # The buffer is full: wait until some are acknowledged.
            producer.poll(1)
    producer.poll(0)  # Calls the callbacks.

# Whoever ends without this loses what is still in the buffer.
assert producer.flush(120) == 0
assert not failed

consumer = Consumer(BROKER | {"group.id": "unused"})
consumer.assign([TopicPartition(topic, 0, 0)])
values = [int(message.value() or b"") for message in consumer.consume(1000, timeout=30)]
consumer.close()
print(f"{len(values)} records, in order: {values == list(range(1000))}")
