"""SCRAM as resources name it, of listeners and of users."""

from __future__ import annotations

from enum import StrEnum


class ScramType(StrEnum):
    """A type of authentication; the names are those that other operators have for it."""

    SHA_512 = "scram-sha-512"
    SHA_256 = "scram-sha-256"

    @property
    def mechanism(self) -> str:
        """The SASL mechanism."""
        return self.value.upper()
