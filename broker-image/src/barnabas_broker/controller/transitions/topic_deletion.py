"""Topic deletion: out of the image at once, out of the store when nothing is left of it.

Kafka's `TopicDeletionManager`. The mark under /admin/delete_topics is written first and goes last,
so that whichever controller comes next goes on. A topic's znodes stay until each broker that holds
one of its replicas has confirmed that the log is gone; a broker that is away is waited for.
"""

import logging
from collections.abc import Collection, Mapping

from barnabas_broker.cluster.image import MetadataImage, TopicImage
from barnabas_broker.controller.commands import (
    DeletionPendingError,
    Failures,
    Publish,
    Transition,
    read_existing,
    read_topic_znodes,
    write_each,
)
from barnabas_broker.controller.context import ControllerContext
from barnabas_broker.controller.topic_znodes import delete_topic
from barnabas_broker.invariants import violated
from barnabas_broker.zk.operations import Create, Delete
from barnabas_broker.zk.znodes import DeleteTopicZnode
from barnabas_kafka.errors import KafkaError

_log = logging.getLogger(__name__)


def delete(context: ControllerContext, names: Collection[str]) -> Transition[dict[str, KafkaError]]:
    """Begin to delete topics of the image; when this returns they are out of it.

    Returns the topics that cannot be marked as deleted. The deletion of the others is on record:
    where the store does not take its end now, it is completed later (`complete_all`).
    """
    topics = {name: context.image.topics[name] for name in names}
    marks = {name: DeleteTopicZnode(name).path for name in topics}
    existing = yield from read_existing([*marks.values()])
    missing = {name: [Create(path)] for name, path in marks.items() if path not in existing}
    refused = yield from write_each(missing)
    topics = {name: topic for name, topic in topics.items() if name not in refused}
    context.delete(topics)
    gone = [tp for tp in context.offline if tp.topic in topics]
    for tp in gone:
        del context.offline[tp]
    try:
        yield from publish(context, context.image.with_changes(remove=frozenset(topics)))
    except KafkaError as error:
        _log.warning("Topic deletion not completed yet: %s", error)
    return refused


def publish(context: ControllerContext, image: MetadataImage) -> Transition[Failures]:
    """Make an image the current one; returns the topics of which this broker could not do it.

    Of topics on their way out it has then nothing left, but for those that failed.
    """
    context.image = image
    deleting = dict(context.deleting)
    failures: Failures = yield Publish(image)
    for name, error in failures.items():
        if not isinstance(error, DeletionPendingError):
            _log.error("Topic rejected: topic=%s %s", name, error.message)
    context.undeleted |= failures.keys() & deleting.keys()
    if deleting:
        yield from confirm(context, context.broker_id, deleting, context.undeleted)
    return failures


def confirm(
    context: ControllerContext,
    broker: int,
    deleting: Mapping[str, TopicImage],
    refused: Collection[str],
) -> Transition[None]:
    """A broker has received that these topics are being deleted; `refused` it could not delete.

    A topic made again since under the same name, and deleted again, is another one.
    """
    done = []
    for name, topic in deleting.items():
        waited_for = context.unconfirmed.get(name)
        if waited_for is None or context.deleting.get(name) != topic or name in refused:
            continue
        waited_for.discard(broker)
        if broker == context.broker_id:
            context.undeleted.discard(name)
        if not waited_for:
            done.append(name)
    if done:
        yield from complete(context, done)


def complete_all(context: ControllerContext) -> Transition[None]:
    """Finish deletions that every broker has confirmed, and whose znodes could not be removed."""
    done = [name for name, waited_for in context.unconfirmed.items() if not waited_for]
    if done:
        yield from complete(context, done)


def complete(context: ControllerContext, names: Collection[str]) -> Transition[None]:
    """Remove the znodes of topics of which nothing is left on any broker; their marks go last."""
    assert all(not context.unconfirmed[name] for name in names), violated(
        "a topic's znodes stay while a broker may hold a replica"
    )
    found = yield from read_topic_znodes([*names])
    refused = yield from write_each(
        {
            name: [*delete_topic(name, found[name]), Delete(DeleteTopicZnode(name).path)]
            for name in names
        }
    )
    for name in names:
        if name in refused:
            continue
        del context.deleting[name]
        del context.unconfirmed[name]
        _log.info("Topic deleted on all brokers: topic=%s", name)
    # For the view: a later delivery must not delete a topic created again.
    context.image = context.image.with_changes()
    yield Publish(context.image)
