"""Where a record goes: the partition you say, else by its key, else anywhere.

Java hashes keys with murmur2, librdkafka with crc32 unless told `murmur2_random`: all who write to
a topic have to agree, or a key is in two places. More partitions later take nothing along, and most
keys go to another one from then on.
"""

from confluent_kafka import Message, Producer
from confluent_kafka.admin import AdminClient, NewPartitions
from kitchen import BROKER, new_topic

SETTINGS = {"partitioner": "murmur2_random", "sticky.partitioning.linger.ms": 0}
# What Java's `Utils.murmur2` makes of some keys.
MURMUR2 = {"21": -973932308, "foobar": -790332482, "a-little-bit-long-string": -985981536}
topic = new_topic(partitions=4)


def partitions_of(key: str | None, times: int = 20, **where: int) -> list[int]:
    """The partitions that some records with a key went to."""
    went: set[int] = set()

    def delivered(error: object, message: Message) -> None:
        assert error is None, error
        went.add(message.partition() or 0)

    producer = Producer(BROKER | SETTINGS)
    for _ in range(times):
        producer.produce(topic, "some", key, on_delivery=delivered, **where)
    producer.flush(30)
    return sorted(went)


print(f"said: {partitions_of('foobar', partition=3)}")
print(f"by key: {partitions_of('foobar')}")
as_java = {key: [(value & 0x7FFFFFFF) % 4] for key, value in MURMUR2.items()}
print(f"where Java's would be: {all(partitions_of(key) == as_java[key] for key in MURMUR2)}")
print(f"neither: {partitions_of(None, times=400)}")
admin = AdminClient(BROKER)
admin.create_partitions([NewPartitions(topic, 8)])[topic].result(30)
while len(admin.list_topics(topic, timeout=30).topics[topic].partitions) < 8:
    pass  # The change takes a moment to be known.
print(f"by key, with four partitions more: {partitions_of('foobar')}")
