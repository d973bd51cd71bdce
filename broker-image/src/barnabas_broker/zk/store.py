"""The port to coordination data: what the controller needs of ZooKeeper, in either mode.

It has two implementations: the embedded store, a znode tree in this process, and (with a real
ensemble) a ZooKeeper session. Calls block until the change is durable; a shell for which that is
too long makes them in a thread. Refusals are the typed errors of `barnabas_zookeeper.errors`, which
say what happened; `CoordinationError` means that the outcome is unknown.
"""

from collections.abc import Callable, Sequence
from enum import Enum
from typing import Protocol

from barnabas_broker.zk.operations import (
    Check,
    Create,
    Delete,
    Operation,
    SetData,
    in_transactions,
    operation_bytes,
)
from barnabas_zookeeper.tree import Committed, Stat

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
    "Subscriber",
    "Watch",
    "in_transactions",
    "operation_bytes",
]

Subscriber = Callable[[str | None], None]
"""Called with the path of a watched znode that has changed; None where any may have changed."""


class Watch(Enum):
    """What of a znode is watched."""

    DATA = "data"  # its coming into being and going, too
    CHILDREN = "children"


class CoordinationError(Exception):
    """The store is unusable: its message is one line that says what is wrong and where."""


class CoordinationStore(Protocol):
    """Znodes that survive the process."""

    @property
    def session(self) -> int:
        """The owner that ephemeral znodes of this broker are created with.

        Raises CoordinationError while there is no session.
        """
        ...

    @property
    def transaction_bytes_max(self) -> int:
        """How large one transaction may be, by the measure of `in_transactions`."""
        ...

    def get(self, path: str) -> tuple[bytes | None, Stat]:
        """Data and stat of a znode. Raises NoNodeError."""
        ...

    def get_many(self, paths: Sequence[str]) -> list[tuple[bytes | None, Stat] | None]:
        """Data and stat of each znode, None for those that do not exist."""
        ...

    def exists(self, path: str) -> Stat | None:
        """The stat of a znode, None if there is none."""
        ...

    def children(self, path: str) -> list[str]:
        """Names of the children, sorted. Raises NoNodeError."""
        ...

    def children_many(self, paths: Sequence[str]) -> list[list[str] | None]:
        """Names of the children of each znode, sorted; None for those that do not exist."""
        ...

    def commit(self, operations: Sequence[Operation], *, now_ms: int) -> Committed:
        """Apply all operations or none; on return they are durable.

        Raises the ZooKeeperError of the operation that was refused (nothing has changed), or
        CoordinationError where the outcome is unknown.
        """
        ...

    def subscribe(self, subscriber: Subscriber) -> None:
        """Have `subscriber` called for changes by others; in any thread, and it must not block."""
        ...

    def watch(self, path: str, kind: Watch) -> None:
        """Have the subscriber called once, for the next change of a znode, or of its children."""
        ...

    def watch_many(self, paths: Sequence[str], kind: Watch) -> None:
        """`watch` each of these znodes."""
        ...

    def wait_until_gone(self, path: str) -> bool:
        """Wait, for as long as a session that ended silently may last; False if it is there yet."""
        ...

    def close(self) -> None:
        """End the session: its ephemeral znodes go with it."""
        ...


class Heir(Protocol):
    """Closes a session when this process cannot any more. No call may block or raise."""

    def secure(self, material: bytes) -> None:
        """Connect by TLS only, with this `zk.credentials.TlsMaterial`; call before `hand_over`.

        Again where certificates were renewed; the session to end stays the same. Where it cannot be
        handed over, the supervisor has no session to close.
        """

    def hand_over(self, session: int, password: bytes, timeout_ms: int, hosts: str) -> None:
        """This is the session to end from now on; `hosts` is `host:port,...`."""

    def forget(self) -> None:
        """There is none to end any more."""
