"""The controller's office, on a real store with several brokers in turn."""

from pathlib import Path

import pytest

from barnabas_broker.controller.controller_claim import (
    ControllerClaim,
    commit_fenced,
    contest,
    wait_for_own_ghost,
)
from barnabas_broker.zk.embedded import EmbeddedStore
from barnabas_broker.zk.store import CoordinationError, Create, Delete, SetData
from barnabas_broker.zk.znodes import BrokerZnode, ControllerEpochZnode, ControllerZnode
from barnabas_zookeeper.errors import BadVersionError

OTHER_SESSION = 99


@pytest.fixture
def store(tmp_path: Path) -> EmbeddedStore:
    """A store with the parents that brokers need."""
    opened = EmbeddedStore.open(tmp_path, now_ms=1)
    opened.commit([Create("/brokers"), Create(BrokerZnode.ROOT)], now_ms=1)
    return opened


def occupy(store: EmbeddedStore, broker_id: int) -> None:
    """Another session is the controller."""
    data = ControllerZnode.encode(broker_id, now_ms=1)
    store.commit([Create(ControllerZnode.PATH, data, ephemeral_owner=OTHER_SESSION)], now_ms=1)


def stand(store: EmbeddedStore, now_ms: int = 1) -> ControllerClaim:
    """Win an election."""
    claim = contest(store, broker_id=1, now_ms=now_ms)
    assert claim is not None
    return claim


def test_each_election_has_the_next_epoch(store: EmbeddedStore) -> None:
    """The office and its epoch are taken in one transaction; who has it keeps it."""
    first = stand(store)
    assert (first.epoch, first.epoch_version) == (1, 0)
    assert stand(store, 2) == first
    store.commit([Delete(ControllerZnode.PATH)], now_ms=3)
    second = stand(store, 4)
    assert (second.epoch, second.epoch_version) == (2, 1)
    assert ControllerEpochZnode.decode(store.get(ControllerEpochZnode.PATH)[0]) == 2


@pytest.mark.parametrize("holder", [7, 1])
def test_an_office_that_another_session_holds(store: EmbeddedStore, holder: int) -> None:
    """There is none to be had, not even from a session that this broker had before."""
    occupy(store, holder)
    assert contest(store, broker_id=1, now_ms=1) is None


def test_a_deposed_controller_writes_nothing(store: EmbeddedStore) -> None:
    """Its fence refuses the transaction once the epoch has moved on."""
    claim = stand(store)
    commit_fenced(store, claim, [Create("/a")], now_ms=1)
    store.commit([SetData(ControllerEpochZnode.PATH, b"2")], now_ms=1)
    with pytest.raises(BadVersionError) as caught:
        commit_fenced(store, claim, [Create("/b")], now_ms=1)
    assert caught.value.path == ControllerEpochZnode.PATH
    assert store.exists("/b") is None


def test_a_broker_id_that_is_in_use(store: EmbeddedStore) -> None:
    """The registration may be a ghost; when it does not go, somebody lives there."""
    store.commit([Create(BrokerZnode(1).path, ephemeral_owner=OTHER_SESSION)], now_ms=1)
    wait_for_own_ghost(store, 2)
    with pytest.raises(CoordinationError, match="broker id 1 is in use"):
        wait_for_own_ghost(store, 1)
