"""The settings that a transaction coordinator goes by, read again whenever they change."""

from dataclasses import dataclass

from barnabas_kafka.settings import broker as keys
from barnabas_kafka.settings.broker import BrokerSettings


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """Times in milliseconds. `protocol` is the newest transaction protocol in force: 0 or 2."""

    timeout_max_ms: int
    expiration_ms: int
    protocol: int = 0

    @classmethod
    def from_settings(cls, settings: BrokerSettings, *, protocol: int = 0) -> "Limits":
        """What the broker's settings say."""
        return cls(
            timeout_max_ms=settings[keys.TRANSACTION_MAX_TIMEOUT_MS],
            expiration_ms=settings[keys.TRANSACTIONAL_ID_EXPIRATION_MS],
            protocol=protocol,
        )
