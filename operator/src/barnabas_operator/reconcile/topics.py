"""Topics of a cluster: describe all at once, then make each as its resource says, in batches.

Nothing here needs Kubernetes: `barnabas local` calls it with the resources of a file.
"""

from __future__ import annotations

import itertools
import logging
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, TypeVar

from barnabas_operator.api.conditions import Verdict
from barnabas_operator.api.topics import PARTITIONS_PER_REQUEST
from barnabas_operator.brokers import Brokers, BrokersError
from barnabas_operator.plan.ledger import Ledger, next_ledger
from barnabas_operator.plan.namespaces import label_of
from barnabas_operator.plan.topics import (
    AS_SPECIFIED,
    CREATING,
    UPDATING,
    AlterConfig,
    CreateTopic,
    GrowPartitions,
    Kept,
    Refusal,
    Topic,
    TopicPlan,
    TopicView,
    differences,
    is_managed,
    new_partitions,
    owners,
    plan_topic,
    topic_name,
)

logger = logging.getLogger(__name__)

# The controller works on one request at a time, so others have their turn after so many topics.
BATCH: Final = 50
# The protocol's error, and the Ready reason of a topic that gets it while brokers are away.
TOO_FEW_BROKERS: Final = "INVALID_REPLICATION_FACTOR"
WAITING_FOR_BROKERS: Final = "WaitingForBrokers"

