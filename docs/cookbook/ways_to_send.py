"""Ways to send: not asking, asking each time, and being told.

Whoever asks each time waits for a round trip per record. Being told is as fast as not asking, and
says of each record where it is or why it is not. What could be mended by trying again has been
tried by then, for `delivery.timeout.ms`.
"""

from confluent_kafka import KafkaError, Message, Producer
from kitchen import BROKER, new_topic

topic = new_topic(1, **{"max.message.bytes": "1000"})
producer = Producer(BROKER)

# Not asking: what fails is not noticed.
producer.produce(topic, "fire and forget")
producer.flush(30)


def send(value: bytes) -> int | None:
    """Send one record and wait; returns its offset, raises what went wrong."""
    told: list[tuple[KafkaError | None, Message]] = []
    producer.produce(topic, value, on_delivery=lambda error, message: told.append((error, message)))
    producer.flush(30)
    ((error, message),) = told
    if error is not None:
        raise RuntimeError(error.name())
    return message.offset()


print(f"asking: offset {send(b'wait')}, then {send(b'wait again')}")

# Being told: `poll` runs the callbacks of what has been answered meanwhile.
offsets: list[int | None] = []
refused: list[KafkaError] = []


def delivered(error: KafkaError | None, message: Message) -> None:
    """Here one would keep what failed, or stop the program."""
    if error is not None:
        refused.append(error)
    else:
        offsets.append(message.offset())


for number in range(5):
    producer.produce(topic, str(number), on_delivery=delivered)
    producer.poll(0)
producer.flush(30)
producer.produce(topic, bytes(2000), on_delivery=delivered)
producer.flush(30)
print(f"being told: offsets {offsets}")
print(f"too large for the topic: {refused[0].name()}, try again: {refused[0].retriable()}")
