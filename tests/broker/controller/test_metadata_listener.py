"""A member of a cluster: what it obeys, and what it reads for itself."""

from __future__ import annotations

from barnabas_broker.cluster.control import FencingEpochs
from barnabas_broker.controller.metadata_listener import MetadataListener
from barnabas_broker.controller.topics import NewTopic
from barnabas_kafka.errors import ErrorCode
from tests.broker.controller.ensemble import NOW_MS, Cluster


def test_settings_of_a_topic_come_with_it() -> None:
    """The controller does not tell them; they are read when the topic is first heard of."""
    cluster = Cluster(2)
    cluster.create(NewTopic(name="t", configs=[("retention.ms", "7")]))
    assert cluster.controllers[2].image.topics["t"].config == {"retention.ms": "7"}


def test_an_earlier_registration_and_an_earlier_controller_are_remembered() -> None:
    """Each only ever grows."""
    cluster = Cluster(2)
    member = cluster.controllers[2].member
    registered = cluster.active_controller.image.brokers[2].epoch
    assert member.epochs == FencingEpochs(controller_epoch=1, broker_epoch=registered)
    member.observe_controller_epoch(4)
    member.observe_controller_epoch(3)
    assert member.epochs.controller_epoch == 4
    member.registered(registered + 5)
    assert member.epochs == FencingEpochs(4, registered + 5)


def test_a_controller_makes_way_for_a_later_one() -> None:
    """Its own epoch, and those before it, it refuses; without company it refuses all."""
    cluster = Cluster(1)
    first = cluster.controllers[1]
    assert isinstance(first.member, MetadataListener)
    assert first.accept_controller(1, -1) is ErrorCode.STALE_CONTROLLER_EPOCH
    assert first.is_active
    assert first.accept_controller(2, -1) is None
    assert not first.is_active
    assert first.view is None
    first.catch_up(None, now_ms=NOW_MS)
