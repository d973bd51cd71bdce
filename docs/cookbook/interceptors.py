"""Hooks around every send and its outcome, as Java's interceptors are: stamp, count, trace.

Each hook changes or watches what is sent in its turn. One that cannot make sense of a value is no
reason to lose it: that is logged, and the record goes without.
"""

import logging
from collections import Counter
from collections.abc import Callable, Sequence

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, Producer, TopicPartition
from kitchen import BROKER, new_topic, next_of

Outgoing = Callable[[bytes], bytes]
Outcome = Callable[[object], None]


class HookedProducer:
    """A producer that passes values through hooks, and outcomes to others."""

    def __init__(self, sending: Sequence[Outgoing], ended: Sequence[Outcome]) -> None:
        self.producer = Producer(BROKER)
        self.sending = sending
        self.ended = ended

    def send(self, topic: str, value: bytes) -> None:
        """Send, or tell the hooks at once why it cannot be sent."""
        for hook in self.sending:
            try:
                value = hook(value)
            except ValueError as error:
                logging.warning("a hook is left out: %s", error)
        try:
            self.producer.produce(topic, value, on_delivery=self._delivered)
        except KafkaException as error:  # Too large, for one.
            self._delivered(error.args[0], None)
        self.producer.poll(0)

    def _delivered(self, error: KafkaError | None, _: Message | None) -> None:
        for hook in self.ended:
            hook(error)


def with_origin(value: bytes) -> bytes:
    """Put the program's name before every value."""
    return b"shop-7," + value


def with_even_length(value: bytes) -> bytes:
    """A hook that is not prepared for everything."""
    if len(value) % 2:
        raise ValueError(f"{len(value)} bytes are odd")
    return value + b"!"


counted: Counter[str] = Counter()
topic = new_topic()
producer = HookedProducer(
    [with_origin, with_even_length],
    [lambda error: counted.update(["failed" if error else "delivered"])],
)
for number in range(8, 13):
    producer.send(topic, str(number).encode())
producer.send(topic, bytes(2_000_000))
producer.producer.flush(30)
print(f"delivered {counted['delivered']}, failed {counted['failed']}")

consumer = Consumer(BROKER | {"group.id": "unused"})
consumer.assign([TopicPartition(topic, 0, 0)])
print([(next_of(consumer).value() or b"").decode() for _ in range(5)])
consumer.close()
