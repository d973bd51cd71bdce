"""What brokers do to znodes, as values: decided in one place, carried out in another.

Cores import this module, and not `zk.store`, which performs the operations.
"""

from collections.abc import Iterator, Sequence

from barnabas_zookeeper.tree import Check, Create, Delete, SetData

Operation = Create | SetData | Delete | Check
"""What brokers do to znodes; sessions and access are the ensemble's business."""

__all__ = [
    "Check",
    "Create",
    "Delete",
    "Operation",
    "SetData",
    "in_transactions",
    "operation_bytes",
]

OPERATION_BYTES = 128
"""What an operation takes beside its path and data: header, ACL, flags, and the chroot."""


def operation_bytes(operation: Operation) -> int:
    """How large an operation is, by the measure of `in_transactions`."""
    data = operation.data if isinstance(operation, Create | SetData) else None
    return OPERATION_BYTES + len(operation.path) + len(data or b"")


def in_transactions(operations: Sequence[Operation], limit: int) -> Iterator[list[Operation]]:
    """Cut operations, in their order, into transactions of at most `limit` bytes each.

    An operation that is larger than that gets a transaction of its own.
    """
    batch: list[Operation] = []
    size = 0
    for operation in operations:
        cost = operation_bytes(operation)
        if batch and size + cost > limit:
            yield batch
            batch, size = [], 0
        batch.append(operation)
        size += cost
    if batch:
        yield batch
