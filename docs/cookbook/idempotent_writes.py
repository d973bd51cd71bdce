"""Writes that may come twice: make the second do nothing.

At least once plus writes that know where they came from is exactly once for whoever looks. The key
is topic, partition and offset, or better one of the business, which outlives a copied topic.
"""

import sqlite3

from confluent_kafka import Consumer
from kitchen import BROKER, filled_topic, next_of, number_in

topic = filled_topic(20, partitions=2)
database = sqlite3.connect(":memory:")
database.execute(
    "create table payments (part integer, place integer, amount integer, primary key (part, place))"
)


def run(records: int, commit_every: int) -> int:
    """Work on so many; what came after the last commit comes again to the next."""
    settings = {"group.id": topic, "enable.auto.commit": False, "auto.offset.reset": "earliest"}
    consumer = Consumer(BROKER | settings)
    consumer.subscribe([topic])
    for number in range(1, records + 1):
        message = next_of(consumer)
        with database:
            row = (message.partition(), message.offset(), number_in(message))
            database.execute("insert into payments values (?, ?, ?) on conflict do nothing", row)
        if number % commit_every == 0:
            consumer.commit(asynchronous=False)
    consumer.close()
    return records


delivered = run(13, commit_every=5)  # Ten are committed, three more are written.
delivered += run(10, commit_every=5)
count, total = database.execute("select count(*), sum(amount) from payments").fetchone()
print(f"{delivered} delivered, {count} written, the sum is right: {total == sum(range(20))}")