Step = TypeVar("Step", CreateTopic, GrowPartitions, AlterConfig)
Item = TypeVar("Item")
Remember = Callable[[Ledger], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """The state of a topic after a pass.

    `view` is the topic as it is now, None if there is none or nothing is known. It is `managed` if
    it was created or adopted for this resource.
    """

    verdict: Verdict
    view: TopicView | None = None
    managed: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """Outcomes by the labels of resources (`plan.namespaces`), and the ledger.

    `failed`: a broker did not answer. `settled`: all were described, and nothing was to be changed.
    """

    outcomes: Mapping[str, Outcome]
    ledger: Ledger
    failed: bool
    settled: bool


def reconcile_topics(
    topics: Sequence[Topic],
    brokers: Brokers,
    *,
    ledger: Ledger | None = None,
    remember: Remember = lambda _: None,
    broker_count: int = 0,
) -> Result:
    """Make the topics as their resources say.

    `remember` is given the ledger before a topic in it is created, as a topic that was created and
    forgotten would never be deleted. `broker_count` is how many brokers the cluster is to have; a
    topic that needs no more waits for those that are away. Raises BrokersError if no topic can be
    described; every other error concerns its topic alone.
    """
    before = ledger or {}
    found = brokers.topics(brokers.topic_names() & {topic_name(each) for each in topics})
    errors = {name: each for name, each in found.items() if isinstance(each, BrokersError)}
    views = {name: each for name, each in found.items() if isinstance(each, TopicView)}
    entries = _without_replaced(before, views)
    managed = owners(topics, entries)
    plans = {
        name: plan_topic(topic, views.get(name), entries.get(name))
        for name, topic in managed.items()
        if name not in errors
    }
    # An id is kept until another is seen: a broker that is behind may not list the topic.
    known_ids = {name: entry.topic_id for name, entry in entries.items()}
    ids = {
        name: views[name].topic_id if name in views else known_ids.get(name, "")
        for name, plan in plans.items()
        if isinstance(plan, list)
    }
    entries = next_ledger(entries, managed, ids)
    if entries != before:
        remember(entries)
    _warn_of_lost_topics(managed, plans)
    errors |= _apply(plans, brokers)
    entries = _without_refused(entries, before, errors)
    changed = [name for name, plan in plans.items() if isinstance(plan, list) and plan]
    _describe_again([name for name in changed if name not in errors], brokers, views, errors)
    outcomes = {}
    for topic in topics:
        name = topic_name(topic)
        if managed[name] is not topic:
            outcomes[label_of(topic)] = _conflict(name, managed[name])
        else:
            outcomes[label_of(topic)] = _outcome(
                topic, plans.get(name), views.get(name), errors.get(name), broker_count
            )
    known = {name: views[name].topic_id for name in changed if name in views}
    return Result(
        outcomes=outcomes,
        ledger=next_ledger(entries, {name: managed[name] for name in known}, known),
        failed=any(not error.reachable for error in errors.values()),
        settled=not (errors or changed),
    )


def _without_replaced(entries: Ledger, views: Mapping[str, TopicView]) -> Ledger:
    """The ledger without topics of other namespaces that another client has created since."""
    return {
        name: entry
        for name, entry in entries.items()
        if not (
            entry.namespace
            and entry.topic_id
            and name in views
            and views[name].topic_id != entry.topic_id
        )
    }


def _without_refused(entries: Ledger, before: Ledger, errors: Mapping[str, BrokersError]) -> Ledger:
    """The ledger without topics of other namespaces that the brokers refuse to create: one that
    is created later by another client would be theirs by its entry."""
    refused = {
        name
        for name, error in errors.items()
        if error.reachable and name not in before and name in entries and entries[name].namespace
    }
    return {name: entry for name, entry in entries.items() if name not in refused}


def batches(items: Iterable[Item], size: int = BATCH) -> Iterator[list[Item]]:
    """The items in their order, in lists of at most so many."""
    rest = iter(items)
    while batch := list(itertools.islice(rest, size)):
        yield batch


def within_a_request(batch: Sequence[tuple[str, Step]]) -> Iterator[list[tuple[str, Step]]]:
    """The steps in their order, in lists with no more partitions than brokers create at once.

    They refuse a request for more as a whole, and each of its topics with it.
    """
    found: list[tuple[str, Step]] = []
    total = 0
    for name, step in batch:
        added = new_partitions(step)
        if found and total + added > PARTITIONS_PER_REQUEST:
            yield found
            found, total = [], 0
        found.append((name, step))
        total += added
    if found:
        yield found


def _warn_of_lost_topics(managed: Mapping[str, Topic], plans: Mapping[str, TopicPlan]) -> None:
    for name, plan in plans.items():
        topic_id = managed[name].body.status.topic_id
        if topic_id and isinstance(plan, list) and any(isinstance(x, CreateTopic) for x in plan):
            logger.warning(
                "topic %s: topic id %s no longer exists, another client deleted it;"
                " it is created again without its records", name, topic_id,
            )  # fmt: skip


def _apply(plans: Mapping[str, TopicPlan], brokers: Brokers) -> dict[str, BrokersError]:
    """Apply the steps of all topics, kind by kind; returns the errors, by topic."""
    steps = [
        (name, step) for name, plan in plans.items() if isinstance(plan, list) for step in plan
    ]
    errors: dict[str, BrokersError] = {}
    creates = {name: step for name, step in steps if isinstance(step, CreateTopic)}
    grows = {name: step for name, step in steps if isinstance(step, GrowPartitions)}
    alters = {name: step for name, step in steps if isinstance(step, AlterConfig)}
    _apply_batches(creates, brokers.create_topics, errors)
    _apply_batches(grows, brokers.grow_partitions, errors)
    _apply_batches(alters, brokers.alter_configs, errors)
    return errors


def _apply_batches(
    steps: Mapping[str, Step],
    request: Callable[[Mapping[str, Step]], Mapping[str, BrokersError]],
    errors: dict[str, BrokersError],
) -> None:
    """Send the steps in batches. Once a broker has not answered, the rest waits for the next pass:
    each further request would take the whole time-out."""
    sized = map(within_a_request, batches(steps.items()))
    for batch in itertools.chain.from_iterable(sized):
        silent = next((each for each in errors.values() if not each.reachable), None)
        if silent is not None:
            errors.update({name: silent for name, _ in batch if name not in errors})
            continue
        due = {name: step for name, step in batch if name not in errors}
        for name, step in due.items():
            logger.info("topic %s: %s", name, step)
        try:
            failed = request(due) if due else {}
        except BrokersError as error:
            failed = dict.fromkeys(due, error)
        for name, each in failed.items():
            logger.warning("topic %s: %s", name, each)
        errors.update(failed)


def _describe_again(
    names: Collection[str],
    brokers: Brokers,
    views: dict[str, TopicView],
    errors: dict[str, BrokersError],
) -> None:
    """The topics after their changes; one may be missing while its broker has old metadata."""
    if not names:
        return
    try:
        found = brokers.topics(brokers.topic_names() & set(names))
    except BrokersError as error:
        errors.update(dict.fromkeys(names, error))
        return
    for name in names:
        each = found.get(name)
        if isinstance(each, BrokersError):
            errors[name] = each
        elif each is not None:
            views[name] = each


def _conflict(name: str, owner: Topic) -> Outcome:
    text = f"topic {name} is managed by KafkaTopic {label_of(owner)}; delete one of the two"
    return Outcome(verdict=Verdict(ready=False, reason="Conflict", message=text, stalled=True))


def _failure(topic: Topic, error: BrokersError, broker_count: int) -> Verdict:
    """What an error says of a topic. Brokers place replicas on those of them that are there, so
    that the replication factor is refused for good only if the cluster is to have fewer."""
    replicas = topic.body.spec.replicas
    if error.code == TOO_FEW_BROKERS and replicas <= broker_count:
        text = f"{error}; its {replicas} replicas wait until as many of {broker_count} brokers run"
        return Verdict(ready=False, reason=WAITING_FOR_BROKERS, message=text, settled=False)
    reason = "Refused" if error.reachable else "Unreachable"
    final = error.reachable
    return Verdict(ready=False, reason=reason, message=str(error), settled=final, stalled=final)


def _outcome(
    topic: Topic,
    plan: TopicPlan | None,
    view: TopicView | None,
    error: BrokersError | None,
    broker_count: int,
) -> Outcome:
    """The verdict of a topic; Ready is True only if the topic is as the spec has it."""
    applied = isinstance(plan, list) and error is None
    managed = applied or (view is not None and is_managed(topic, view))
    if error is not None:
        verdict = _failure(topic, error, broker_count)
        return Outcome(verdict=verdict, view=view, managed=managed)
    if isinstance(plan, Refusal):
        verdict = Verdict(ready=False, reason=plan.reason, message=plan.message, stalled=True)
        return Outcome(verdict=verdict, view=view, managed=managed)
    if isinstance(plan, Kept):
        return Outcome(verdict=plan.verdict, view=view)
    if view is None:
        text = "the cluster has accepted the topic and does not show it yet"
        return Outcome(verdict=Verdict(ready=False, reason=CREATING, message=text, settled=False))
    if found := differences(topic.body.spec, view):
        text = f"changes were applied and do not show yet: {'; '.join(found)}"
        verdict = Verdict(ready=False, reason=UPDATING, message=text, settled=False)
        return Outcome(verdict=verdict, view=view, managed=managed)
    counts = f"{view.partitions} partitions of {view.replicas} replicas"
    text = f"the topic is as specified: {counts}"
    verdict = Verdict(ready=True, reason=AS_SPECIFIED, message=text)
    return Outcome(verdict=verdict, view=view, managed=managed)
