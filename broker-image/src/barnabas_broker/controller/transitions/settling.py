"""Elections without a request: compute each partition's state from the live brokers.

An election that the store refuses, because the state has changed, is held again by
what the store has; until then its partition is in `ControllerContext.unsettled`.
"""

from collections.abc import Collection, Iterator, Mapping

from barnabas_broker.cluster.image import BrokerRegistration, PartitionState
from barnabas_broker.controller.commands import Transition
from barnabas_broker.controller.context import ControllerContext
from barnabas_broker.controller.elections import LiveBrokers, settle
from barnabas_broker.controller.isr_changes import stored
from barnabas_broker.controller.offline_replicas import Offline
from barnabas_broker.controller.state_changes import Changes
from barnabas_broker.controller.transitions.partition_changes import change, refresh
from barnabas_broker.zk.znodes import LeaderAndIsr
from barnabas_kafka.ids import TopicPartition


def settled(
    context: ControllerContext,
    live: LiveBrokers,
    offline: Offline,
    among: Collection[TopicPartition] | None = None,
) -> dict[TopicPartition, LeaderAndIsr]:
    """What must become of partitions, of those given or of all."""
    changes = {}
    uncleanly: dict[str, bool] = {}
    for tp, state in _in_question(context, live, offline, among):
        there = live.without(offline.get(tp, ()))
        if tp.topic not in uncleanly and state.leader not in there.steady:
            config = context.image.topics[tp.topic].config
            uncleanly[tp.topic] = context.settings.elects_uncleanly(config)
        after = settle(
            state.replicas,
            stored(state),
            there,
            unclean=uncleanly.get(tp.topic, False),
            controller_epoch=context.epoch,
        )
        if after is not None:
            changes[tp] = after
    return changes


def _in_question(
    context: ControllerContext,
    live: LiveBrokers,
    offline: Offline,
    among: Collection[TopicPartition] | None,
) -> Iterator[tuple[TopicPartition, PartitionState]]:
    """The partitions that `settle` could change: not those whose ISR was there all the time.

    Of thousands of partitions few are in question when a broker comes or goes, and finding that out
    takes less than an election.
    """
    steady = live.steady
    topics = context.image.topics
    if among is not None:
        states = ((tp, topics[tp.topic].partitions[tp.partition]) for tp in among)
        yield from ((tp, state) for tp, state in states if state.leader_epoch >= 0)
        return
    for name, topic in topics.items():
        for number, state in enumerate(topic.partitions):
            if state.leader_epoch < 0:
                continue
            in_order = state.leader in state.isr and steady.issuperset(state.isr)
            if in_order and not offline:
                continue
            tp = TopicPartition(name, number)
            if not in_order or offline.get(tp):
                yield tp, state


def settle_changes(
    context: ControllerContext,
    changes: Changes,
    live: LiveBrokers,
    *,
    brokers: Mapping[int, BrokerRegistration] | None = None,
    offline: Offline | None = None,
) -> Transition[None]:
    """`change`; refused partitions are retried later, with the brokers that restarted."""
    restarted = frozenset(live.restarted)
    refused = yield from change(context, changes, brokers=brokers, offline=offline)
    for tp in refused:
        context.unsettled[tp] = context.unsettled.get(tp, frozenset()) | restarted
    if refused:
        yield from settle_refused(context)


def settle_refused(context: ControllerContext) -> Transition[None]:
    """Settle the partitions again whose changes were refused, by what the store has now."""
    known = {tp: it for tp, it in context.unsettled.items() if context.image.partition(tp)}
    yield from refresh(context, known)
    changes: dict[TopicPartition, LeaderAndIsr] = {}
    for tp, restarted in known.items():
        changes |= settled(context, context.live(restarted=restarted), context.offline, [tp])
    refused = yield from change(context, changes)
    context.unsettled = {tp: it for tp, it in known.items() if tp in refused}
