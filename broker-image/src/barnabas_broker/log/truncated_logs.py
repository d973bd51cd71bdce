"""Which logs may be truncated since an unclean shutdown; kept on the event loop.

A log is one of them from the start until its partition leads, for then what it has is what there
is, or has caught up with its leader.
"""

from collections.abc import Callable

from barnabas_kafka.ids import TopicPartition


def _nothing() -> None:
    """The callback by default."""


class TruncatedLogs:
    """The `partitions` whose logs may be; `ended` is called when the last one is trusted."""

    __slots__ = ("ended", "partitions")

    def __init__(self) -> None:
        self.partitions: set[TopicPartition] = set()
        self.ended: Callable[[], None] = _nothing

    def trust(self, tp: TopicPartition) -> None:
        """A log has all that counts, or is no more."""
        if tp in self.partitions:
            self.partitions.discard(tp)
            if not self.partitions:
                self.ended()
