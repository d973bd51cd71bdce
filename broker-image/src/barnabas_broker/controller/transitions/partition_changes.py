"""What most transitions are made of: read states again, write changes of states, publish them.

The order is the same everywhere: first the store, by the version of each state that the decision
went by and the controller's epoch, then the image, then brokers. So no broker receives what another
controller could undo.
"""

from collections.abc import Iterable, Mapping
from dataclasses import replace

from barnabas_broker.cluster.image import BrokerRegistration, PartitionState
from barnabas_broker.controller.commands import Transition, read_states, write_each
from barnabas_broker.controller.context import ControllerContext
from barnabas_broker.controller.leaderless import log_leaderless, lost
from barnabas_broker.controller.offline_replicas import Offline
from barnabas_broker.controller.state_changes import (
    Changes,
    Placed,
    Refused,
    by_partition,
    changed_states,
    write_groups,
)
from barnabas_broker.controller.stored import StoredState
from barnabas_broker.controller.transitions.topic_deletion import publish
from barnabas_broker.invariants import violated
from barnabas_kafka.ids import TopicPartition


def refresh(
    context: ControllerContext, partitions: Iterable[TopicPartition], *, restored: bool = False
) -> Transition[None]:
    """Read states again, which their leaders may have written themselves.

    Before decisions that a request waits for: they would be refused by the store otherwise. With
    `restored` also states of an older version count: a znode was deleted and created
    again, so that its version began again. That is for after a refusal, and not for reads which a
    lagging member of an ensemble may answer.
    """
    known = [tp for tp in partitions if context.image.partition(tp) is not None]
    if not known:
        return
    found = yield from read_states(known)
    changed = {}
    for tp, loaded in found.items():
        state = context.image.partition(tp)
        if state is not None and loaded is not None:
            taken = _taken(state, loaded, restored=restored)
            if taken is not state:
                changed[tp] = taken
    if changed:
        yield from publish(context, context.image.with_partitions(changed))


def _taken(known: PartitionState, loaded: StoredState, *, restored: bool) -> PartitionState:
    """What is known of a partition after its state was read.

    Of one with an earlier leader epoch only the version is taken.
    """
    rewound = loaded.version < known.partition_epoch
    if loaded.version == known.partition_epoch or (rewound and not restored):
        return known
    if rewound and loaded.state.leader_epoch < known.leader_epoch:
        return replace(known, partition_epoch=loaded.version)
    return replace(
        known,
        leader=loaded.state.leader,
        leader_epoch=loaded.state.leader_epoch,
        isr=loaded.state.isr,
        controller_epoch=loaded.state.controller_epoch,
        recovering=loaded.state.recovering,
        partition_epoch=loaded.version,
    )


def change(
    context: ControllerContext,
    changes: Changes,
    *,
    placed: Placed | None = None,
    brokers: Mapping[int, BrokerRegistration] | None = None,
    offline: Offline | None = None,
) -> Transition[Refused]:
    """Write states of partitions, and publish them; `placed` are those with other replicas.

    `offline` are partitions of which other replicas than before cannot be used. Returns the
    partitions that the store refused: they are read again, and stay as they were otherwise.
    KafkaError as for `WriteEach`, and then nothing has changed here.
    """
    placed, offline = placed or {}, offline or {}
    by_group = yield from write_each(write_groups(context.image, changes, placed))
    refused = by_partition(by_group, changes)
    made = {tp: state for tp, state in changes.items() if tp not in refused}
    # A topic created again in the store may have fewer partitions than were noted.
    there = {tp: it for tp, it in offline.items() if context.image.partition(tp) is not None}
    states = changed_states(
        context.image, made, {tp: it for tp, it in placed.items() if tp in made}, there
    )
    for tp, brokers_there in offline.items():
        if brokers_there:
            context.offline[tp] = brokers_there
        else:
            context.offline.pop(tp, None)
    former = context.image
    yield from publish(context, former.with_partitions(states, brokers=brokers))
    log_leaderless(lost(made, former, context.image))
    if refused:
        yield from refresh(context, refused, restored=True)
    assert made.keys().isdisjoint(refused), violated("a change is made or refused")
    return refused
