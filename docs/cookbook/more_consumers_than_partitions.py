"""More consumers than partitions: one is idle, and takes over when another leaves."""

from confluent_kafka import Consumer
from kitchen import BROKER, new_topic

topic = new_topic(partitions=2)
team = [Consumer(BROKER | {"group.id": topic, "client.id": f"c{n}"}) for n in range(3)]
for consumer in team:
    consumer.subscribe([topic])


def settle() -> list[int]:
    """Poll until both partitions are given out, and return how many each consumer has."""
    while True:
        for consumer in team:
            consumer.poll(0.1)
        has = [len(consumer.assignment()) for consumer in team]
        if sum(has) == 2 and max(has) == 1:
            return has


print(f"three consumers: {sorted(settle())}")
busy = next(consumer for consumer in team if consumer.assignment())
team.remove(busy)
busy.close()
print(f"one has left: {settle()}")
for consumer in team:
    consumer.close()
