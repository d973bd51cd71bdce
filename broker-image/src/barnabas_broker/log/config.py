"""The settings of one partition's log, resolved to plain numbers.

The hot path reads attributes; where a value comes from (topic override, dynamic broker setting,
server.properties, default) is settled before, in ``barnabas_kafka.settings``.
"""

from __future__ import annotations

import zlib
from dataclasses import dataclass

from barnabas_broker.log.producer_state import IDS_MAX
from barnabas_kafka.records.batch import TimestampType
from barnabas_kafka.settings import topic
from barnabas_kafka.settings.topic import TopicSettings

MAX_INT64 = (1 << 63) - 1


@dataclass(frozen=True, slots=True, kw_only=True)
class LogConfig:
    """Topic settings the log acts on; sizes in bytes, times in milliseconds, -1 is no limit.

    Defaults are Apache Kafka 3.9's, which has no bound on producers.
    """

    segment_bytes: int = 1 << 30
    segment_ms: int = 7 * 24 * 3600 * 1000
    segment_jitter_ms: int = 0
    segment_index_bytes: int = 10 * 1024 * 1024
    index_interval_bytes: int = 4096
    retention_ms: int = 7 * 24 * 3600 * 1000
    retention_bytes: int = -1
    file_delete_delay_ms: int = 60_000
    flush_messages: int = MAX_INT64
    flush_ms: int = MAX_INT64
    max_message_bytes: int = 1_048_588
    compact: bool = False
    min_cleanable_ratio: float = 0.5
    min_compaction_lag_ms: int = 0
    max_compaction_lag_ms: int = MAX_INT64
    delete_retention_ms: int = 24 * 3600 * 1000
    delete: bool = True
    preallocate: bool = False
    timestamp_type: TimestampType = TimestampType.CREATE
    producer_id_expiration_ms: int = 24 * 3600 * 1000
    producer_ids_max: int = IDS_MAX

    @classmethod
    def from_settings(
        cls,
        settings: TopicSettings,
        *,
        producer_id_expiration_ms: int = 24 * 3600 * 1000,
        producer_ids_max: int = IDS_MAX,
    ) -> LogConfig:
        """The log's part of a topic's settings; what holds for producers is the broker's alone."""
        policy = settings[topic.CLEANUP_POLICY]
        segment_ms = settings[topic.SEGMENT_MS]
        max_lag_ms = settings[topic.MAX_COMPACTION_LAG_MS]
        if "compact" in policy:
            # What stays in the active segment is never compacted, so it must not stay too long.
            segment_ms = min(segment_ms, max_lag_ms)
        append_time = settings[topic.MESSAGE_TIMESTAMP_TYPE] == "LogAppendTime"
        return cls(
            segment_bytes=settings[topic.SEGMENT_BYTES],
            segment_ms=segment_ms,
            segment_jitter_ms=settings[topic.SEGMENT_JITTER_MS],
            segment_index_bytes=settings[topic.SEGMENT_INDEX_BYTES],
            index_interval_bytes=settings[topic.INDEX_INTERVAL_BYTES],
            retention_ms=settings[topic.RETENTION_MS],
            retention_bytes=settings[topic.RETENTION_BYTES],
            file_delete_delay_ms=settings[topic.FILE_DELETE_DELAY_MS],
            flush_messages=settings[topic.FLUSH_MESSAGES],
            flush_ms=settings[topic.FLUSH_MS],
            max_message_bytes=settings[topic.MAX_MESSAGE_BYTES],
            compact="compact" in policy,
            min_cleanable_ratio=settings[topic.MIN_CLEANABLE_DIRTY_RATIO],
            min_compaction_lag_ms=settings[topic.MIN_COMPACTION_LAG_MS],
            max_compaction_lag_ms=max_lag_ms,
            delete_retention_ms=settings[topic.DELETE_RETENTION_MS],
            delete="delete" in policy,
            preallocate=settings[topic.PREALLOCATE],
            timestamp_type=TimestampType.APPEND if append_time else TimestampType.CREATE,
            producer_id_expiration_ms=producer_id_expiration_ms,
            producer_ids_max=producer_ids_max,
        )

    def roll_jitter_ms(self, name: str, base_offset: int) -> int:
        """How much earlier than ``segment_ms`` the segment at ``base_offset`` rolls.

        Spread evenly by a hash of partition and offset: thousands of partitions created together
        do not roll together, and the same log rolls at the same point again.
        """
        if self.segment_jitter_ms <= 0:
            return 0
        spread = min(self.segment_jitter_ms, self.segment_ms)
        return zlib.crc32(f"{name}/{base_offset}".encode()) % spread
