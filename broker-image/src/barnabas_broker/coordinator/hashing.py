"""Which partition of an internal topic a group belongs to."""

from functools import lru_cache
from typing import Final

REMEMBERED: Final = 4096
REMEMBERED_LENGTH: Final = 100
"""Hashes to keep: clients choose the names, so the cache is bounded."""


def java_hash(text: str) -> int:
    """`String.hashCode`: over UTF-16 code units, in signed 32-bit arithmetic."""
    return _remembered(text) if len(text) <= REMEMBERED_LENGTH else _computed(text)


def _computed(text: str) -> int:
    units = text.encode("utf-16-be", "surrogatepass")
    value = 0
    for position in range(0, len(units), 2):
        value = (value * 31 + (units[position] << 8 | units[position + 1])) & 0xFFFF_FFFF
    return value - (1 << 32) if value >= 1 << 31 else value


# Every request of a group asks for the hash of the same name.
_remembered = lru_cache(REMEMBERED)(_computed)


def partition_of(key: str, partition_count: int) -> int:
    """The partition whose leader coordinates `key` (Kafka's `partitionFor`).

    The absolute value is Kafka's `Utils.abs`, to which the smallest integer is 0; it is not the
    masked one with which producers place keyed records.
    """
    value = java_hash(key)
    return 0 if value == -(1 << 31) else abs(value) % partition_count
