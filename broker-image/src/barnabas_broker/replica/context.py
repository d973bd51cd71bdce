"""What all partitions of one broker share when they replicate."""

from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from barnabas_broker.log.truncated_logs import TruncatedLogs
from barnabas_broker.replica.isr import IsrChange
from barnabas_kafka.ids import TopicPartition

if TYPE_CHECKING:  # A partition is made with one of these; this only names its type.
    from barnabas_broker.replica.partition import Partition


def _never(_partition: "Partition", _change: IsrChange) -> None:
    """The default where partitions have one replica: their ISR cannot change."""


def _nothing_waits(_tp: TopicPartition) -> None:
    """The default where no replica manager puts anything off."""


@dataclass(slots=True)
class ReplicationContext:
    """The clock, the live brokers, and the sender of ISR changes.

    `monotonic_ms` never goes back, unlike the wall clock; `lag_max_ms` is replica.lag.time.max.ms.
    `change_isr` is called on the event loop and returns at once; `flush_on_shrink` is
    barnabas.isr.shrink.flush. `truncated_logs` says which logs may be truncated.
    `held` has the partitions whose high watermark waits for a replica outside the ISR:
    `ReplicaManager.recheck_held` empties it, and those that still wait enter it again.
    `cut_ended` is called on the event loop when a log that was being cut may be touched again.
    """

    monotonic_ms: Callable[[], int]
    lag_max_ms: int = 30_000
    flush_on_shrink: bool = False
    change_isr: "Callable[[Partition, IsrChange], None]" = _never
    alive: Collection[int] = field(default_factory=frozenset)
    truncated_logs: TruncatedLogs = field(default_factory=TruncatedLogs)
    held: "set[Partition]" = field(default_factory=set)
    cut_ended: Callable[[TopicPartition], None] = _nothing_waits
