"""The claim to be the controller: `/controller` and `/controller_epoch`, and writes fenced by them.

Kafka's `KafkaZkClient.registerControllerAndIncrementControllerEpoch`: one transaction makes the
ephemeral znode and sets the next epoch, so no controller has an old one. Every later write of a
controller checks the version of the epoch's znode; a controller that was succeeded by another is
fenced.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from barnabas_broker.zk.store import (
    Check,
    CoordinationError,
    CoordinationStore,
    Create,
    Operation,
    SetData,
    in_transactions,
)
from barnabas_broker.zk.znodes import BrokerZnode, ControllerEpochZnode, ControllerZnode
from barnabas_zookeeper.errors import BadVersionError, NodeExistsError, NoNodeError

ELECTION_TRIES_MAX = 10
"""Each lost race means that another broker came or went; this many mean a broken store."""


@dataclass(frozen=True, slots=True)
class ControllerClaim:
    """An election won: its epoch, and the version of the znode that says so."""

    epoch: int
    epoch_version: int

    @property
    def fence(self) -> Check:
        """Refuses a transaction once there is a later controller."""
        return Check(ControllerEpochZnode.PATH, self.epoch_version)


def contest(store: CoordinationStore, *, broker_id: int, now_ms: int) -> ControllerClaim | None:
    """Become the controller, or find that this session is; None where another one is.

    Raises CoordinationError where the outcome is unknown.
    """
    for _ in range(ELECTION_TRIES_MAX):
        holder = _holder(store)
        if holder is not None:
            if holder != store.session:
                return None
            data, stat = store.get(ControllerEpochZnode.PATH)
            return ControllerClaim(ControllerEpochZnode.decode(data), stat.version)
        claim, operation = _next_epoch(store)
        data = ControllerZnode.encode(broker_id, now_ms=now_ms)
        znode = Create(ControllerZnode.PATH, data, ephemeral_owner=store.session)
        try:
            store.commit([znode, operation], now_ms=now_ms)
        except (BadVersionError, NodeExistsError):
            continue
        return claim
    raise CoordinationError(f"lost {ELECTION_TRIES_MAX} elections for {ControllerZnode.PATH}")


def _holder(store: CoordinationStore) -> int | None:
    """The session that holds `/controller`."""
    stat = store.exists(ControllerZnode.PATH)
    return None if stat is None else stat.ephemeral_owner


def _next_epoch(store: CoordinationStore) -> tuple[ControllerClaim, Operation]:
    try:
        data, stat = store.get(ControllerEpochZnode.PATH)
    except NoNodeError:
        return ControllerClaim(1, 0), Create(
            ControllerEpochZnode.PATH, ControllerEpochZnode.encode(1)
        )
    epoch = ControllerEpochZnode.decode(data) + 1
    write = SetData(ControllerEpochZnode.PATH, ControllerEpochZnode.encode(epoch), stat.version)
    return ControllerClaim(epoch, stat.version + 1), write


def wait_for_own_ghost(store: CoordinationStore, broker_id: int) -> None:
    """Wait until the registration of this broker's last session is gone.

    Raises CoordinationError where another broker with this id goes on living.
    """
    path = BrokerZnode(broker_id).path
    if not store.wait_until_gone(path):
        raise CoordinationError(
            f"broker id {broker_id} is in use: {path} belongs to another session that is alive"
        )


def commit_fenced(
    store: CoordinationStore,
    claim: ControllerClaim,
    operations: Sequence[Operation],
    *,
    now_ms: int,
) -> None:
    """Commit as the controller, in as many transactions as the store needs.

    Raises as `store.commit`; BadVersionError for the epoch's znode means that the claim is lost.
    """
    for batch in in_transactions(operations, store.transaction_bytes_max):
        store.commit([claim.fence, *batch], now_ms=now_ms)
