"""Rules of single settings that are more than a range or a choice of words."""

from __future__ import annotations

import re
from typing import Final

from .definitions import Rule
from .metadata_version import MetadataVersion

_PAIR = re.compile(r"[0-9]+:[0-9]+")


def _is_version(text: str) -> bool:
    """Whether Kafka would know the version."""
    try:
        MetadataVersion.parse(text)
    except ValueError:
        return False
    return True


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
