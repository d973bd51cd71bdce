"""Headers: what travels with a record beside key and value, such as the id of a trace.

They are bytes, keep their order, and a name may come several times.
"""

from confluent_kafka import Consumer, Producer, TopicPartition
from kitchen import BROKER, new_topic

topic = new_topic()
producer = Producer(BROKER)
headers = [("trace", b"4bf92f35"), ("via", b"shop"), ("via", b"billing")]
producer.produce(topic, "order 17", headers=headers)
producer.flush(30)

consumer = Consumer(BROKER | {"group.id": "unused"})
consumer.assign([TopicPartition(topic, 0, 0)])
(message,) = consumer.consume(1, timeout=30)
consumer.close()
print(", ".join(f"{name}={value.decode()}" for name, value in message.headers() or []))
