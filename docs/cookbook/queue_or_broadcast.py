"""Queue or broadcast: who shares a group shares the records, each group has them all."""

from confluent_kafka import Consumer
from kitchen import BROKER, fill, new_topic, number_in

topic = new_topic(partitions=2)


def consumer_in(group: str) -> Consumer:
    """A member of a group."""
    settings = {"group.id": f"{topic}-{group}", "auto.offset.reset": "earliest"}
    consumer = Consumer(BROKER | settings)
    consumer.subscribe([topic])
    return consumer


everybody = [consumer_in("orders"), consumer_in("orders"), consumer_in("statistics")]
seen: list[list[int]] = [[], [], []]


def step() -> None:
    """Everybody takes one record, if there is one."""
    for consumer, numbers in zip(everybody, seen, strict=True):
        message = consumer.poll(0.1)
        if message is not None:
            numbers.append(number_in(message))


while [len(consumer.assignment()) for consumer in everybody] != [1, 1, 2]:
    step()
fill(topic, 20, partitions=2)
while sum(map(len, seen)) < 40:
    step()
for consumer in everybody:
    consumer.close()
first, second, alone = seen
wanted = list(range(20))
print(f"one group: {len(first)} and {len(second)}, each once: {sorted(first + second) == wanted}")
print(f"another group: all of them: {sorted(alone) == wanted}")
