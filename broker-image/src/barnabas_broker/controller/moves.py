"""Moves of partitions and of their leaders that somebody asks for, or that keep brokers in balance.

They are asked for in the protocol, or by tools up to 2.8 in znodes of /admin, which stay until it
is done. An assignment and the state that goes with it are written in one transaction.
"""

import logging
from collections.abc import Iterable, Mapping, Sequence
from enum import IntEnum

from barnabas_broker.cluster.failures import refusal
from barnabas_broker.cluster.image import MetadataImage, PartitionState
from barnabas_broker.controller.active_controller import ActiveController
from barnabas_broker.controller.elections import elect_offline, elect_preferred
from barnabas_broker.controller.isr_changes import stored
from barnabas_broker.controller.metadata_store import MetadataStore
from barnabas_broker.controller.reassignment import (
    advance,
    assignment_of,
    in_progress,
    origin,
    reassigned,
    target,
)
from barnabas_broker.controller.state_changes import Refused
from barnabas_broker.controller.zookeeper_changes import ZnodeChanges
from barnabas_broker.zk.store import CoordinationStore, Delete, SetData, Watch
from barnabas_broker.zk.znodes import (
    LeaderAndIsr,
    MalformedZnodeError,
    PreferredElectionZnode,
    ReassignPartitionsZnode,
    ReplicaAssignment,
)
from barnabas_kafka.errors import ErrorCode, KafkaError
from barnabas_kafka.ids import TopicPartition
from barnabas_zookeeper.errors import NoNodeError

_log = logging.getLogger(__name__)

Wanted = Mapping[TopicPartition, Sequence[int] | None]
"""Replicas by partition; None ends the move that is under way."""

Answers = dict[TopicPartition, KafkaError | None]


class ElectionType(IntEnum):
    """What ElectLeaders asks for."""

    PREFERRED = 0
    UNCLEAN = 1


