"""Rebalance listeners: finish and commit what is in hand before the partitions go to another.

`on_revoke` comes while they are still ours: a commit succeeds. `on_lost` comes when they are no
longer: another may be at work on them, so what is in hand is thrown away, not committed.
"""

from confluent_kafka import Consumer, Message, TopicPartition
from kitchen import BROKER, filled_topic, number_in

topic = filled_topic(40, partitions=2)
done: list[int] = []


class Worker:
    """A consumer that works on five records at a time."""

    def __init__(self, name: str) -> None:
        self.in_hand: list[Message] = []
        self.events: list[str] = []
        settings = {
            "group.id": topic,
            "client.id": name,
            "enable.auto.commit": False,
            "auto.offset.reset": "earliest",
        }
        self.consumer = Consumer(BROKER | settings)
        self.consumer.subscribe(
            [topic], on_assign=self.assigned, on_revoke=self.revoked, on_lost=self.lost
        )

    def assigned(self, _: Consumer, partitions: list[TopicPartition]) -> None:
        """Here one would fetch what belongs to the partitions: caches, files, connections."""
        self.events.append(f"gets {sorted(each.partition for each in partitions)}")

    def revoked(self, _: Consumer, partitions: list[TopicPartition]) -> None:
        """Finish; nothing that takes long: everybody waits for us."""
        self.events.append(f"gives {sorted(each.partition for each in partitions)}")
        self.finish()

    def lost(self, _: Consumer, __: list[TopicPartition]) -> None:
        """We were silent for too long; whoever has them now begins where we committed."""
        self.in_hand.clear()

    def step(self) -> None:
        """Take one record, if there is one, and finish when there are five."""
        message = self.consumer.poll(0.1)
        if message is not None:
            self.in_hand.append(message)
        if len(self.in_hand) == 5:
            self.finish()

    def finish(self) -> None:
        """Work on what is in hand, then commit."""
        if self.in_hand:
            done.extend(number_in(message) for message in self.in_hand)
            self.in_hand.clear()
            self.consumer.commit(asynchronous=False)


first = Worker("a")
while len(done) < 10 or len(first.in_hand) < 3:
    first.step()
second = Worker("b")
while len(done) + len(first.in_hand) + len(second.in_hand) < 40 or not second.consumer.assignment():
    first.step()
    second.step()
second.consumer.close()
while len(first.consumer.assignment()) < 2:
    first.step()
first.consumer.close()
for name, worker in (("a", first), ("b", second)):
    print(f"{name} {', '.join(worker.events)}")
print(f"every record once: {sorted(done) == list(range(40))}")
