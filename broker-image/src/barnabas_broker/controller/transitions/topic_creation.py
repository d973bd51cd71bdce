"""Topic creation and partition growth: planned, written, published; each topic by itself.

Kafka's `ZkAdminManager.createTopics` and `createPartitions`. A topic that cannot be planned or that
the store refuses holds back no other one. Versions of new states begin at 0, so that the image
follows from what was written, and nothing is read again.
"""

import logging
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from uuid import UUID

from barnabas_broker.cluster.failures import refusal
from barnabas_broker.cluster.image import TopicImage
from barnabas_broker.controller.commands import ReadAllAgain, Transition, read_existing, write_each
from barnabas_broker.controller.context import ControllerContext
from barnabas_broker.controller.identity import new_id
from barnabas_broker.controller.requests import Admit, CreatedTopic, Growth, Outcome
from barnabas_broker.controller.stored import new_partition
from barnabas_broker.controller.topic_znodes import (
    FirstState,
    create_topic,
    first_states,
    grow_topic,
)
from barnabas_broker.controller.topics import (
    NewTopic,
    Start,
    TakenNames,
    TopicPlan,
    check_request_size,
    plan_growth,
    plan_topic,
)
from barnabas_broker.controller.transitions.topic_deletion import delete, publish
from barnabas_broker.zk.znodes import ConfigZnode
from barnabas_kafka.errors import ErrorCode, KafkaError

_log = logging.getLogger(__name__)


def create(
    context: ControllerContext, new: Sequence[NewTopic], *, validate_only: bool, admit: Admit
) -> Transition[list[CreatedTopic]]:
    """Create topics, or only say whether they could be; one answer for each, in order."""
    defaults = context.settings.topic_defaults
    try:
        check_request_size(sum(max(each.partitions(defaults), 1) for each in new))
    except KafkaError as error:
        return [CreatedTopic(outcome=Outcome.refused(each.name, error)) for each in new]
    taken = TakenNames(context.deleting, beside=context.topic_names())
    answers: list[CreatedTopic] = []
    plans: list[tuple[TopicPlan, UUID]] = []
    for each in new:
        topic_id = None if validate_only else new_id(context.random)
        try:
            plan = _plan(context, each, taken)
            if topic_id is not None:
                admit(len(plan.replicas))
                plans.append((plan, topic_id))
        except Exception as error:  # The boundary between one topic and the others.
            rejection = refusal(error, "CreateTopics", each.name)
            answers.append(CreatedTopic(outcome=Outcome.refused(each.name, rejection)))
            continue
        taken.add(plan.name)
        answers.append(CreatedTopic.planned(plan, topic_id))
    if not plans:
        return answers
    try:
        failures = yield from _write_new(context, plans)
    except KafkaError as error:
        return [CreatedTopic(outcome=answer.outcome.unless_failed(error)) for answer in answers]
    return [answer.unless_among(failures) for answer in answers]


def _plan(context: ControllerContext, new: NewTopic, taken: TakenNames) -> TopicPlan:
    brokers = max(1, len(context.image.brokers))
    return plan_topic(
        new,
        context.image,
        taken=taken,
        defaults=context.settings.topic_defaults,
        start=Start(context.random.randrange(brokers), context.random.randrange(brokers)),
        check_config=partial(context.settings.check_topic, new.name),
    )


def _write_new(
    context: ControllerContext, plans: Sequence[tuple[TopicPlan, UUID]]
) -> Transition[dict[str, KafkaError]]:
    """Write and publish topics; returns those that are not there afterwards, and why.

    A topic whose logs this broker cannot create is deleted: it would be of no use, and in the way
    of the next try.
    """
    settings = {plan.name: ConfigZnode.for_topic(plan.name).path for plan, _ in plans}
    existing = yield from read_existing([*settings.values()])
    groups, topics = {}, []
    for plan, topic_id in plans:
        states = _first_states(context, plan.replicas)
        configured = settings[plan.name] in existing
        groups[plan.name] = create_topic(
            plan.name, topic_id, states=states, config=plan.config, configured=configured
        )
        partitions = tuple(new_partition(*each) for each in states)
        topics.append(TopicImage(plan.name, topic_id, partitions, plan.config))
    refused = yield from write_each(groups)
    failures = yield from _publish(context, topics, refused)
    if failures:
        try:
            yield from delete(context, failures)
        except KafkaError as error:
            _log.warning("Topic deletion not completed yet: %s", error)
    return refused | failures


def grow(
    context: ControllerContext, growths: Sequence[Growth], *, validate_only: bool, admit: Admit
) -> Transition[list[Outcome]]:
    """Add partitions to topics, or only say whether they could be; one answer for each."""
    answers: list[Outcome] = []
    try:
        check_request_size(sum(_missing(context, growth) for growth in growths))
    except KafkaError as error:
        return [Outcome.refused(growth.name, error) for growth in growths]
    added: dict[str, list[FirstState]] = {}
    for growth in growths:
        try:
            replicas = _planned_growth(context, growth)
            if not validate_only:
                admit(len(replicas))
                added[growth.name] = _first_states(context, replicas)
            answers.append(Outcome(growth.name))
        except Exception as error:  # The boundary between one topic and the others.
            rejection = refusal(error, "CreatePartitions", growth.name)
            answers.append(Outcome.refused(growth.name, rejection))
    if not added:
        return answers
    known = context.image.topics
    try:
        refused = yield from write_each(
            {name: grow_topic(known[name], states) for name, states in added.items()}
        )
        failures = yield from _publish(
            context, [_grown(known[name], states) for name, states in added.items()], refused
        )
    except KafkaError as error:
        return [answer.unless_failed(error) for answer in answers]
    return [answer.unless_among(refused | failures) for answer in answers]


def _missing(context: ControllerContext, growth: Growth) -> int:
    """How many partitions a topic lacks, 0 for one that does not exist."""
    topic = context.image.topic(growth.name)
    return 0 if topic is None else max(growth.count - len(topic.partitions), 0)


def _planned_growth(context: ControllerContext, growth: Growth) -> tuple[tuple[int, ...], ...]:
    topic = context.image.topic(growth.name)
    if topic is None:
        message = f"The topic '{growth.name}' does not exist."
        raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, message)
    return plan_growth(topic, context.image, count=growth.count, assignments=growth.assignments)


def _grown(topic: TopicImage, states: Sequence[FirstState]) -> TopicImage:
    partitions = (*topic.partitions, *(new_partition(*each) for each in states))
    return replace(topic, partitions=partitions)


def _publish(
    context: ControllerContext, topics: Sequence[TopicImage], refused: dict[str, KafkaError]
) -> Transition[dict[str, KafkaError]]:
    """Publish those that the store has not refused; returns what this broker could not do."""
    if refused:
        yield ReadAllAgain()
    put = tuple(topic for topic in topics if topic.name not in refused)
    if not put:
        return {}
    failures = yield from publish(context, context.image.with_changes(put=put))
    return {name: error for name, error in failures.items() if name in {it.name for it in put}}


def _first_states(
    context: ControllerContext, replicas: Sequence[tuple[int, ...]]
) -> list[FirstState]:
    """What new partitions start as; replicas of brokers that are about to stop are not in sync."""
    return first_states(replicas, controller_epoch=context.epoch, without=context.stopping)
