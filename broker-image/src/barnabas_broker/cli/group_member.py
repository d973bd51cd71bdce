"""A consumer that is a member of a group: what it has printed is committed, and nothing else.

Offsets are stored once records are written, committed every few seconds and at the end, and the
group is left at once, so that other members take over without waiting for a session to end.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from barnabas_broker.cli.client import Connection, describe, failures
from barnabas_broker.cli.errors import CommandError, InputError

if TYPE_CHECKING:
    from confluent_kafka import Consumer, KafkaError, TopicPartition


class GroupMember:
    """Reads one topic as a member of a group."""

    def __init__(
        self, connection: Connection, topic: str, group: str, properties: Mapping[str, object]
    ) -> None:
        from confluent_kafka import Consumer

        self._connection = connection
        self._topic = topic
        self._group = group
        self._refused: KafkaError | None = None
        self.ends: dict[int, int] | None = None
        """Where each assigned partition ended when it was assigned; None while none are."""
        connection.knock()
        config = connection.config(
            {
                **properties,
                "group.id": group,
                "enable.auto.commit": True,
                "enable.auto.offset.store": False,
                "enable.partition.eof": True,
                "on_commit": self._committed,
            }
        )
        with failures("the client configuration is refused", InputError):
            self.consumer: Consumer = Consumer(config)

    def join(self) -> None:
        """Subscribe to the topic, which must be there; partitions come while records are read."""
        found = self._connection.metadata(self.consumer, topic=self._topic).topics[self._topic]
        if found.error is not None:
            raise CommandError(
                f"cannot read {self._topic}: {describe(found.error)}", code=found.error.code()
            )
        self.consumer.subscribe(
            [self._topic],
            on_assign=self._assigned,
            on_revoke=self._revoked,
            on_lost=self._revoked,
        )

    def store(self, read: Mapping[int, int]) -> None:
        """Have these offsets committed, by partition: those of the records to read next."""
        from confluent_kafka import KafkaException, TopicPartition

        for partition, offset in read.items():
            try:
                at = TopicPartition(self._topic, partition, offset)
                self.consumer.store_offsets(offsets=[at])
            except KafkaException:
                pass  # It is another member's by now, which reads these records again.

    def close(self) -> None:
        """Commit what is stored and leave the group; CommandError where nothing was committed."""
        self.consumer.close()
        if self._refused is not None:
            raise CommandError(
                f"the offsets of group {self._group} are not committed: {describe(self._refused)}",
                code=self._refused.code(),
            )

    def _assigned(self, consumer: Consumer, partitions: list[TopicPartition]) -> None:
        ends = {} if self.ends is None else self.ends
        for each in partitions:
            bounds = consumer.get_watermark_offsets(each, timeout=self._connection.timeout_s)
            ends[each.partition] = bounds[1] if bounds is not None else 0
        self.ends = ends

    def _revoked(self, consumer: Consumer, partitions: list[TopicPartition]) -> None:
        if len(partitions) == len(consumer.assignment()):
            self.ends = None  # Perhaps to be assigned again: this is no end.
            return
        for each in partitions:
            if self.ends is not None:
                self.ends.pop(each.partition, None)

    def _committed(self, error: KafkaError | None, _: list[TopicPartition]) -> None:
        from confluent_kafka import KafkaError

        if error is None or error.code() == KafkaError._NO_OFFSET:
            self._refused = None
        else:
            self._refused = error
