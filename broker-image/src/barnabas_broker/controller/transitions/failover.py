"""The beginning: what a broker does that has just been elected as the controller.

Kafka's `KafkaController.onControllerFailover`: read everything, see that it is led, publish it.
"""

from collections.abc import Mapping
from dataclasses import replace

from barnabas_broker.cluster.availability import leaderless
from barnabas_broker.cluster.image import BrokerRegistration, TopicImage, ids_of
from barnabas_broker.controller.commands import (
    ReadBrokers,
    ReadDeletionMarks,
    Transition,
    Write,
    read_existing,
    read_topics,
)
from barnabas_broker.controller.context import ControllerContext
from barnabas_broker.controller.election_context import ElectionContext
from barnabas_broker.controller.leaderless import log_leaderless
from barnabas_broker.controller.registrations import unclean_shutdowns
from barnabas_broker.controller.transitions.topic_change import Led, lead
from barnabas_broker.controller.transitions.topic_deletion import publish
from barnabas_broker.zk.operations import Create
from barnabas_broker.zk.znodes import FeatureZnode, TopicZnode
from barnabas_kafka.ids import TopicPartition


def begin(context: ControllerContext, *, first_epoch: int) -> Transition[None]:
    """Read everything, see to it that it is led, and publish it; the claim is made.

    A topic that cannot be read stays as it was known. Until it is published brokers receive
    nothing, and what fails begins again from the start.
    """
    brokers: Mapping[int, BrokerRegistration] = yield ReadBrokers()
    known = context.image.topics
    context.reset()
    context.image = replace(context.image, brokers=brokers)
    leading = context.leading(first_epoch=first_epoch, unclean_shutdowns=unclean_shutdowns(brokers))
    stored = yield from read_topics()
    marked: frozenset[str] = frozenset()
    if context.settings.deletion_enabled:
        marked = frozenset((yield ReadDeletionMarks()))
    yield from _make_feature()
    lasting = {name: topic for name, topic in stored.found.items() if name not in marked}
    doomed = {name: topic for name, topic in stored.found.items() if name in marked}
    led = yield from lead(lasting, leading)
    _settle_later(context, led, leading)
    topics = {name: _kept(known, topic.image) for name, topic in led.topics.items()}
    unread = set(stored.names).difference(topics, doomed) & known.keys()
    there = yield from read_existing([TopicZnode(name).path for name in sorted(unread)])
    topics |= {name: known[name] for name in unread if TopicZnode(name).path in there}
    context.delete({name: topic.image for name, topic in doomed.items()})
    yield from publish(
        context,
        replace(
            context.image,
            controller_id=context.broker_id,
            topics=topics,
            topic_ids=ids_of(topics.values()),
            version=context.image.version + 1,
        ),
    )
    log_leaderless(leaderless(context.image))


def _make_feature() -> Transition[None]:
    """/feature, if it is not there, is the controller's to make."""
    existing = yield from read_existing([FeatureZnode.PATH])
    if FeatureZnode.PATH not in existing:
        yield Write([Create(FeatureZnode.PATH, FeatureZnode().encode())])


def _settle_later(context: ControllerContext, led: Led, leading: ElectionContext) -> None:
    """Of a topic that the store has refused, all partitions are settled later."""
    for name in led.topics.keys() & led.refused:
        for number, state in led.topics[name].states.items():
            tp = TopicPartition(name, number)
            live = None if state is None else leading.present_for(tp, state)
            context.unsettled[tp] = frozenset(live.restarted if live else ())


def _kept(known: Mapping[str, TopicImage], topic: TopicImage) -> TopicImage:
    """The same object as before where nothing has changed, so that no listener compares it."""
    before = known.get(topic.name)
    return before if before is not None and before == topic else topic
