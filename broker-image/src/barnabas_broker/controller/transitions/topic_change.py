"""Topics that others have written: tools up to 2.8 create and grow them by their assignments alone.

Kafka's `KafkaController.processTopicChange` and `processPartitionModifications`. They get ids,
states and leaders here, each topic by itself, and are published.
"""

import logging
from collections.abc import Collection, Mapping
from typing import NamedTuple

from barnabas_broker.controller.commands import (
    ReadAllAgain,
    Transition,
    read_existing,
    read_topics,
    write_each,
)
from barnabas_broker.controller.context import ControllerContext
from barnabas_broker.controller.election_context import ElectionContext, in_question, lead_topic
from barnabas_broker.controller.stored import StoredTopic
from barnabas_broker.controller.transitions.topic_deletion import publish

_log = logging.getLogger(__name__)


class Led(NamedTuple):
    """Topics as they are afterwards, and the names of those written and refused."""

    topics: Mapping[str, StoredTopic]
    written: Collection[str]
    refused: Collection[str]


def lead(topics: Mapping[str, StoredTopic], leading: ElectionContext) -> Transition[Led]:
    """Elect leaders for topics, as far as any replica can lead, each topic by itself."""
    existing = yield from read_existing(
        [path for topic in topics.values() for path in in_question(topic)]
    )
    needed = {name: lead_topic(it, leading, existing=existing) for name, it in topics.items()}
    needed = {name: operations for name, operations in needed.items() if operations}
    refused = yield from write_each(needed)
    again = yield from read_topics(needed)
    others = {name: it for name, it in topics.items() if name not in needed}
    written = [name for name in needed if name not in refused]
    return Led(others | dict(again.found), written, refused)


def topics_changed(context: ControllerContext, names: Collection[str]) -> Transition[None]:
    """Read topics, see to it that they are led, and publish those that are not as known."""
    stored = yield from read_topics(names, watch=True)
    led = yield from lead(stored.found, context.leading(first_epoch=0))
    if led.refused:
        yield ReadAllAgain()
    for name in led.written:
        _log.info("Topic changed in ZooKeeper: topic=%s", name)
    known = context.image.topics
    images = [it.image.with_offline_of(known.get(name)) for name, it in led.topics.items()]
    changed = tuple(image for image in images if image != known.get(image.name))
    if changed:
        yield from publish(context, context.image.with_changes(put=changed))
