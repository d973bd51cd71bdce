"""Own serializers: objects in, objects out; and handling of bytes that cannot be deserialized.

The first byte says the form, so that tomorrow's form can live beside today's.
"""

import struct
from dataclasses import dataclass

from confluent_kafka import DeserializingConsumer, Producer, SerializingProducer, TopicPartition
from confluent_kafka.error import ConsumeError
from confluent_kafka.serialization import (
    Deserializer,
    SerializationContext,
    SerializationError,
    Serializer,
    StringDeserializer,
    StringSerializer,
)
from kitchen import BROKER, new_topic

FORM = struct.Struct(">BqI")


@dataclass(frozen=True)
class Order:
    """What the business speaks of."""

    number: int
    cents: int


class OrderSerializer(Serializer):
    """An order as 13 bytes."""

    def __call__(self, obj: Order, ctx: SerializationContext | None = None) -> bytes:
        """Raises SerializationError for an order that does not fit."""
        try:
            return FORM.pack(1, obj.number, obj.cents)
        except struct.error as error:
            raise SerializationError(str(error)) from error


class OrderDeserializer(Deserializer):
    """The order again."""

    def __call__(self, value: bytes | None, ctx: SerializationContext | None = None) -> Order:
        """Raises SerializationError for bytes that are no order."""
        if value is None or len(value) != FORM.size or value[0] != 1:
            raise SerializationError("not an order of form 1")
        _, number, cents = FORM.unpack(value)
        return Order(number, cents)


topic = new_topic()
settings = {"key.serializer": StringSerializer(), "value.serializer": OrderSerializer()}
producer = SerializingProducer(BROKER | settings)
producer.produce(topic, "anna", Order(17, 1999))
producer.flush(30)
careless = Producer(BROKER)
careless.produce(topic, "order 18, 20 euro", "bert")
careless.flush(30)
producer.produce(topic, "carl", Order(19, 500))
producer.flush(30)

reading = {"key.deserializer": StringDeserializer(), "value.deserializer": OrderDeserializer()}
consumer = DeserializingConsumer(BROKER | reading | {"group.id": "unused"})
consumer.assign([TopicPartition(topic, 0, 0)])
for _ in range(3):
    try:
        message = consumer.poll(30)
        assert message is not None
        print(f"{message.key()}: {message.value()}")
    except ConsumeError as error:
        # Keep such a record elsewhere and go on: it will be no more readable the next time.
        bad = error.kafka_message
        assert bad is not None
        print(f"offset {bad.offset()} is unreadable: {bad.value()!r}")
consumer.close()
