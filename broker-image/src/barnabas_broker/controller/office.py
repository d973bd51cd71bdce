"""The controller's office: `/controller` and `/controller_epoch`, and writes fenced by them.

Kafka's `KafkaZkClient.registerControllerAndIncrementControllerEpoch`: one transaction makes the
ephemeral znode and sets the next epoch, so nobody holds the office under an old one. Every later
write of a controller checks the version of the epoch's znode; who has been followed by another
writes nothing any more.
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
"""Each lost race means that somebody else came or went meanwhile; this many mean a broken store."""


class OccupiedError(CoordinationError):
    """Another broker lives in this cluster; the message names it."""

    def __init__(self, where: str, broker_id: int) -> None:
        super().__init__(
            f"more than one broker per cluster is not supported yet: broker {broker_id} "
            f"holds {where}"
        )


@dataclass(frozen=True, slots=True)
class Office:
    """An election won: its epoch, and the version of the znode that says so."""

    epoch: int
    epoch_version: int

    @property
    def fence(self) -> Check:
        """Refuses a transaction once there is a later controller."""
        return Check(ControllerEpochZnode.PATH, self.epoch_version)


def take_office(store: CoordinationStore, *, broker_id: int, now_ms: int) -> Office:
    """Become the controller, or find that this session is.

    A znode left by this broker's last session is waited for. Raises OccupiedError where another
    broker is the controller, CoordinationError where another one of this id goes on living.
    """
    for _ in range(ELECTION_TRIES_MAX):
        holder = _holder(store)
        if holder is not None and holder[1] == store.session:
            data, stat = store.get(ControllerEpochZnode.PATH)
            return Office(ControllerEpochZnode.decode(data), stat.version)
        if holder is not None:
            _wait_for(store, ControllerZnode.PATH, holder[0], broker_id)
            continue
        office, operation = _next_epoch(store)
        data = ControllerZnode.encode(broker_id, now_ms=now_ms)
        claim = Create(ControllerZnode.PATH, data, ephemeral_owner=store.session)
        try:
            store.commit([claim, operation], now_ms=now_ms)
        except (BadVersionError, NodeExistsError):
            continue
        return office
    raise CoordinationError(f"lost {ELECTION_TRIES_MAX} elections for {ControllerZnode.PATH}")


def _holder(store: CoordinationStore) -> tuple[int, int] | None:
    """Which broker is the controller, and in which session."""
    try:
        data, stat = store.get(ControllerZnode.PATH)
    except NoNodeError:
        return None
    return ControllerZnode.decode(data), stat.ephemeral_owner


def _next_epoch(store: CoordinationStore) -> tuple[Office, Operation]:
    try:
        data, stat = store.get(ControllerEpochZnode.PATH)
    except NoNodeError:
        return Office(1, 0), Create(ControllerEpochZnode.PATH, ControllerEpochZnode.encode(1))
    epoch = ControllerEpochZnode.decode(data) + 1
    write = SetData(ControllerEpochZnode.PATH, ControllerEpochZnode.encode(epoch), stat.version)
    return Office(epoch, stat.version + 1), write


def refuse_company(store: CoordinationStore, broker_id: int) -> None:
    """Raise OccupiedError where another broker is registered."""
    for name in store.children(BrokerZnode.ROOT):
        if name != str(broker_id):
            raise OccupiedError(f"{BrokerZnode.ROOT}/{name}", int(name))


def wait_for_own_ghost(store: CoordinationStore, broker_id: int) -> None:
    """Wait until the registration of this broker's last session is gone.

    Raises CoordinationError where another broker with this id goes on living.
    """
    _wait_for(store, BrokerZnode(broker_id).path, broker_id, broker_id)


def _wait_for(store: CoordinationStore, path: str, holder: int, broker_id: int) -> None:
    if holder != broker_id:
        raise OccupiedError(path, holder)
    if not store.wait_until_gone(path):
        raise CoordinationError(
            f"broker id {broker_id} is in use: {path} belongs to another session that is alive"
        )


def commit_fenced(
    store: CoordinationStore, office: Office, operations: Sequence[Operation], *, now_ms: int
) -> None:
    """Commit as the controller, in as many transactions as the store needs.

    Raises as `store.commit`; BadVersionError for the epoch's znode means that the office is lost.
    """
    for batch in in_transactions(operations, store.transaction_bytes_max):
        store.commit([office.fence, *batch], now_ms=now_ms)
