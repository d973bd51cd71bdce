"""Registrations of brokers, as the controller sees them."""

from dataclasses import replace

from barnabas_broker.cluster.image import BrokerRegistration
from barnabas_broker.controller.registrations import doubtful, is_other
from barnabas_broker.controller.topics import NewTopic
from barnabas_broker.zk.store import SetData
from barnabas_broker.zk.znodes import BrokerZnode

from .ensemble import NOW_MS, Cluster

BROKER = BrokerRegistration(1, (), epoch=7)


def test_what_makes_a_broker_another_one() -> None:
    """All but that it has caught up."""
    unclean = replace(BROKER, unclean=True)
    assert not is_other(unclean, BROKER)
    assert is_other(None, BROKER)
    assert is_other(BROKER, replace(BROKER, epoch=8))
    assert doubtful({1: unclean, 2: replace(BROKER, id=2)}) == {1}


def test_a_registration_that_nobody_can_read() -> None:
    """Its broker counts as away until it has written it again, and elections go on."""
    cluster = Cluster(4)
    cluster.create(NewTopic(name="t", assignments=[(0, (2, 4)), (1, (3, 4))]))
    cluster.ensemble.commit([SetData(BrokerZnode(3).path, b"{")])
    cluster.kill(2)
    image = cluster.reigning.image
    assert [each.leader for each in image.topics["t"].partitions] == [4, 4]
    assert sorted(image.brokers) == [1, 4]
    cluster.controllers[3].catch_up(None, now_ms=NOW_MS)
    cluster.kill(4)
    assert sorted(cluster.image.brokers) == [1, 3]
