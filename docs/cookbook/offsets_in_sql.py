"""Exactly once into a database: offsets and results in one transaction.

The group decides who reads which partition; where to go on is in the database, beside what came of
it. A crash undoes both or neither.
"""

import sqlite3

from confluent_kafka import Consumer, TopicPartition
from kitchen import BROKER, filled_topic

topic = filled_topic(20, partitions=2)
database = sqlite3.connect(":memory:")
database.execute("create table results (value integer)")
database.execute("create table offsets (number integer primary key, next integer)")


def go_on(consumer: Consumer, partitions: list[TopicPartition]) -> None:
    """Begin each partition where the database says."""
    for each in partitions:
        query = "select next from offsets where number = ?"
        found = database.execute(query, (each.partition,)).fetchone()
        each.offset = found[0] if found else 0
    consumer.assign(partitions)


def run(records: int, *, crash: bool = False) -> None:
    """Work on so many records; a crash comes in the middle of one more transaction."""
    consumer = Consumer(BROKER | {"group.id": topic, "enable.auto.commit": False})
    consumer.subscribe([topic], on_assign=go_on)
    for _ in range(records):
        message = consumer.poll(30)
        assert message is not None
        assert message.error() is None
        with database:  # One transaction.
            value = int(message.value() or b"")
            database.execute("insert into results values (?)", (value,))
            place = (message.partition(), (message.offset() or 0) + 1)
            database.execute("replace into offsets values (?, ?)", place)
    if crash:
        message = consumer.poll(30)
        assert message is not None
        database.execute("insert into results values (?)", (int(message.value() or b""),))
        database.rollback()  # What happens to a transaction whose program dies.
    consumer.close()


run(7, crash=True)
run(13)
values = [row[0] for row in database.execute("select value from results order by value")]
print(f"every record once: {values == list(range(20))}")
