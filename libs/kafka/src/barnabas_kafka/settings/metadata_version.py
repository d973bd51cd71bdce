"""Kafka's metadata versions up to 3.9, as `inter.broker.protocol.version` names them.

Each release has internal versions: `2.7-IV0`, `2.7-IV1` and `2.7-IV2`; `2.7` alone, or `2.7.1`, is
the last one (`MetadataVersion.fromVersionString`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

# Each release, then the number of its internal versions; 0 for those from before there were any.
_RELEASES: Final = {
    "0.8.0": 0, "0.8.1": 0, "0.8.2": 0, "0.9.0": 0, "0.10.0": 2, "0.10.1": 3, "0.10.2": 1,
    "0.11.0": 3, "1.0": 1, "1.1": 1, "2.0": 2, "2.1": 3, "2.2": 2, "2.3": 2, "2.4": 2, "2.5": 1,
    "2.6": 1, "2.7": 3, "2.8": 2, "3.0": 2, "3.1": 1, "3.2": 1, "3.3": 4, "3.4": 1, "3.5": 3,
    "3.6": 3, "3.7": 5, "3.8": 1, "3.9": 1,
}  # fmt: skip
_ORDER: Final = {release: place for place, release in enumerate(_RELEASES)}


@dataclass(frozen=True, order=True, slots=True)
class MetadataVersion:
    """A version, ordered by age: the place of its release, and its number within that."""

    release: int
    internal: int

    @classmethod
    def parse(cls, text: str) -> MetadataVersion:
        """Such as `2.8`, `2.8.2` or `2.8-IV1`; raises ValueError for what Kafka would not know."""
        segments = 3 if text.startswith("0.") else 2
        release, _, internal = ".".join(text.split(".")[:segments]).partition("-IV")
        count = _RELEASES.get(release)
        if count is None:
            raise ValueError(f"{text} is no version of Kafka up to 3.9")
        if not internal:
            return cls(_ORDER[release], max(count - 1, 0))
        if not internal.isdecimal() or int(internal) >= count:
            raise ValueError(f"{text} is no internal version of Kafka {release}")
        return cls(_ORDER[release], int(internal))
