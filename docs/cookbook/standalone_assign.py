"""Without a group: say yourself which partitions to read, and from where.

Nobody rebalances, nobody takes over, nobody remembers; two such readers both see everything. Here
the whole of a topic from a moment on, up to its end: what a job does that runs every hour.
"""

from confluent_kafka import OFFSET_END, Consumer, KafkaError, Producer, TopicPartition
from confluent_kafka.admin import AdminClient
from kitchen import BROKER, new_topic, number_in

MOMENT = 1_700_000_000_000
topic = new_topic(partitions=3, **{"retention.ms": "-1"})  # What is old is kept, too.
producer = Producer(BROKER)
for number in range(30):
    producer.produce(topic, str(number), partition=number % 3, timestamp=MOMENT + 1000 * number)
producer.flush(30)


def read_from(moment: int) -> list[int]:
    """Every record stamped then or later, up to the end as it is now."""
    # librdkafka wants a group even where none is used; nothing is committed to it.
    settings = {"group.id": f"{topic}-unused", "enable.auto.commit": False}
    consumer = Consumer(BROKER | settings | {"enable.partition.eof": True})
    numbers = consumer.list_topics(topic, timeout=30).topics[topic].partitions
    asked = [TopicPartition(topic, number, moment) for number in numbers]
    places = consumer.offsets_for_times(asked, timeout=30)
    consumer.assign(places)
    unread = {place.partition for place in places if place.offset != OFFSET_END}
    seen = []
    while unread:
        message = consumer.poll(30)
        assert message is not None
        error = message.error()
        if error is None:
            seen.append(number_in(message))
        elif error.code() == KafkaError._PARTITION_EOF:
            unread.discard(message.partition() or 0)
    consumer.close()
    return sorted(seen)


print(f"from the 20th second on: {read_from(MOMENT + 20_000)}")
print(f"another, from the beginning: all: {read_from(0) == list(range(30))}")
admin = AdminClient(BROKER)
groups = admin.list_consumer_groups().result(30).valid
print(f"a group came of it: {any(group.group_id.startswith(topic) for group in groups)}")
