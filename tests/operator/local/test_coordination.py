"""What keeps a cluster's coordination data stays the same for good."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from barnabas_operator.api.reading import read_cluster
from barnabas_operator.local import coordination
from barnabas_operator.local.coordination import Keeper
from barnabas_operator.local.state import LocalError, MemberPorts, Record, StateDirectory
from tests.operator import examples

STORAGE = {"storage": {"size": "1Gi"}}


@pytest.fixture
def state(tmp_path: Path) -> StateDirectory:
    """A state directory in which nothing is."""
    return StateDirectory(tmp_path)


def choose(
    state: StateDirectory, record: Record | None = None, *, brokers: int = 1, **zookeeper: Any
) -> Keeper:
    """What is to keep the data of a cluster with so many brokers."""
    spec = {"brokers": {"replicas": brokers, **STORAGE}, "zookeeper": {**zookeeper, **STORAGE}}
    cluster = read_cluster(examples.cluster(**spec))
    return coordination.choose(cluster, record or Record(cluster="c", file="f"), state)


def test_the_metadata_store_follows_the_resource(state: StateDirectory) -> None:
    """One broker keeps its own; several need a ZooKeeper, Apache's where it is asked for."""
    assert choose(state) is Keeper.BROKER
    assert choose(state, brokers=3) is Keeper.DEVELOPMENT
    record = Record(cluster="c", file="f")
    assert choose(state, record, type="apache", replicas=3) is Keeper.APACHE
    assert record.ensemble == dict.fromkeys((1, 2, 3), MemberPorts())
    # Nothing was kept yet: whoever has no Java may do without.
    assert choose(state, record, replicas=3) is Keeper.BROKER
    assert record.ensemble == {}


@pytest.mark.parametrize(
    ("there", "reported"),
    [
        ("broker-0", "the only broker keeps the coordination data in"),
        ("zookeeper", "the ZooKeeper for development keeps the coordination data in"),
    ],
)
def test_data_do_not_move_to_an_ensemble(state: StateDirectory, there: str, reported: str) -> None:
    """The error names who has them."""
    state.path.joinpath(there, "data").mkdir(parents=True)
    with pytest.raises(LocalError, match=f"{reported}.*Apache ZooKeeper does not take over: name"):
        choose(state, type="apache")


def test_data_do_not_leave_an_ensemble(state: StateDirectory) -> None:
    """It is found again without its record, and says what to say."""
    for number in (1, 2, 3):
        state.member(number).joinpath("data").mkdir(parents=True)
    record = Record(cluster="c", file="f")
    assert choose(state, record, type="apache", replicas=3) is Keeper.APACHE
    assert list(record.ensemble) == [1, 2, 3]
    with pytest.raises(LocalError, match=r"say spec\.zookeeper\.type: apache, or name another"):
        choose(state, record)
    with pytest.raises(LocalError, match=r"replicas is 1, and there are 3 in .*may not change"):
        choose(state, record, type="apache", replicas=1)


def test_a_cluster_that_was_several_stays_on_its_zookeeper(state: StateDirectory) -> None:
    """Also where its record was lost and one broker is left."""
    state.zookeeper.joinpath("data").mkdir(parents=True)
    assert choose(state) is Keeper.DEVELOPMENT
