"""Commits the writes of many partitions so that a refused one does not hold back the others.

ZooKeeper applies a multi as a whole or not at all, and a controller that puts all partitions of an
election into one is stopped by a single deleted znode. Apache's controller sends
its writes one by one in a pipeline instead (`KafkaZkClient.updateLeaderAndIsr`), and retries those
that were refused.
"""

from collections.abc import Hashable, Iterator, Mapping, Sequence
from itertools import islice
from typing import TypeVar

from barnabas_broker.controller.controller_claim import ControllerClaim, commit_fenced
from barnabas_broker.zk.store import (
    CoordinationStore,
    Delete,
    Operation,
    SetData,
    operation_bytes,
)
from barnabas_broker.zk.znodes import ControllerEpochZnode
from barnabas_zookeeper.errors import BadVersionError, NoNodeError, ZooKeeperError

Key = TypeVar("Key", bound=Hashable)


def commit_each(
    store: CoordinationStore,
    claim: ControllerClaim | None,
    groups: Mapping[Key, Sequence[Operation]],
    *,
    now_ms: int,
) -> dict[Key, ZooKeeperError]:
    """Commit each group of operations, as the controller where there is an `controller_claim`.

    Returns the groups that were refused, and why. A group too large for one transaction is cut
    into several. Raises CoordinationError where the outcome is unknown, and BadVersionError for the
    epoch's znode where another controller has followed.
    """
    refused: dict[Key, ZooKeeperError] = {}
    for batch in _batches(groups, store.transaction_bytes_max):
        refused |= _commit(store, claim, batch, now_ms)
    return refused


def _batches(
    groups: Mapping[Key, Sequence[Operation]], limit: int
) -> Iterator[dict[Key, Sequence[Operation]]]:
    batch: dict[Key, Sequence[Operation]] = {}
    size = 0
    for key, operations in groups.items():
        cost = sum(map(operation_bytes, operations))
        if batch and size + cost > limit:
            yield batch
            batch, size = {}, 0
        batch[key] = operations
        size += cost
    if batch:
        yield batch


def _commit(
    store: CoordinationStore,
    claim: ControllerClaim | None,
    batch: dict[Key, Sequence[Operation]],
    now_ms: int,
) -> dict[Key, ZooKeeperError]:
    operations = [each for group in batch.values() for each in group]
    try:
        if claim is None:
            store.commit(operations, now_ms=now_ms)
        else:
            commit_fenced(store, claim, operations, now_ms=now_ms)
    except ZooKeeperError as error:
        if error.path == ControllerEpochZnode.PATH:
            raise
        if len(batch) == 1:
            return dict.fromkeys(batch, error)
    else:
        return {}
    refused = _outdated(store, batch)
    left = {key: group for key, group in batch.items() if key not in refused}
    halves = [left] if refused else _halves(left)
    for half in halves:
        if half:
            refused |= _commit(store, claim, half, now_ms)
    return refused


def _outdated(
    store: CoordinationStore, batch: Mapping[Key, Sequence[Operation]]
) -> dict[Key, ZooKeeperError]:
    """The groups that go by a znode which is gone or has changed: found in one round of reads."""
    wanted = [
        (key, each)
        for key, group in batch.items()
        for each in group
        if isinstance(each, SetData | Delete)
    ]
    found = store.get_many([each.path for _, each in wanted])
    refused: dict[Key, ZooKeeperError] = {}
    for (key, operation), got in zip(wanted, found, strict=True):
        if got is None:
            refused[key] = NoNodeError(operation.path)
        elif operation.version not in (-1, got[1].version):
            refused[key] = BadVersionError(operation.path)
    return refused


def _halves(batch: dict[Key, Sequence[Operation]]) -> list[dict[Key, Sequence[Operation]]]:
    """For errors of the whole transaction only, such as a missing right."""
    half = len(batch) // 2
    entries = iter(batch.items())
    return [dict(islice(entries, half)), dict(entries)]
