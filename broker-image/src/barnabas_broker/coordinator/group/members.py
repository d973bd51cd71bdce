"""A member of a group: its metadata and its pending response."""

from collections.abc import Set
from dataclasses import dataclass, field

from barnabas_broker.coordinator.group.memory import MEMBER_BYTES, PROTOCOL_BYTES
from barnabas_broker.coordinator.group.results import Waiter

Protocols = tuple[tuple[str, bytes], ...]
"""Assignment protocols with the member's metadata for each, the preferred one first."""


@dataclass(frozen=True, slots=True)
class Client:
    """The connection that a request came over."""

    client_id: str
    host: str
    """As Kafka shows it: a slash and the address."""


def metadata_size(client: Client, instance_id: str | None, protocols: Protocols) -> int:
    """Bytes of metadata that a client sends when it joins, without the always small parts."""
    size = len(client.client_id) + len(instance_id or "")
    for name, metadata in protocols:
        size += len(name) + len(metadata)
    return size


def member_bytes(
    member_id: str, client: Client, instance_id: str | None, protocols: Protocols
) -> int:
    """How much memory a member takes, but for its assignment; its id is in several tables."""
    size = metadata_size(client, instance_id, protocols)
    return MEMBER_BYTES + len(member_id) + PROTOCOL_BYTES * len(protocols) + size


@dataclass(slots=True, kw_only=True)
class Member:
    """One member. Times are in milliseconds.

    `joining` and `syncing` are the parked requests of this member. `is_new` is true from a
    member's first join until that is answered: it cannot send heartbeats yet.
    `counted` is what the account of its group has of its bytes, `metadata_counted` what its group
    has counted of its metadata.
    """

    id: str
    instance_id: str | None
    client: Client
    rebalance_timeout_ms: int
    session_timeout_ms: int
    protocols: Protocols
    assignment: bytes = b""
    is_new: bool = False
    joining: Waiter | None = field(default=None)
    syncing: Waiter | None = field(default=None)
    counted: int = 0
    metadata_counted: int = 0

    @property
    def is_static(self) -> bool:
        """Whether it keeps its place over restarts (KIP-345)."""
        return self.instance_id is not None

    @property
    def metadata_bytes(self) -> int:
        """Bytes of its metadata."""
        return metadata_size(self.client, self.instance_id, self.protocols)

    @property
    def memory_bytes(self) -> int:
        """How much memory it takes."""
        size = member_bytes(self.id, self.client, self.instance_id, self.protocols)
        return size + len(self.assignment)

    @property
    def waits(self) -> bool:
        """Whether we owe it an answer, so that its silence says nothing."""
        return not self.is_new and (self.joining is not None or self.syncing is not None)

    def metadata(self, protocol: str | None) -> bytes:
        """Its metadata for a protocol; empty where it does not know it."""
        for name, data in self.protocols:
            if name == protocol:
                return data
        return b""

    def vote(self, candidates: Set[str]) -> str | None:
        """The candidate it likes best."""
        return next((name for name, _ in self.protocols if name in candidates), None)
