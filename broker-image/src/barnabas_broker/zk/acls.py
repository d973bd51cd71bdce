"""ACLs of znodes where `zookeeper.set.acl` is true (`kafka.zk.ZkData.defaultAcls`).

The creator of a znode may do everything with it. The world may read it, except where passwords,
secrets of listeners and delegation tokens are kept. `/consumers` stays open, because consumers
of long ago write below it themselves.
"""

from __future__ import annotations

from enum import Enum
from typing import Final

OPEN_PATH: Final = "/consumers"
SENSITIVE_PREFIXES: Final = ("/config/users", "/config/brokers", "/delegation_token/tokens")


class Protection(Enum):
    """What others than the creator may do with a znode."""

    NONE = "none"
    """Everything."""
    READABLE = "readable"
    """Read it."""
    PRIVATE = "private"
    """Nothing; they do see that it is there."""


def protection(path: str) -> Protection:
    """How a znode that a broker makes is protected; `path` is the one below the chroot.

    Sensitive is, as in Kafka, whatever begins with one of the prefixes, siblings of a longer name
    included.
    """
    if path == OPEN_PATH:
        return Protection.NONE
    return Protection.PRIVATE if path.startswith(SENSITIVE_PREFIXES) else Protection.READABLE
