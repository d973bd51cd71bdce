"""Types of authentication as resources name them, of listeners and of users."""

from __future__ import annotations

from enum import StrEnum


class AuthenticationType(StrEnum):
    """A type of authentication; the names are those that other operators have for it."""

    SHA_512 = "scram-sha-512"
    SHA_256 = "scram-sha-256"
    TLS = "tls"

    @property
    def mechanism(self) -> str:
        """The SASL mechanism; empty for client certificates."""
        return "" if self is AuthenticationType.TLS else self.value.upper()
