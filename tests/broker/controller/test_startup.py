"""Becoming the controller: what is written, and that a crash on the way changes nothing."""

from pathlib import Path
from random import Random

import pytest

from barnabas_broker.controller.identity import new_cluster_id, new_id
from barnabas_broker.controller.startup import TakenOver, take_over
from barnabas_broker.zk.embedded import FILE_NAME, EmbeddedStore
from barnabas_broker.zk.store import Create, SetData
from barnabas_broker.zk.znodes import (
    PERSISTENT_PATHS,
    ControllerEpochZnode,
    ControllerZnode,
    FeatureZnode,
    MalformedZnodeError,
)
from barnabas_kafka.ids import uuid_from_base64, uuid_to_base64


def begin(store: EmbeddedStore) -> TakenOver:
    """Take over as broker 3."""
    return take_over(
        store,
        broker_id=3,
        cluster_id=None,
        deletion_enabled=True,
        random=Random(2),
        now_ms=5,
    )


def test_everything_an_apache_broker_expects_is_there(tmp_path: Path) -> None:
    """The persistent paths, identity, controller and its epoch."""
    store = EmbeddedStore.open(tmp_path, now_ms=5)
    taken = begin(store)
    assert all(store.exists(path) is not None for path in PERSISTENT_PATHS)
    assert ControllerZnode.decode(store.get(ControllerZnode.PATH)[0]) == 3
    assert store.get(ControllerZnode.PATH)[1].ephemeral_owner == store.session
    assert ControllerEpochZnode.decode(store.get(ControllerEpochZnode.PATH)[0]) == 1
    assert store.exists(FeatureZnode.PATH) is not None
    assert (taken.claim.epoch, taken.image.controller_id) == (1, 3)
    assert not taken.deleting
    store.close()


def test_taking_over_again_after_a_crash_on_the_way(tmp_path: Path) -> None:
    """Whatever of it had got to disk, the next start ends with one consistent controller."""
    store = EmbeddedStore.open(tmp_path, now_ms=5)
    begin(store)
    store.close()
    whole = (tmp_path / FILE_NAME).read_bytes()
    lines = whole.splitlines(keepends=True)
    for kept in range(2, len(lines) + 1):
        (tmp_path / FILE_NAME).write_bytes(b"".join(lines[:kept]))
        store = EmbeddedStore.open(tmp_path, now_ms=6)
        taken = begin(store)
        elected = any(b"/controller_epoch" in line for line in lines[1:kept])
        assert taken.claim.epoch == (2 if elected else 1)
        assert len(taken.image.cluster_id) == 22
        store.close()


def test_an_unreadable_topic_znode_fails_the_startup(tmp_path: Path) -> None:
    """Leaving it out would look like a deletion to everybody who follows the image."""
    store = EmbeddedStore.open(tmp_path, now_ms=5)
    begin(store)
    store.commit([Create("/brokers/topics/t", b"{}")], now_ms=5)
    store.commit([SetData("/brokers/topics/t", b"[]")], now_ms=5)
    store.close()
    store = EmbeddedStore.open(tmp_path, now_ms=6)
    with pytest.raises(MalformedZnodeError, match="/brokers/topics/t"):
        begin(store)
    store.close()


def test_ids_are_random_uuids_that_no_command_line_takes_for_an_option() -> None:
    """Version 4, never with a leading dash, and different each time."""
    random = Random(1)
    ids = [new_id(random) for _ in range(500)]
    assert len(set(ids)) == 500
    assert {each.version for each in ids} == {4}
    assert not any(uuid_to_base64(each).startswith("-") for each in ids)


def test_the_same_randomness_gives_the_same_cluster_id() -> None:
    """Identity comes only from what is passed in, so that a simulation can be repeated."""
    assert new_cluster_id(Random(5)) == new_cluster_id(Random(5))
    assert uuid_from_base64(new_cluster_id(Random(5))).version == 4
