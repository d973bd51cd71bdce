"""Brokers that come, go, register again, or say what of theirs can be used.

Kafka's `processBrokerChange`, `processBrokerModification`, `processLogDirEventNotification` and
`processLeaderAndIsrResponseReceived`.
"""

import logging
from collections import defaultdict
from collections.abc import Mapping

from barnabas_broker.cluster.image import BrokerRegistration
from barnabas_broker.controller.careful_election import Ends, EndsAnswer
from barnabas_broker.controller.commands import (
    ReadBrokers,
    ReadLogDirEvents,
    Transition,
    Write,
)
from barnabas_broker.controller.context import ControllerContext
from barnabas_broker.controller.isr_changes import stored
from barnabas_broker.controller.leaderless import log_careful_elections, shown
from barnabas_broker.controller.offline_replicas import Answered, after_answers, without_brokers
from barnabas_broker.controller.registrations import is_other, log_difference, unclean_shutdowns
from barnabas_broker.controller.transitions.partition_changes import change
from barnabas_broker.controller.transitions.settling import settle_changes, settled
from barnabas_broker.controller.transitions.topic_deletion import publish
from barnabas_broker.zk.operations import Delete
from barnabas_broker.zk.znodes import LeaderAndIsr
from barnabas_kafka.ids import TopicPartition

_log = logging.getLogger(__name__)


def broker_change(context: ControllerContext) -> Transition[None]:
    """Detect started and stopped brokers, and elect leaders for partitions of stopped ones."""
    brokers: Mapping[int, BrokerRegistration] = yield ReadBrokers()
    before = context.image.brokers
    if brokers == before:
        return
    log_difference(before, brokers)
    again = {number for number, each in brokers.items() if is_other(before.get(number), each)}
    context.stopping = frozenset((context.stopping & brokers.keys()) - again)
    bounced = {
        number
        for number in (again & before.keys()) - {context.broker_id}
        if before[number].epoch != brokers[number].epoch
    }
    came = brokers.keys() - before.keys()
    live = context.live(brokers, bounced | (came & unclean_shutdowns(brokers)))
    # Records of started and stopped brokers are dropped; started ones are queried.
    gone = (before.keys() - brokers.keys()) | again
    offline = without_brokers(context.offline, gone)
    for ends in context.ends.values():
        ends.forget(gone)
    yield from settle_changes(
        context,
        settled(context, live, context.offline | offline),
        live,
        brokers=brokers,
        offline=offline,
    )


def log_dir_event(context: ControllerContext) -> Transition[None]:
    """Ask brokers about all their replicas that say their log directories have changed."""
    found: tuple[set[int], list[str]] = yield ReadLogDirEvents()
    brokers, paths = found[0] & context.image.brokers.keys(), found[1]
    if brokers:
        _log.info("Requesting log directory states: brokers=%s", sorted(brokers))
        context.asked |= {broker: context.asked.get(broker, 0) + 1 for broker in brokers}
        yield from publish(context, context.image.with_changes())
    if paths:
        yield Write([Delete(path) for path in paths])


def storage_answered(
    context: ControllerContext, broker: int, answered: Answered
) -> Transition[None]:
    """A broker has said which of its replicas cannot be used, and which can.

    Leaders among those that cannot are replaced, where others are in sync, and they leave the
    in-sync replicas.
    """
    offline = after_answers(context.offline, broker, answered, context.image)
    if broker not in context.image.brokers or not offline:
        return
    lost = [tp for tp, brokers in offline.items() if broker in brokers]
    _log.warning(
        "Replicas offline: broker=%d offline=%d online_again=%d",
        broker, len(lost), len(offline) - len(lost),
    )  # fmt: skip
    live = context.live()
    changes = settled(context, live, context.offline | offline, offline)
    yield from settle_changes(context, changes, live, offline=offline)


def ends_answered(
    context: ControllerContext,
    broker: int,
    broker_epoch: int,
    answered: Mapping[TopicPartition, EndsAnswer],
) -> Transition[None]:
    """A registered broker has reported its log ends; elect the replica with the longest log."""
    registered = context.image.brokers.get(broker)
    if registered is None or registered.epoch != broker_epoch:
        return
    changes: dict[TopicPartition, LeaderAndIsr] = {}
    logged: defaultdict[tuple[int, str], dict[TopicPartition, Ends]] = defaultdict(dict)
    for tp, answer in answered.items():
        state = context.image.partition(tp)
        if state is None or state.leader_epoch != answer.leader_epoch or not context.waits(tp):
            continue
        ends = context.ends[tp] = context.ends_in(tp, state.leader_epoch)
        ends.add_log_end(broker, answer.log_end)
        elected = ends.elect(
            state.replicas,
            stored(state),
            live=context.eligible_for(tp),
            controller_epoch=context.epoch,
        )
        if elected is not None:
            changes[tp] = elected
            outcome = f"broker {elected.leader} leads"
        else:
            awaited = ends.missing(state.replicas) or {ends.longest(state.replicas)}
            outcome = f"waiting for brokers {sorted(awaited)}"
        logged[state.isr[0], outcome][tp] = ends
    log_careful_elections(logged)
    if logged:  # Also without a leader: a broker that answered is not queried again.
        refused = yield from change(context, changes)
        for tp in changes.keys() - refused.keys():
            context.ends.pop(tp, None)


def unclean_elections(context: ControllerContext) -> Transition[None]:
    """After a change of settings: elect leaders for leaderless partitions, where it is allowed now.

    Kafka's UncleanLeaderElectionEnable and TopicUncleanLeaderElectionEnable.
    """
    live = context.live()
    changes = settled(context, live, context.offline, context.leaderless())
    if changes:
        yield from settle_changes(context, changes, live)
        led = [tp for tp in changes if tp not in context.unsettled]
        _log.warning("Unclean leader election completed: %s", shown(led))
