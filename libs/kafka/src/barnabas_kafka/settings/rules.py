"""Rules of single settings that are more than a range or a choice of words."""

from __future__ import annotations

import re
from typing import Final

from .definitions import Rule

# Kafka's metadata versions up to 3.9 (`MetadataVersion`): each release, then the number of its
# internal versions. `inter.broker.protocol.version` takes both "2.4" and "2.4-IV1".
_RELEASES: Final = {
    "0.8.0": 0, "0.8.1": 0, "0.8.2": 0, "0.9.0": 0, "0.10.0": 2, "0.10.1": 3, "0.10.2": 1,
    "0.11.0": 3, "1.0": 1, "1.1": 1, "2.0": 2, "2.1": 3, "2.2": 2, "2.3": 2, "2.4": 2, "2.5": 1,
    "2.6": 1, "2.7": 3, "2.8": 2, "3.0": 2, "3.1": 1, "3.2": 1, "3.3": 4, "3.4": 1, "3.5": 3,
    "3.6": 3, "3.7": 5, "3.8": 1, "3.9": 1,
}  # fmt: skip
_PAIR = re.compile(r"[0-9]+:[0-9]+")


def _is_version(text: str) -> bool:
    """Whether Kafka would know the version; a patch number after a release is ignored, as there."""
    segments = 3 if text.startswith("0.") else 2
    release, _, internal = ".".join(text.split(".")[:segments]).partition("-IV")
    if release not in _RELEASES:
        return False
    return not internal or (internal.isdecimal() and int(internal) < _RELEASES[release])


def _are_throttled_replicas(items: tuple[str, ...]) -> bool:
    """`*`, or partition:broker pairs (`ThrottledReplicaListValidator`)."""
    return items == ("*",) or all(_PAIR.fullmatch(item) for item in items)


KNOWN_VERSION: Final = Rule("a Kafka version from 0.8.0 to 3.9", _is_version)
THROTTLED_REPLICAS: Final = Rule(
    "* or a list of partition:broker pairs such as 0:101,1:102", _are_throttled_replicas
)
GZIP_LEVEL: Final[Rule[int]] = Rule(
    "-1 or between 1 and 9", lambda level: level == -1 or 1 <= level <= 9
)
POOL_SIZE: Final[Rule[int]] = Rule("-1 or at least 1", lambda size: size == -1 or size >= 1)
