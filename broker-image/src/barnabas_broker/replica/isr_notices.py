"""When to notify the controller of in-sync replicas that leaders have written themselves.

Pure: time comes in as milliseconds. The figures are those of Kafka's `ZkAlterPartitionManager`:
a few seconds after the last change, so that many travel in one notification, or a minute after
the last notification where changes do not end.
"""

from typing import Final

from barnabas_kafka.ids import TopicPartition

CHECK_MS: Final = 2_500
"""How often `take` is to be asked."""

LINGER_MS: Final = 5_000
DELAY_MAX_MS: Final = 60_000


class IsrNotices:
    """The partitions that were written and not notified yet."""

    def __init__(self, now_ms: int) -> None:
        self._written: set[TopicPartition] = set()
        self._last_written_ms = now_ms
        self._last_notice_ms = now_ms

    def written(self, tp: TopicPartition, *, now_ms: int) -> None:
        """The state of a partition was written."""
        self._written.add(tp)
        self._last_written_ms = now_ms

    def take(self, now_ms: int) -> frozenset[TopicPartition]:
        """The partitions to notify now; none where it is to wait."""
        quiet = self._last_written_ms + LINGER_MS < now_ms
        if not self._written or not (quiet or self._last_notice_ms + DELAY_MAX_MS < now_ms):
            return frozenset()
        taken = frozenset(self._written)
        self._written.clear()
        self._last_notice_ms = now_ms
        return taken

    def put_back(self, partitions: frozenset[TopicPartition]) -> None:
        """The controller could not be notified of these."""
        self._written |= partitions
