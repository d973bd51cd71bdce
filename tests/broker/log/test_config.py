"""The log's settings: Kafka's defaults, and a topic's own."""

from barnabas_broker.log.config import LogConfig
from barnabas_kafka.records.batch import TimestampType
from barnabas_kafka.settings.broker import BrokerSettings
from barnabas_kafka.settings.topic import TopicSettings


def test_defaults_are_kafkas() -> None:
    """A topic without overrides on a broker without settings."""
    settings = TopicSettings.resolve(BrokerSettings.from_mapping({}), {})
    assert LogConfig.from_settings(settings) == LogConfig()


def test_overrides_reach_the_log() -> None:
    """Each setting the log acts on."""
    overrides = {
        "segment.bytes": "1048576",
        "segment.ms": "1000",
        "segment.jitter.ms": "10",
        "segment.index.bytes": "4096",
        "index.interval.bytes": "512",
        "retention.ms": "-1",
        "retention.bytes": "12345",
        "file.delete.delay.ms": "5",
        "flush.messages": "6",
        "flush.ms": "7",
        "max.message.bytes": "8000",
        "cleanup.policy": "compact",
        "preallocate": "true",
        "message.timestamp.type": "LogAppendTime",
    }
    settings = TopicSettings.resolve(BrokerSettings.from_mapping({}), overrides)
    assert LogConfig.from_settings(
        settings, producer_id_expiration_ms=9, producer_ids_max=10
    ) == LogConfig(
        segment_bytes=1048576,
        segment_ms=1000,
        segment_jitter_ms=10,
        segment_index_bytes=4096,
        index_interval_bytes=512,
        retention_ms=-1,
        retention_bytes=12345,
        file_delete_delay_ms=5,
        flush_messages=6,
        flush_ms=7,
        max_message_bytes=8000,
        compact=True,
        delete=False,
        preallocate=True,
        timestamp_type=TimestampType.APPEND,
        producer_id_expiration_ms=9,
        producer_ids_max=10,
    )


def test_jitter_spreads_segments() -> None:
    """Below the limit, the same for the same segment, and not the same for all."""
    config = LogConfig(segment_ms=1000, segment_jitter_ms=100)
    jitters = [config.roll_jitter_ms(f"t-{number}", 0) for number in range(50)]
    assert all(0 <= jitter < 100 for jitter in jitters)
    assert len(set(jitters)) > 10
    assert jitters[3] == config.roll_jitter_ms("t-3", 0)
    assert LogConfig().roll_jitter_ms("t-3", 0) == 0
