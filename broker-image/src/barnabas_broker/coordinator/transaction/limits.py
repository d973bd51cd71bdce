"""The settings that a transaction coordinator goes by, read again whenever they change."""

from dataclasses import dataclass

from barnabas_broker.coordinator.memory import MEMORY_BYTES_MAX, default_limit
from barnabas_kafka.settings import broker as keys
from barnabas_kafka.settings.broker import BrokerSettings


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """Times in milliseconds. `protocol` is the newest transaction protocol in force: 0 or 2."""

    timeout_max_ms: int
    expiration_ms: int
    protocol: int = 0
    memory_bytes_max: int = MEMORY_BYTES_MAX
    """For all transactional ids of the broker together (`coordinator.memory`)."""

    @classmethod
    def from_settings(
        cls, settings: BrokerSettings, *, protocol: int = 0, memory_bytes: int = 4 << 30
    ) -> "Limits":
        """What the broker's settings say; `memory_bytes` is how much memory it may use."""
        given = settings[keys.BARNABAS_TRANSACTIONS_MEMORY_MAX_BYTES]
        return cls(
            memory_bytes_max=given or default_limit(memory_bytes),
            timeout_max_ms=settings[keys.TRANSACTION_MAX_TIMEOUT_MS],
            expiration_ms=settings[keys.TRANSACTIONAL_ID_EXPIRATION_MS],
            protocol=protocol,
        )
