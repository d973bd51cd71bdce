"""Ways to send: fire and forget, synchronous, and with a callback.

A synchronous producer waits for a round trip per record. A callback is as fast as fire and forget,
and reports the offset or the error of each record. Retriable errors have been retried by then, for
`delivery.timeout.ms`.
"""

from confluent_kafka import KafkaError, Message, Producer
from kitchen import BROKER, new_topic

topic = new_topic(1, **{"max.message.bytes": "1000"})
producer = Producer(BROKER)

# Fire and forget: failures go unnoticed.
producer.produce(topic, "fire and forget")
producer.flush(30)


def send(value: bytes) -> int | None:
    """Send one record and wait; return its offset or raise its error."""
    reports: list[tuple[KafkaError | None, Message]] = []
    producer.produce(
        topic, value, on_delivery=lambda error, message: reports.append((error, message))
    )
    producer.flush(30)
    ((error, message),) = reports
    if error is not None:
        raise RuntimeError(error.name())
    return message.offset()


print(f"synchronous: offset {send(b'wait')}, then {send(b'wait again')}")

# With a callback: `poll` runs the callbacks of acknowledged and failed records.
offsets: list[int | None] = []
refused: list[KafkaError] = []


def delivered(error: KafkaError | None, message: Message) -> None:
    """A real program would store failed records, or stop."""
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
print(f"with a callback: offsets {offsets}")
print(f"too large for the topic: {refused[0].name()}, try again: {refused[0].retriable()}")
