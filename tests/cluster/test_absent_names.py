"""Brokers are known by names, and the name of one that is away is not answered for.

So it is on Kubernetes while a pod is replaced: lookups of its name hang.
"""

import operator
from collections.abc import Callable, Iterator
from functools import partial

import pytest

from tests.cluster.history import Outcome, anomalies
from tests.cluster.load import under_load
from tests.cluster.names import Names
from tests.cluster.running import Cluster, Leadership
from tests.gaps import LONGEST_GAP

PARTITIONS = 6
RECORDS = 100


@pytest.fixture(scope="module")
def names(tmp_path_factory: pytest.TempPathFactory) -> Names:
    """The names of the brokers."""
    return Names(tmp_path_factory.mktemp("names"))


@pytest.fixture(scope="module")
def three(tmp_path_factory: pytest.TempPathFactory, names: Names) -> Iterator[Cluster]:
    """Three brokers that reach each other by name, and clients by address."""
    cluster = Cluster(tmp_path_factory.mktemp("cluster"), listeners=("PLAINTEXT", "BROKERS"))
    for number, broker in cluster.brokers.items():
        by_address, by_name = broker.settings["listeners"].split(",")
        port = by_name.rpartition(":")[2]
        broker.settings |= {
            "advertised.listeners": f"{by_address},BROKERS://{names.of(number)}:{port}",
            "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,BROKERS:PLAINTEXT",
            "inter.broker.listener.name": "BROKERS",
        }
        broker.environment |= names.environment
    with cluster as started:
        yield started


@pytest.mark.parametrize("rolls", [3, pytest.param(21, marks=pytest.mark.soak)])
def test_the_controller_leaves_with_its_name(
    cluster: Cluster,
    names: Names,
    topic: str,
    rolls: int,
    record_property: Callable[[str, object], None],
) -> None:
    """Every partition takes records while it is away, and while its successor looks for it.

    What brokers ask of each other needs connections by name, none of which may wait for its name.
    """
    cluster.create(topic, PARTITIONS)
    with under_load(cluster.bootstrap, topic, PARTITIONS) as load:
        for _ in range(rolls):
            leaving = cluster.known_controller()
            rest = {*cluster.brokers} - {leaving}
            with names.without(leaving):
                cluster.brokers[leaving].stop()
                cluster.wait_for_leadership(
                    f"partitions of {topic} led by and in sync at the brokers {rest}",
                    topic,
                    partial(all_at, rest),
                )
                before = load.acknowledged()
                cluster.wait_for(
                    "more acknowledged records",
                    load.acknowledged,
                    until=partial(operator.lt, before + PARTITIONS * RECORDS),
                )
            cluster.start_missing()
            cluster.until_whole(topic)
    record_property(LONGEST_GAP, f"{load.gap_s:.1f} s: {rolls} rolls of the controller by name")
    assert anomalies(load.history) == []
    assert {send.outcome for send in load.history.sends} == {Outcome.OK}


def all_at(brokers: set[int], found: Leadership) -> bool:
    """Whether these brokers, and no others, are in sync everywhere, and lead."""
    return all(leader in brokers and set(isr) == brokers for leader, isr in found)
