"""The settings that a group coordinator goes by, read once and again whenever they change."""

from dataclasses import dataclass

from barnabas_kafka.settings import broker as keys
from barnabas_kafka.settings.broker import BrokerSettings

NEW_MEMBER_TIMEOUT_MS = 300_000
"""A first join is parked no longer: its client may have gone, and cannot send heartbeats yet.

Kafka's NewMemberJoinTimeoutMs, which no setting changes.
"""

MINUTE_MS = 60_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """Times in milliseconds, sizes in bytes and members."""

    session_min_ms: int
    session_max_ms: int
    initial_delay_ms: int
    members_max: int
    metadata_bytes_max: int
    retention_ms: int

    @classmethod
    def from_settings(cls, settings: BrokerSettings) -> "Limits":
        """What the broker's settings say."""
        return cls(
            session_min_ms=settings[keys.GROUP_MIN_SESSION_TIMEOUT_MS],
            session_max_ms=settings[keys.GROUP_MAX_SESSION_TIMEOUT_MS],
            initial_delay_ms=settings[keys.GROUP_INITIAL_REBALANCE_DELAY_MS],
            members_max=settings[keys.GROUP_MAX_SIZE],
            metadata_bytes_max=settings[keys.OFFSET_METADATA_MAX_BYTES],
            retention_ms=settings[keys.OFFSETS_RETENTION_MINUTES] * MINUTE_MS,
        )
