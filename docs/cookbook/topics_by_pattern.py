"""Topics by a pattern: one that is created later and matches is read too, from its beginning.

Consumers look every `topic.metadata.refresh.interval.ms` (five minutes); what was sent before they
see a new topic is not lost with `auto.offset.reset=earliest`. With another setting it is.
"""

from confluent_kafka import Consumer
from confluent_kafka.admin import AdminClient, NewTopic
from kitchen import BROKER, fill, new_topic, number_in

first = new_topic()
settings = {
    "group.id": first,
    "auto.offset.reset": "earliest",
    "topic.metadata.refresh.interval.ms": 200,
}
consumer = Consumer(BROKER | settings)
consumer.subscribe([f"^{first}.*"])  # The caret makes it a pattern.
while not consumer.assignment():
    consumer.poll(0.1)
print(f"reads {len(consumer.assignment())} topic")

later = f"{first}-later"
admin = AdminClient(BROKER)
admin.create_topics([NewTopic(later, 1, 1)])[later].result(30)
fill(later, 5)
seen: list[int] = []
while len(seen) < 5:
    message = consumer.poll(1)
    if message is not None and message.error() is None:
        seen.append(number_in(message))
print(f"reads {len(consumer.assignment())} topics, and of the later one: {seen}")
consumer.close()
