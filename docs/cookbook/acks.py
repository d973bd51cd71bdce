"""acks: what a producer knows when a record counts as sent.

0    nothing: the record may be lost, and has no offset
1    the leader has it; it is lost if the leader fails before the others have copied it
all  every replica in sync has it: with min.insync.replicas=2 it outlives the loss of a broker
"""

from confluent_kafka import Message, Producer
from kitchen import BROKER, new_topic

topic = new_topic()
for acks in ("0", "1", "all"):
    producer = Producer(BROKER | {"acks": acks})
    offsets = []

    def delivered(error: object, message: Message, offsets: list[int | None] = offsets) -> None:
        assert error is None, error
        offsets.append(message.offset())

    producer.produce(topic, f"sent with acks={acks}", on_delivery=delivered)
    producer.flush(30)
    # Without an acknowledgement nobody told us the offset.
    print(f"acks={acks}: offset {'unknown' if acks == '0' else offsets[0]}")
