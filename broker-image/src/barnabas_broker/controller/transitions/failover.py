"""The beginning: what a broker does that has just been elected as the controller.

Kafka's `KafkaController.onControllerFailover`: read everything, see that it is led, publish it.
"""

from collections.abc import Mapping
from dataclasses import replace

from barnabas_broker.cluster.image import BrokerRegistration, TopicImage, ids_of
from barnabas_broker.cluster.standing import leaderless
from barnabas_broker.controller.commands import (
    ReadBrokers,
    ReadDeletionMarks,
    Transition,
    Write,
    read_existing,
    read_topics,
    write_each,
)
from barnabas_broker.controller.context import ControllerContext
from barnabas_broker.controller.election_context import ElectionContext, in_question, lead_topic
from barnabas_broker.controller.leaderless import tell_leaderless
from barnabas_broker.controller.registrations import doubtful
from barnabas_broker.controller.stored import StoredTopic
from barnabas_broker.controller.transitions.topic_deletion import publish
from barnabas_broker.zk.operations import Create
from barnabas_broker.zk.znodes import FeatureZnode, TopicZnode
from barnabas_kafka.ids import TopicPartition


def begin(context: ControllerContext, *, first_epoch: int) -> Transition[None]:
    """Read everything, see to it that it is led, and publish it; the office is taken.

    A topic that cannot be read stays as it was known. Until it is published nobody hears of
    anything, and what fails begins again from the start.
    """
    brokers: Mapping[int, BrokerRegistration] = yield ReadBrokers()
    known = context.image.topics
    context.reset()
    context.image = replace(context.image, brokers=brokers)
    leading = context.leading(first_epoch=first_epoch, doubtful=doubtful(brokers))
    stored = yield from read_topics()
    marked: frozenset[str] = frozenset()
    if context.settings.deletion_enabled:
        marked = frozenset((yield ReadDeletionMarks()))
    yield from _make_feature()
    lasting = {name: topic for name, topic in stored.found.items() if name not in marked}
    doomed = {name: topic for name, topic in stored.found.items() if name in marked}
    led = yield from _lead(context, lasting, leading)
    topics = {name: _kept(known, topic.image) for name, topic in led.items()}
    unread = set(stored.names).difference(topics, doomed) & known.keys()
    there = yield from read_existing([TopicZnode(name).path for name in sorted(unread)])
    topics |= {name: known[name] for name in unread if TopicZnode(name).path in there}
    context.deleting = {name: topic.image for name, topic in doomed.items()}
    context.unconfirmed = {name: topic.brokers for name, topic in context.deleting.items()}
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
    tell_leaderless(leaderless(context.image))


def _make_feature() -> Transition[None]:
    """/feature, if it is not there, is the controller's to make."""
    existing = yield from read_existing([FeatureZnode.PATH])
    if FeatureZnode.PATH not in existing:
        yield Write([Create(FeatureZnode.PATH, FeatureZnode().encode())])


def _lead(
    context: ControllerContext, topics: Mapping[str, StoredTopic], leading: ElectionContext
) -> Transition[dict[str, StoredTopic]]:
    """Have topics led, each by itself; returns them as they are afterwards.

    Of one that is refused, all partitions are settled later.
    """
    existing = yield from read_existing(
        [path for topic in topics.values() for path in in_question(topic)]
    )
    needed = {name: lead_topic(it, leading, existing=existing) for name, it in topics.items()}
    needed = {name: operations for name, operations in needed.items() if operations}
    refused = yield from write_each(needed)
    again = yield from read_topics(needed)
    for name in refused.keys() & again.found.keys():
        for number, state in again.found[name].states.items():
            tp = TopicPartition(name, number)
            live = None if state is None else leading.present_for(tp, state)
            context.unsettled[tp] = frozenset(live.restarted if live else ())
    return {name: it for name, it in topics.items() if name not in needed} | dict(again.found)


def _kept(known: Mapping[str, TopicImage], topic: TopicImage) -> TopicImage:
    """The same object as before where nothing has changed, so that nobody looks at it again."""
    before = known.get(topic.name)
    return before if before is not None and before == topic else topic
