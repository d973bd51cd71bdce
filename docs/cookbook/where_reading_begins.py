"""Where reading begins: where the group has committed; without that, as `auto.offset.reset` says.

That is asked too when the committed place is no longer there. A group that is restarted goes on
where it was, whatever the setting.
"""

from confluent_kafka import Consumer, KafkaError, TopicPartition
from confluent_kafka.admin import AdminClient
from kitchen import BROKER, filled_topic, number_in

topic = filled_topic(10)


def first_of(group: str, reset: str) -> int | str:
    """The first record that a group is given; its end or its error where there is none."""
    settings = {"group.id": f"{topic}-{group}", "auto.offset.reset": reset}
    consumer = Consumer(BROKER | settings | {"enable.partition.eof": True})
    consumer.subscribe([topic])
    message = consumer.poll(30)
    assert message is not None
    error = message.error()
    if error is None:
        found: int | str = number_in(message)
    elif error.code() == KafkaError._PARTITION_EOF:
        found = f"waits at {message.offset()}"
    else:
        found = error.name()
    consumer.close()
    return found


def commit(group: str, offset: int) -> None:
    """What a group that had read so far would have done."""
    committing = Consumer(BROKER | {"group.id": f"{topic}-{group}", "enable.auto.commit": False})
    committing.commit(offsets=[TopicPartition(topic, 0, offset)], asynchronous=False)
    committing.close()


print(f"earliest: {first_of('new', 'earliest')}")
print(f"latest: {first_of('newer', 'latest')}")
print(f"error: {first_of('newest', 'error')}")
commit("old", 7)
print(f"committed 7: {first_of('old', 'earliest')}")
commit("late", 3)
admin = AdminClient(BROKER)
place = TopicPartition(topic, 0, 5)
admin.delete_records([place])[place].result(30)
print(f"committed 3, of which the first five are gone: {first_of('late', 'earliest')}")