class Moves:
    """Moves partitions and leaders for the controller, which must reign when it is asked."""

    def __init__(self, metadata: MetadataStore, active: ActiveController) -> None:
        self._metadata = metadata
        self._active = active

    @property
    def _image(self) -> MetadataImage:
        return self._metadata.image

    @property
    def _store(self) -> CoordinationStore:
        return self._metadata.store

    # --- leaders

    def elect(
        self, kind: ElectionType, partitions: Iterable[TopicPartition] | None, *, now_ms: int
    ) -> Answers:
        """Elect leaders of the partitions, or of all; why not, for each where it is not done.

        Of all, only those are answered for that an election would change.
        """
        wanted = self._active.partitions() if partitions is None else list(partitions)
        answers: Answers = {}
        changes: dict[TopicPartition, LeaderAndIsr] = {}
        try:
            self._active.refresh(wanted, now_ms=now_ms)
        except KafkaError as error:
            return dict.fromkeys(wanted, error)
        for tp in wanted:
            try:
                elected = self._elected(kind, tp)
            except Exception as error:  # The boundary between one partition and the others.
                elected = refusal(error, "Leader election", tp)
            if isinstance(elected, LeaderAndIsr):
                changes[tp] = elected
                answers[tp] = None
            elif partitions is not None or elected.code is not ErrorCode.ELECTION_NOT_NEEDED:
                answers[tp] = elected
        if changes:
            try:
                answers |= self._active.change(changes, now_ms=now_ms)
            except KafkaError as error:
                answers |= dict.fromkeys(changes, error)
        return answers

    def _elected(self, kind: ElectionType, tp: TopicPartition) -> LeaderAndIsr | KafkaError:
        if tp.topic in self._active.deleting:
            return KafkaError(ErrorCode.INVALID_TOPIC_EXCEPTION, "The topic is being deleted")
        state = self._image.partition(tp)
        if state is None or state.leader_epoch < 0:
            return KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "The partition does not exist.")
        epoch = self._metadata.controller_epoch
        if kind is ElectionType.PREFERRED:
            if state.leader == state.replicas[0]:
                return KafkaError(ErrorCode.ELECTION_NOT_NEEDED)
            elected = elect_preferred(
                state.replicas,
                stored(state),
                live=self._active.electable_for(tp),
                controller_epoch=epoch,
            )
            missing = ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE
        else:
            if state.leader in self._image.brokers:
                return KafkaError(ErrorCode.ELECTION_NOT_NEEDED)
            elected = elect_offline(
                state.replicas,
                stored(state),
                live=self._active.eligible_for(tp),
                unclean=True,
                controller_epoch=epoch,
            )
            missing = ErrorCode.ELIGIBLE_LEADERS_NOT_AVAILABLE
        if elected is None:
            return KafkaError(missing, f"Failed to elect leader for partition {tp}")
        return elected

    def balance(self, imbalance_percentage: int, *, now_ms: int) -> int:
        """Hand leadership back to brokers that lead too little of what they should; how often.

        A broker leads too little when more of the partitions that prefer it than that share are
        led by others.
        """
        by_broker: dict[int, list[TopicPartition]] = {}
        for tp in self._active.partitions():
            state = self._image.partition(tp)
            if state is not None and state.leader_epoch >= 0:
                by_broker.setdefault(state.replicas[0], []).append(tp)
        changes: dict[TopicPartition, LeaderAndIsr] = {}
        for preferring in by_broker.values():
            elected = {tp: self._elected(ElectionType.PREFERRED, tp) for tp in preferring}
            elsewhere = [
                tp
                for tp, outcome in elected.items()
                if isinstance(outcome, LeaderAndIsr)
                or outcome.code is not ErrorCode.ELECTION_NOT_NEEDED
            ]
            if len(elsewhere) * 100 > imbalance_percentage * len(preferring):
                changes |= {
                    tp: outcome
                    for tp, outcome in elected.items()
                    if isinstance(outcome, LeaderAndIsr)
                }
        if changes:
            refused = self._active.change(changes, now_ms=now_ms)
            done = len(changes) - len(refused)
            _log.info("Preferred leader election completed: partitions=%d", done)
            return done
        return 0

    # --- replicas

    def reassign(self, wanted: Wanted, *, factor_may_change: bool = True, now_ms: int) -> Answers:
        """Begin moves, or end them; why not, for each partition where it is not done."""
        answers: Answers = {}
        planned: dict[TopicPartition, ReplicaAssignment] = {}
        for tp, replicas in wanted.items():
            try:
                planned[tp] = self._planned(tp, replicas, factor_may_change)
                answers[tp] = None
            except Exception as error:  # The boundary between one partition and the others.
                answers[tp] = refusal(error, "Reassignment", tp)
        try:
            answers |= self._advance(planned, now_ms=now_ms)
        except KafkaError as error:
            answers |= dict.fromkeys(planned, error)
        return answers

    def _planned(
        self, tp: TopicPartition, replicas: Sequence[int] | None, factor_may_change: bool
    ) -> ReplicaAssignment:
        state = self._image.partition(tp)
        if state is None or state.leader_epoch < 0:
            raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "The partition does not exist.")
        if replicas is None:
            if not in_progress(state):
                raise KafkaError(ErrorCode.NO_REASSIGNMENT_IN_PROGRESS)
            return reassigned(state, origin(state))
        if not replicas:
            raise _bad("Empty replica list specified in partition reassignment.")
        if len(set(replicas)) != len(replicas):
            raise _bad(
                f"Duplicate replica ids in partition reassignment replica list: {list(replicas)}"
            )
        if min(replicas) < 0:
            raise _bad(f"Invalid broker id in replica list: {list(replicas)}")
        planned = reassigned(state, replicas)
        if not set(planned.adding) <= self._active.eligible:
            raise _bad(
                "Replica assignment has brokers that are not alive. Replica list: "
                f"{list(planned.adding)}, live broker list: {sorted(self._active.eligible)}"
            )
        if not factor_may_change and len(replicas) != len(origin(state)):
            raise KafkaError(
                ErrorCode.INVALID_REPLICATION_FACTOR,
                f"The replication factor of {tp} is {len(origin(state))}, and must not change.",
            )
        return planned

    def under_way(
        self, partitions: Iterable[TopicPartition] | None = None
    ) -> dict[TopicPartition, PartitionState]:
        """The partitions, of those given or of all, that are being moved."""
        wanted = self._active.partitions() if partitions is None else partitions
        found = {tp: self._image.partition(tp) for tp in wanted}
        return {tp: it for tp, it in found.items() if it is not None and in_progress(it)}

    def finish(self, partitions: Iterable[TopicPartition] | None = None, *, now_ms: int) -> None:
        """End the moves, of those given or of all, whose new replicas are all in sync.

        Raises KafkaError as `MetadataStore.write`.
        """
        ready = {
            tp: assignment_of(state)
            for tp, state in self.under_way(partitions).items()
            if set(target(assignment_of(state))) <= set(state.isr)
        }
        self._advance(ready, now_ms=now_ms)
        if ready:
            self._tidy(now_ms=now_ms)

    def _advance(
        self, assignments: Mapping[TopicPartition, ReplicaAssignment], *, now_ms: int
    ) -> Refused:
        refused: Refused = {}
        changes: dict[TopicPartition, LeaderAndIsr] = {}
        placed: dict[TopicPartition, ReplicaAssignment] = {}
        self._active.refresh(assignments, now_ms=now_ms)
        for tp, assignment in assignments.items():
            state = self._image.partition(tp)
            if state is not None:
                changes[tp], placed[tp] = advance(
                    state,
                    assignment,
                    live=self._active.electable_for(tp),
                    controller_epoch=self._metadata.controller_epoch,
                )
        if changes:
            refused = self._active.change(changes, placed=placed, now_ms=now_ms)
            for tp, assignment in placed.items():
                if tp in refused:
                    continue
                done = not (assignment.adding or assignment.removing)
                _log.info("%s is %s %s", tp, "on" if done else "moving to", target(assignment))
        return refused

    # --- what old tools write

    def read_elections(self, heard: ZnodeChanges, *, now_ms: int) -> None:
        """Hold the elections that tools up to 2.8 ask for in a znode."""
        if heard.of(PreferredElectionZnode.PATH):
            self._grant_elections(now_ms)

    def read_moves(self, heard: ZnodeChanges, *, now_ms: int) -> None:
        """Begin the moves that tools up to 2.8 ask for in a znode."""
        if heard.of(ReassignPartitionsZnode.PATH):
            self._grant_moves(now_ms)

    def _grant_elections(self, now_ms: int) -> None:
        path = PreferredElectionZnode.PATH
        self._store.watch(path, Watch.DATA)
        try:
            wanted = PreferredElectionZnode.decode(self._store.get(path)[0])
        except NoNodeError:
            return
        except MalformedZnodeError as error:
            _log.error("Malformed znode: %s; deleting it", error)
            wanted = ()
        for tp, told in self.elect(ElectionType.PREFERRED, wanted, now_ms=now_ms).items():
            if told is not None and told.code is ErrorCode.UNKNOWN_SERVER_ERROR:
                raise told  # Not written, or nobody knows: the znode stays until it is tried again.
            if told is not None:
                _log.info("Preferred leader not elected: partition=%s %s", tp, told)
        self._metadata.write([Delete(path)], now_ms=now_ms)

    def _grant_moves(self, now_ms: int) -> None:
        path = ReassignPartitionsZnode.PATH
        self._store.watch(path, Watch.DATA)
        try:
            wanted = ReassignPartitionsZnode.decode(self._store.get(path)[0])
        except NoNodeError:
            return
        except MalformedZnodeError as error:
            _log.error("Malformed znode: %s; deleting it", error)
            self._metadata.write([Delete(path)], now_ms=now_ms)
            return
        states = {tp: self._image.partition(tp) for tp in wanted}
        new = {
            tp: replicas
            for tp, replicas in wanted.items()
            if not _is_moving_to(states[tp], replicas)
        }
        for tp, told in self.reassign(new, now_ms=now_ms).items():
            if told is not None and told.code is ErrorCode.UNKNOWN_SERVER_ERROR:
                raise told  # Not written, or nobody knows: the znode stays until it is tried again.
            if told is not None:
                _log.warning("Reassignment rejected: partition=%s %s", tp, told)
        self._tidy(now_ms=now_ms)

    def _tidy(self, *, now_ms: int) -> None:
        """Leave in /admin/reassign_partitions what is under way, or take it away."""
        path = ReassignPartitionsZnode.PATH
        try:
            wanted = ReassignPartitionsZnode.decode(self._store.get(path)[0])
        except (NoNodeError, MalformedZnodeError):
            return
        moving = self.under_way(wanted)
        left = {tp: replicas for tp, replicas in wanted.items() if tp in moving}
        if not left:
            self._metadata.write([Delete(path)], now_ms=now_ms)
        elif len(left) < len(wanted):
            data = ReassignPartitionsZnode.encode(left)
            self._metadata.write([SetData(path, data)], now_ms=now_ms)


def _is_moving_to(state: PartitionState | None, replicas: Sequence[int]) -> bool:
    if state is None:
        return False
    return in_progress(state) and target(assignment_of(state)) == tuple(replicas)


def _bad(message: str) -> KafkaError:
    return KafkaError(ErrorCode.INVALID_REPLICA_ASSIGNMENT, message)
