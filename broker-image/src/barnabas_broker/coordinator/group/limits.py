"""The settings that a group coordinator goes by, read once and again whenever they change."""

from dataclasses import dataclass, field

from barnabas_broker.coordinator.group.consumer.assignors import ASSIGNORS, CLASS_NAMES
from barnabas_broker.coordinator.memory import MEMORY_BYTES_MAX, default_limit
from barnabas_kafka.settings import broker as keys
from barnabas_kafka.settings.broker import BrokerSettings
from barnabas_kafka.settings.definitions import Key

NEW_MEMBER_TIMEOUT_MS = 300_000
"""A first join is parked no longer: its client may have gone, and cannot send heartbeats yet.

Kafka's NewMemberJoinTimeoutMs, which no setting changes.
"""

MINUTE_MS = 60_000

MEMBERS_MAX = 10_000
"""Members of a group where neither `group.max.size` nor, for its kind, `group.consumer.max.size` is
given. Apache's default is no limit, so that one client could fill the memory with members; no group
in use has so many, as each rebalance writes all members."""

MEMBERS_BYTES_MAX = 16 * 1024 * 1024
"""Bytes of metadata that the members of a group may have, or four of the largest batches where
that is more. All of it is in memory; of each member's protocols one is written, as a part of the
record of the group, which has to fit into one batch."""

BATCHES_OF_METADATA = 4
"""The metadata of all members of a group, and of one, may take this many of the largest batches."""

JOIN_BYTES_MAX = 4 * 1024 * 1024
"""How large a JoinGroup request may be, or four of the largest batches where that is more. The
metadata of a member is a part of the record of its group: what is larger could never be written."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsumerLimits:
    """What holds for groups of the consumer protocol; times in milliseconds."""

    session_ms: int = 45_000
    heartbeat_ms: int = 5000
    members_max: int = MEMBERS_MAX
    assignors: tuple[str, ...] = tuple(ASSIGNORS)
    upgrades: bool = True
    """Whether groups of the classic protocol with members may become such."""
    downgrades: bool = True
    """Whether they become classic again when only classic members are left."""

    @classmethod
    def from_settings(cls, settings: BrokerSettings) -> "ConsumerLimits":
        """What the broker's settings say; of the assignors, those that there are."""
        named = (CLASS_NAMES.get(name, name) for name in settings[keys.GROUP_CONSUMER_ASSIGNORS])
        policy = _migration_policy(settings)
        return cls(
            session_ms=settings[keys.GROUP_CONSUMER_SESSION_TIMEOUT_MS],
            heartbeat_ms=settings[keys.GROUP_CONSUMER_HEARTBEAT_INTERVAL_MS],
            members_max=_members_max(settings, keys.GROUP_CONSUMER_MAX_SIZE),
            assignors=tuple(name for name in named if name in ASSIGNORS) or tuple(ASSIGNORS),
            upgrades=policy in ("upgrade", "bidirectional"),
            downgrades=policy in ("downgrade", "bidirectional"),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """Times in milliseconds, sizes in bytes and members."""

    session_min_ms: int
    session_max_ms: int
    initial_delay_ms: int
    members_max: int
    metadata_bytes_max: int
    members_bytes_max: int = MEMBERS_BYTES_MAX
    join_bytes_max: int = JOIN_BYTES_MAX
    memory_bytes_max: int = MEMORY_BYTES_MAX
    """For all groups of the broker together (`coordinator.memory`)."""
    retention_ms: int
    consumers: ConsumerLimits = field(default_factory=ConsumerLimits)

    @classmethod
    def from_settings(cls, settings: BrokerSettings, *, memory_bytes: int = 4 << 30) -> "Limits":
        """What the broker's settings say; `memory_bytes` is how much memory it may use."""
        given = settings[keys.BARNABAS_GROUPS_MEMORY_MAX_BYTES]
        return cls(
            session_min_ms=settings[keys.GROUP_MIN_SESSION_TIMEOUT_MS],
            session_max_ms=settings[keys.GROUP_MAX_SESSION_TIMEOUT_MS],
            initial_delay_ms=settings[keys.GROUP_INITIAL_REBALANCE_DELAY_MS],
            members_max=_members_max(settings, keys.GROUP_MAX_SIZE),
            metadata_bytes_max=settings[keys.OFFSET_METADATA_MAX_BYTES],
            memory_bytes_max=given or default_limit(memory_bytes),
            members_bytes_max=max(
                MEMBERS_BYTES_MAX, BATCHES_OF_METADATA * settings[keys.MESSAGE_MAX_BYTES]
            ),
            join_bytes_max=max(
                JOIN_BYTES_MAX, BATCHES_OF_METADATA * settings[keys.MESSAGE_MAX_BYTES]
            ),
            retention_ms=settings[keys.OFFSETS_RETENTION_MINUTES] * MINUTE_MS,
            consumers=ConsumerLimits.from_settings(settings),
        )


def _migration_policy(settings: BrokerSettings) -> str:
    key = keys.GROUP_CONSUMER_MIGRATION_POLICY
    return settings[key].lower() if settings.given(key.name) else "bidirectional"


def _members_max(settings: BrokerSettings, key: Key[int]) -> int:
    return settings[key] if settings.given(key.name) else MEMBERS_MAX
