"""The port to coordination data: what the controller needs of ZooKeeper, whoever keeps it.

Two stand behind it: the embedded store, a znode tree in this process, and (with a real ensemble)
a ZooKeeper session. Calls block until the change is durable; a shell for which that is too long
makes them in a thread. Refusals are the typed errors of `barnabas_zookeeper.errors`, which say
what happened; `CoordinationError` means that nobody can tell.
"""

from collections.abc import Sequence
from typing import Protocol

from barnabas_zookeeper.tree import (
    Check,
    Committed,
    Create,
    Delete,
    Operation,
    SetData,
    Stat,
)

__all__ = [
    "Check",
    "Committed",
    "CoordinationError",
    "CoordinationStore",
    "Create",
    "Delete",
    "Operation",
    "SetData",
    "Stat",
]


class CoordinationError(Exception):
    """The store is unusable: its message is one line that says what is wrong and where."""


class CoordinationStore(Protocol):
    """Znodes that survive the process.

    `session` is the owner that ephemeral znodes of this broker are created with.
    """

    session: int

    def get(self, path: str) -> tuple[bytes | None, Stat]:
        """Data and stat of a znode. Raises NoNodeError."""
        ...

    def exists(self, path: str) -> Stat | None:
        """The stat of a znode, None if there is none."""
        ...

    def children(self, path: str) -> list[str]:
        """Names of the children, sorted. Raises NoNodeError."""
        ...

    def commit(self, operations: Sequence[Operation], *, now_ms: int) -> Committed:
        """Apply all operations or none; on return they are durable.

        Raises the ZooKeeperError of the operation that was refused (nothing has changed), or
        CoordinationError where the outcome is unknown.
        """
        ...

    def close(self) -> None:
        """End the session: its ephemeral znodes go with it."""
        ...
