"""The controller's office, on a real store with several brokers in turn."""

from pathlib import Path

import pytest

from barnabas_broker.controller.office import (
    OccupiedError,
    commit_fenced,
    refuse_company,
    take_office,
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


def test_each_election_has_the_next_epoch(store: EmbeddedStore) -> None:
    """The office and its epoch are taken in one transaction; who has it keeps it."""
    first = take_office(store, broker_id=1, now_ms=1)
    assert (first.epoch, first.epoch_version) == (1, 0)
    assert take_office(store, broker_id=1, now_ms=2) == first
    store.commit([Delete(ControllerZnode.PATH)], now_ms=3)
    second = take_office(store, broker_id=1, now_ms=4)
    assert (second.epoch, second.epoch_version) == (2, 1)
    assert ControllerEpochZnode.decode(store.get(ControllerEpochZnode.PATH)[0]) == 2


def test_an_office_that_another_holds(store: EmbeddedStore) -> None:
    """Told with the name of the holder."""
    occupy(store, 7)
    with pytest.raises(OccupiedError, match="broker 7 holds /controller"):
        take_office(store, broker_id=1, now_ms=1)


def test_an_office_held_under_the_own_id(store: EmbeddedStore) -> None:
    """It may be a ghost; when it does not go, the id is in use."""
    occupy(store, 1)
    with pytest.raises(CoordinationError, match="broker id 1 is in use: /controller"):
        take_office(store, broker_id=1, now_ms=1)


def test_a_deposed_controller_writes_nothing(store: EmbeddedStore) -> None:
    """Its fence refuses the transaction once the epoch has moved on."""
    office = take_office(store, broker_id=1, now_ms=1)
    commit_fenced(store, office, [Create("/a")], now_ms=1)
    store.commit([SetData(ControllerEpochZnode.PATH, b"2")], now_ms=1)
    with pytest.raises(BadVersionError) as caught:
        commit_fenced(store, office, [Create("/b")], now_ms=1)
    assert caught.value.path == ControllerEpochZnode.PATH
    assert store.exists("/b") is None


def test_company_is_refused(store: EmbeddedStore) -> None:
    """One broker per cluster, for now; the own registration is none."""
    store.commit([Create(BrokerZnode(1).path, ephemeral_owner=OTHER_SESSION)], now_ms=1)
    refuse_company(store, 1)
    with pytest.raises(OccupiedError, match="broker 1 holds /brokers/ids/1"):
        refuse_company(store, 2)
    with pytest.raises(CoordinationError, match="broker id 1 is in use"):
        wait_for_own_ghost(store, 1)
