"""What a broker does while it is the controller of others: elections, deletions, shutdowns.

Everything here happens in the controller's thread, one thing after the other. Each step works out
what is to change, writes it (fenced by the controller epoch, and by the version of each state that
it goes by), and publishes the next image; `view` then says what all brokers are to be told, and
`server.peers.controller_channel_manager` tells them. Nothing here waits for another broker: what
has come of it arrives as a call of its own.
"""

import logging
from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace
from random import Random

from barnabas_broker.cluster.image import (
    NO_LEADER,
    OWN_SOFTWARE,
    BrokerRegistration,
    MetadataImage,
    PartitionState,
    TopicImage,
    ids_of,
)
from barnabas_broker.cluster.standing import leaderless
from barnabas_broker.controller import isr_changes, writes
from barnabas_broker.controller.careful_election import Ends, EndsAnswer, waits
from barnabas_broker.controller.config_manager import ConfigManager
from barnabas_broker.controller.election_context import ElectionContext, lead_topic
from barnabas_broker.controller.elections import (
    LiveBrokers,
    elect_for_shutdown,
    settle,
    without_replica,
)
from barnabas_broker.controller.isr_changes import IsrAnswer, IsrRequest, stored
from barnabas_broker.controller.isr_writes import notified, read_again
from barnabas_broker.controller.leaderless import lost, shown, tell_leaderless
from barnabas_broker.controller.loading import (
    StoredTopic,
    load_brokers,
    load_topics,
    log_malformed,
)
from barnabas_broker.controller.metadata_store import Failures, MetadataStore
from barnabas_broker.controller.offline_replicas import (
    Answered,
    LogDirNotes,
    Offline,
    after_answers,
    without_brokers,
)
from barnabas_broker.controller.registrations import (
    counts_as_away,
    doubtful,
    is_other,
    log_difference,
)
from barnabas_broker.controller.startup import missing_feature
from barnabas_broker.controller.state_changes import (
    Changes,
    Placed,
    Refused,
    by_partition,
    changed_topics,
    write_groups,
)
from barnabas_broker.controller.target_state import TargetState
from barnabas_broker.controller.zookeeper_changes import ZnodeChanges
from barnabas_broker.zk.store import CoordinationStore, Create, Delete, Operation, Watch
from barnabas_broker.zk.znodes import (
    BrokerZnode,
    ConfigChangeZnode,
    DeleteTopicZnode,
    IsrChangeZnode,
    LeaderAndIsr,
    LogDirEventZnode,
    TopicZnode,
)
from barnabas_kafka.errors import ErrorCode, KafkaError
from barnabas_kafka.ids import TopicPartition

_log = logging.getLogger(__name__)


class ActiveController:
    """The controller's own state beside the image: who is stopping, and what is being deleted."""

    def __init__(
        self, metadata: MetadataStore, settings: ConfigManager, *, broker_id: int, random: Random
    ) -> None:
        self._metadata = metadata
        self._settings = settings
        self._broker_id = broker_id
        self._random = random
        self.stopping: frozenset[int] = frozenset()
        self.deleting: dict[str, TopicImage] = {}
        self._unconfirmed: dict[str, set[int]] = {}
        self._notes = LogDirNotes(metadata)
        self._offline: dict[TopicPartition, frozenset[int]] = {}
        self._asked: dict[int, int] = {}
        self._ends: dict[TopicPartition, Ends] = {}
        #: partitions whose elections the store has refused, and who had restarted before them
        self.unsettled: dict[TopicPartition, frozenset[int]] = {}

    @property
    def view(self) -> TargetState:
        """What is to be true in the cluster."""
        return TargetState(
            self._image, dict(self.deleting), self.stopping, dict(self._asked), self._unheard()
        )

    @property
    def _store(self) -> CoordinationStore:
        return self._metadata.store

    @property
    def _image(self) -> MetadataImage:
        return self._metadata.image

    @property
    def _epoch(self) -> int:
        return self._metadata.controller_epoch

    def leading(
        self, *, first_epoch: int = 0, doubtful: frozenset[int] = frozenset()
    ) -> ElectionContext:
        """In whose name leaders are elected now; `first_epoch` as for `begin`."""
        registered = {id_: each.epoch for id_, each in self._image.brokers.items()}
        # Of itself a controller knows whether it has restarted, or only registered again.
        registered[self._broker_id] = first_epoch
        return ElectionContext(
            self._present(self._image.brokers),
            self._epoch,
            self._random,
            self._settings.elects_uncleanly,
            registered,
            self._offline,
            doubtful,
        )

    def _present(
        self, brokers: Mapping[int, BrokerRegistration], restarted: Collection[int] = frozenset()
    ) -> LiveBrokers:
        return LiveBrokers(
            brokers,
            self.stopping,
            restarted,
            doubtful(brokers),
            frozenset(id_ for id_, each in brokers.items() if each.software != OWN_SOFTWARE),
            self._settings.elects_carefully,
        )

    # --- the beginning

    def begin(self, *, first_epoch: int, now_ms: int) -> None:
        """Read everything, see to it that it is led, and publish it; the office is taken.

        `first_epoch` is the one with which this broker's process registered first: what was
        settled before that was led by another process. A topic that cannot be read stays as it was
        known. Raises CoordinationError, ZooKeeperError, MalformedZnodeError; KafkaError as
        `MetadataStore.write`.
        """
        self._store.watch(BrokerZnode.ROOT, Watch.CHILDREN)
        brokers = load_brokers(self._store, tell=counts_as_away)
        self.stopping = frozenset()
        self._offline = {}  # All are told everything, and answer.
        self._ends = {}
        self.unsettled = {}
        self._metadata.assume(replace(self._image, brokers=brokers))
        leading = self.leading(first_epoch=first_epoch, doubtful=doubtful(brokers))
        names = self._store.children(TopicZnode.ROOT)
        found = load_topics(self._store, names, tell=log_malformed)
        doomed = self._wished(found)
        self._metadata.write(missing_feature(self._store), now_ms=now_ms)
        lasting = {name: topic for name, topic in found.items() if name not in doomed}
        doomed_topics = {name: found[name] for name in doomed}
        found = doomed_topics | self._lead(lasting, leading, now_ms=now_ms)
        topics = {name: self._kept(topic.image) for name, topic in found.items()}
        for name in set(names).difference(topics) & self._image.topics.keys():
            if self._store.exists(TopicZnode(name).path) is not None:
                topics[name] = self._image.topics[name]
        self.deleting = {name: topics.pop(name) for name in doomed}
        self._unconfirmed = {name: topic.brokers for name, topic in self.deleting.items()}
        self._publish(
            replace(
                self._image,
                controller_id=self._broker_id,
                topics=topics,
                topic_ids=ids_of(topics.values()),
                version=self._image.version + 1,
            ),
            now_ms=now_ms,
        )
        tell_leaderless(leaderless(self._image))

    def _lead(
        self, topics: Mapping[str, StoredTopic], leading: ElectionContext, *, now_ms: int
    ) -> dict[str, StoredTopic]:
        """Have topics led, each by itself; returns them as they are afterwards.

        Of one that is refused, all partitions are settled later.
        """
        needed = {name: lead_topic(self._store, it, leading) for name, it in topics.items()}
        needed = {name: operations for name, operations in needed.items() if operations}
        refused = self._metadata.write_each(needed, now_ms=now_ms)
        found = load_topics(self._store, needed, tell=log_malformed)
        for name in refused.keys() & found.keys():
            for number, state in found[name].states.items():
                tp = TopicPartition(name, number)
                live = None if state is None else leading.present_for(tp, state)
                self.unsettled[tp] = frozenset(live.restarted if live else ())
        return {name: it for name, it in topics.items() if name not in needed} | found

    def _kept(self, topic: TopicImage) -> TopicImage:
        """The same object as before where nothing has changed, so that nobody looks at it again."""
        before = self._image.topics.get(topic.name)
        return before if before == topic else topic

    def end(self) -> None:
        """Forget it all: another broker is the controller."""
        self.stopping = frozenset()
        self.deleting = {}
        self._unconfirmed = {}
        self._offline = {}
        self._asked = {}
        self._ends = {}
        self.unsettled = {}

    def _wished(self, topics: Collection[str]) -> list[str]:
        if not self._settings.deletion_enabled:
            return []
        return [name for name in self._store.children(DeleteTopicZnode.ROOT) if name in topics]

    # --- brokers

    def read_brokers(self, heard: ZnodeChanges, *, now_ms: int) -> None:
        """Notice who came and who went, and elect leaders in place of those that went."""
        if not heard.of(BrokerZnode.ROOT):
            return
        self._store.watch(BrokerZnode.ROOT, Watch.CHILDREN)
        before, brokers = self._image.brokers, load_brokers(self._store, tell=counts_as_away)
        if brokers == before:
            return
        log_difference(before, brokers)
        again = {number for number, each in brokers.items() if is_other(before.get(number), each)}
        self.stopping = frozenset((self.stopping & brokers.keys()) - again)
        bounced = {
            number
            for number in (again & before.keys()) - {self._broker_id}
            if before[number].epoch != brokers[number].epoch
        }
        came = brokers.keys() - before.keys()
        live = self._present(brokers, bounced | (came & doubtful(brokers)))
        # Who comes or goes has nothing on record any more; who came is asked.
        gone = (before.keys() - brokers.keys()) | again
        offline = without_brokers(self._offline, gone)
        for ends in self._ends.values():
            ends.forget(gone)
        self._settle(
            self._settled(live, self._offline | offline),
            live,
            brokers=brokers,
            offline=offline,
            now_ms=now_ms,
        )

    def _settled(
        self,
        live: LiveBrokers,
        offline: Offline,
        among: Collection[TopicPartition] | None = None,
    ) -> dict[TopicPartition, LeaderAndIsr]:
        """What must become of partitions, of those given or of all."""
        changes = {}
        uncleanly: dict[str, bool] = {}
        for tp in self.partitions() if among is None else among:
            topic = self._image.topics[tp.topic]
            state = topic.partitions[tp.partition]
            if state.leader_epoch < 0:
                continue
            there = live.without(offline.get(tp, ()))
            if tp.topic not in uncleanly and state.leader not in there.steady:
                uncleanly[tp.topic] = self._settings.elects_uncleanly(topic.config)
            settled = settle(
                state.replicas,
                stored(state),
                there,
                unclean=uncleanly.get(tp.topic, False),
                controller_epoch=self._epoch,
            )
            if settled is not None:
                changes[tp] = settled
        return changes

    def elect_uncleanly(self, heard: ZnodeChanges, *, now_ms: int) -> None:
        """After a change of settings: lead what nobody leads, where that is allowed by now.

        Kafka's UncleanLeaderElectionEnable and TopicUncleanLeaderElectionEnable. Raises KafkaError
        as `MetadataStore.write`.
        """
        if not heard.of(ConfigChangeZnode.ROOT):
            return
        live = self._present(self._image.brokers)
        among = [tp for tp, _ in self._image.leaderless()]
        changes = self._settled(live, self._offline, among)
        if changes:
            self._settle(changes, live, now_ms=now_ms)
            led = [tp for tp in changes if tp not in self.unsettled]
            _log.warning("Unclean leader election completed: %s", shown(led))

    def partitions(self) -> list[TopicPartition]:
        """All there are, but for those of topics that are being deleted."""
        return [
            TopicPartition(topic.name, number)
            for topic in self._image.topics.values()
            for number in range(len(topic.partitions))
        ]

    def read_log_dir_notes(self, heard: ZnodeChanges, *, now_ms: int) -> None:
        """Ask brokers about all their replicas that say their log directories have changed.

        Raises CoordinationError, ZooKeeperError; KafkaError as `MetadataStore.write`.
        """
        if not heard.of(LogDirEventZnode.ROOT):
            return
        brokers, notes = self._notes.read()
        brokers &= self._image.brokers.keys()
        if brokers:
            _log.info("Requesting log directory states: brokers=%s", sorted(brokers))
            self._asked |= {broker: self._asked.get(broker, 0) + 1 for broker in brokers}
            self._metadata.publish(self._image.with_changes())
        self._notes.remove(notes, now_ms=now_ms)

    def storage_answered(self, broker: int, answered: Answered, *, now_ms: int) -> None:
        """A broker has said which of its replicas cannot be used, and which can.

        Leaders among those that cannot are replaced, where others are in sync, and they leave the
        in-sync replicas. Raises KafkaError as `MetadataStore.write`.
        """
        offline = after_answers(self._offline, broker, answered, self._image)
        if broker not in self._image.brokers or not offline:
            return
        lost = [tp for tp, brokers in offline.items() if broker in brokers]
        _log.warning(
            "Replicas offline: broker=%d offline=%d online_again=%d",
            broker, len(lost), len(offline) - len(lost),
        )  # fmt: skip
        live = self._present(self._image.brokers)
        self._settle(
            self._settled(live, self._offline | offline, offline),
            live,
            offline=offline,
            now_ms=now_ms,
        )

    # --- careful elections

    def waits(self, tp: TopicPartition) -> bool:
        """Whether a partition has no leader because its replicas are being asked for their ends."""
        state = self._image.partition(tp)
        if state is None or state.leader != NO_LEADER:
            return False
        return waits(state.replicas, stored(state), self._present(self._image.brokers))

    def _unheard(self) -> dict[TopicPartition, frozenset[int]]:
        live = self._present(self._image.brokers)
        if not (live.careful and live.doubtful):
            return {}
        return {
            tp: self._ends_in(tp, state.leader_epoch).missing(state.replicas)
            for tp, state in self._image.leaderless()
            if waits(state.replicas, stored(state), live)
        }

    def _ends_in(self, tp: TopicPartition, leader_epoch: int) -> Ends:
        """What was answered in this leader epoch; nothing that was said in another."""
        ends = self._ends.get(tp)
        return (
            ends if ends is not None and ends.leader_epoch == leader_epoch else Ends(leader_epoch)
        )

    def ends_answered(
        self,
        broker: int,
        broker_epoch: int,
        answered: Mapping[TopicPartition, EndsAnswer],
        *,
        now_ms: int,
    ) -> None:
        """A broker, registered so, has said how far its logs go; elect who is the longest.

        Raises KafkaError as `MetadataStore.write`.
        """
        registered = self._image.brokers.get(broker)
        if registered is None or registered.epoch != broker_epoch:
            return
        changes: dict[TopicPartition, LeaderAndIsr] = {}
        counts = False
        for tp, answer in answered.items():
            state = self._image.partition(tp)
            if state is None or state.leader_epoch != answer.leader_epoch or not self.waits(tp):
                continue
            ends = self._ends[tp] = self._ends_in(tp, state.leader_epoch)
            ends.heard(broker, answer.log_end)
            counts = True
            elected = ends.elect(
                state.replicas,
                stored(state),
                live=self.eligible_for(tp),
                controller_epoch=self._epoch,
            )
            _log.warning(
                "Leader elected after an unclean shutdown of the only in-sync replica: "
                    "partition=%s broker=%d logs end at (epoch, offset) %r; %s",
                tp, state.isr[0], ends,
                f"waiting for brokers {sorted(ends.missing(state.replicas))}"
                if elected is None
                else f"broker {elected.leader} leads",
            )  # fmt: skip
            if elected is not None:
                changes[tp] = elected
        if counts:  # Also without a leader: who has answered is asked no more.
            refused = self.change(changes, now_ms=now_ms)
            for tp in changes.keys() - refused.keys():
                self._ends.pop(tp, None)

    def shut_down(self, broker: int, broker_epoch: int, *, now_ms: int) -> list[TopicPartition]:
        """Prepare for a broker to stop; returns what it leads and nobody else can.

        Raises KafkaError: STALE_BROKER_EPOCH, BROKER_NOT_AVAILABLE, or that of a failed write.
        """
        registered = self._image.brokers.get(broker)
        if registered is None:
            raise KafkaError(ErrorCode.BROKER_NOT_AVAILABLE, f"Broker id {broker} does not exist.")
        if -1 < broker_epoch < registered.epoch:
            raise KafkaError(ErrorCode.STALE_BROKER_EPOCH)
        _log.info("Controlled shutdown started: broker=%d", broker)
        self.refresh([tp for tp, _ in self._held_by(broker)], now_ms=now_ms)
        stopping = self.stopping | {broker}
        changes: dict[TopicPartition, LeaderAndIsr] = {}
        for tp, state in self._held_by(broker):
            if state.leader == broker:
                changed = elect_for_shutdown(
                    state.replicas,
                    stored(state),
                    live=self._image.brokers.keys() - self._offline.get(tp, frozenset()),
                    stopping=stopping,
                    controller_epoch=self._epoch,
                )
            else:
                changed = without_replica(stored(state), broker, controller_epoch=self._epoch)
            if changed is not None:
                changes[tp] = changed
        self.stopping = stopping
        self.change(changes, now_ms=now_ms)
        return [tp for tp, state in self._held_by(broker) if state.leader == broker]

    def _held_by(self, broker: int) -> list[tuple[TopicPartition, PartitionState]]:
        """What lies on a broker and on others."""
        return [
            (TopicPartition(topic.name, number), state)
            for topic in self._image.topics.values()
            for number, state in enumerate(topic.partitions)
            if broker in state.replicas and len(state.replicas) > 1 and state.leader_epoch >= 0
        ]

    @property
    def eligible(self) -> frozenset[int]:
        """The brokers that may lead: alive, and not about to stop."""
        return frozenset(self._image.brokers) - self.stopping

    def eligible_for(self, tp: TopicPartition) -> frozenset[int]:
        """Those of them whose replica of a partition, if they have one, can be used."""
        return self.eligible - self._offline.get(tp, frozenset())

    def electable_for(self, tp: TopicPartition) -> frozenset[int]:
        """Those of them that may be elected in order: nobody while replicas are asked."""
        return frozenset() if self.waits(tp) else self.eligible_for(tp)

    # --- partitions

    def refresh(
        self, partitions: Iterable[TopicPartition], *, restored: bool = False, now_ms: int
    ) -> None:
        """Read states again, which their leaders may have written themselves.

        Before decisions that somebody waits for: they would be refused by the store otherwise.
        After a refusal also what was `restored`, as for `read_again`. Raises KafkaError
        as `MetadataStore.write`.
        """
        with self._metadata.reading():
            self._metadata.await_lost_writes(now_ms=now_ms)
            changed = read_again(self._store, self._image, partitions, restored=restored)
        if changed:
            self._publish(self._image.with_changes(put=tuple(changed)), now_ms=now_ms)

    def read_in_sync(self, heard: ZnodeChanges, *, now_ms: int) -> set[TopicPartition]:
        """Read what leaders say they have written, and take their notifications away.

        All partitions where a write of this controller was refused: it may have been for that.
        """
        partitions: set[TopicPartition] = set()
        names: list[str] = []
        if heard.of(IsrChangeZnode.ROOT):
            self._store.watch(IsrChangeZnode.ROOT, Watch.CHILDREN)
            names = self._store.children(IsrChangeZnode.ROOT)
        paths = [f"{IsrChangeZnode.ROOT}/{name}" for name in names]
        if paths:
            partitions = notified(self._store, paths)
        if heard.paths is None and self._metadata.stale:
            partitions.update(
                TopicPartition(topic.name, number)
                for topic in self._image.topics.values()
                for number in range(len(topic.partitions))
            )
        self.refresh(partitions, now_ms=now_ms)
        if paths:
            self._metadata.write([Delete(path) for path in paths], now_ms=now_ms)
        return partitions

    def alter_partitions(self, request: IsrRequest, *, now_ms: int) -> list[IsrAnswer]:
        """Change who is in sync, as leaders ask; one answer for each change, in order.

        A write that the store refuses, or whose answer is lost, says nothing about the changes: by
        what the store has now they are judged again, so that a change which was made is granted,
        and tried once more. Raises KafkaError STALE_BROKER_EPOCH for a broker that is not
        registered so, NOT_CONTROLLER, and UNKNOWN_SERVER_ERROR where it is still not known whether
        changes were made. Leaders retry after that error. After INVALID_UPDATE_VERSION, Apache's
        leaders do not: they wait for a LeaderAndIsr request, which may never be sent.
        """
        registered = self._image.brokers.get(request.broker_id)
        if registered is None or registered.epoch != request.broker_epoch:
            raise KafkaError(ErrorCode.STALE_BROKER_EPOCH)
        named = isr_changes.partitions_of(request, self._image)
        if self._metadata.stale:
            self.refresh(named, now_ms=now_ms)
        try:
            answers = self._alter(request, now_ms=now_ms)
        except KafkaError as error:
            if error.code is not ErrorCode.UNKNOWN_SERVER_ERROR:
                raise
        else:
            if all(each.error is not ErrorCode.UNKNOWN_SERVER_ERROR for each in answers):
                return answers
        self.refresh(named, now_ms=now_ms)
        return self._alter(request, now_ms=now_ms)

    def _alter(self, request: IsrRequest, *, now_ms: int) -> list[IsrAnswer]:
        """Judge the changes by the image, and make those that are to be made.

        A change that the store refuses is answered by UNKNOWN_SERVER_ERROR, the others as they are.
        """
        judged = isr_changes.judge_all(request, self._image, self.eligible_for)
        changes = {
            each.tp: isr_changes.granted(
                each.change, broker_id=request.broker_id, controller_epoch=self._epoch
            )
            for each in judged
            if each.tp is not None and each.error is None
        }
        refused = self.change(changes, now_ms=now_ms) if changes else {}
        answers = []
        for each in judged:
            outcome = each.error or ErrorCode.NONE
            if each.tp in refused and each.error is None:
                outcome = ErrorCode.UNKNOWN_SERVER_ERROR
            state = None if each.tp is None else self._image.partition(each.tp)
            answers.append(IsrAnswer(outcome, state if outcome is ErrorCode.NONE else None))
        return answers

    def change(
        self,
        changes: Changes,
        *,
        placed: Placed | None = None,
        brokers: Mapping[int, BrokerRegistration] | None = None,
        offline: Offline | None = None,
        now_ms: int,
    ) -> Refused:
        """Write states of partitions, and publish them; `placed` are those with other replicas.

        `offline` are partitions of which other replicas than before cannot be used. Returns the
        partitions that the store refused: they are read again, and stay as they were otherwise.
        Raises KafkaError as `MetadataStore.write`, and then nothing has changed here.
        """
        placed = placed or {}
        groups = write_groups(self._image, changes, placed)
        refused = by_partition(self._metadata.write_each(groups, now_ms=now_ms), changes)
        made = {tp: state for tp, state in changes.items() if tp not in refused}
        put = changed_topics(self._image, made, placed, offline or {})
        if offline:
            merged = {**self._offline, **offline}
            self._offline = {tp: each for tp, each in merged.items() if each}
        former = self._image
        self._publish(self._image.with_changes(put=put, brokers=brokers), now_ms=now_ms)
        tell_leaderless(lost(made, former, self._image))
        if refused:
            self.refresh(refused, restored=True, now_ms=now_ms)
        return refused

    def _settle(
        self,
        changes: Changes,
        live: LiveBrokers,
        *,
        brokers: Mapping[int, BrokerRegistration] | None = None,
        offline: Offline | None = None,
        now_ms: int,
    ) -> None:
        """`change`, where those that are refused are settled later: who restarted is kept."""
        restarted = frozenset(live.restarted)
        refused = self.change(changes, brokers=brokers, offline=offline, now_ms=now_ms)
        for tp in refused:
            self.unsettled[tp] = self.unsettled.get(tp, frozenset()) | restarted
        if refused:
            self.settle_refused(now_ms=now_ms)

    def settle_refused(self, *, now_ms: int) -> None:
        """Settle the partitions again whose changes were refused, by what the store has now.

        Raises KafkaError as `MetadataStore.write`.
        """
        known = {tp: it for tp, it in self.unsettled.items() if self._image.partition(tp)}
        self.refresh(known, now_ms=now_ms)
        changes: dict[TopicPartition, LeaderAndIsr] = {}
        for tp, restarted in known.items():
            live = self._present(self._image.brokers, restarted)
            changes |= self._settled(live, self._offline, [tp])
        refused = self.change(changes, now_ms=now_ms)
        self.unsettled = {tp: it for tp, it in known.items() if tp in refused}

    # --- deletions

    def delete(self, names: Iterable[str], *, now_ms: int) -> Failures:
        """Begin to delete topics of the image; when this returns they are out of it.

        Their znodes stay until every broker that holds one of their replicas has deleted it. A
        broker that is away is waited for. Returns the topics that cannot be marked as deleted.
        Raises KafkaError as `MetadataStore.write`.
        """
        topics = {name: self._image.topics[name] for name in names}
        with self._metadata.reading():
            marks = {name: DeleteTopicZnode(name).path for name in topics}
            found = zip(marks.items(), self._store.get_many([*marks.values()]), strict=True)
            missing = {name: [Create(path)] for (name, path), there in found if there is None}
        refused = self._metadata.write_each(missing, now_ms=now_ms)
        topics = {name: topic for name, topic in topics.items() if name not in refused}
        self.deleting |= topics
        self._unconfirmed |= {name: topic.brokers for name, topic in topics.items()}
        self._offline = {tp: each for tp, each in self._offline.items() if tp.topic not in topics}
        self._publish(self._image.with_changes(remove=frozenset(topics)), now_ms=now_ms)
        return refused

    def confirmed(
        self, broker: int, view: TargetState, refused: Collection[str], *, now_ms: int
    ) -> None:
        """A broker has obeyed a view, but for the deletion of the topics `refused`."""
        done = []
        for name, topic in view.deleting.items():
            waited_for = self._unconfirmed.get(name)
            if waited_for is None or self.deleting.get(name) != topic or name in refused:
                continue
            waited_for.discard(broker)
            if not waited_for:
                done.append(name)
        if done:
            self._finish(done, now_ms=now_ms)

    def finish_deletions(self, *, now_ms: int) -> None:
        """Finish deletions that every broker has confirmed, and whose znodes could not be removed.

        Raises KafkaError as `MetadataStore.write`.
        """
        done = [name for name, waited_for in self._unconfirmed.items() if not waited_for]
        if done:
            self._finish(done, now_ms=now_ms)

    def _finish(self, names: Collection[str], *, now_ms: int) -> None:
        groups: dict[str, list[Operation]] = {}
        with self._metadata.reading():
            for name in names:
                mark = Delete(DeleteTopicZnode(name).path)
                groups[name] = [*writes.delete_topic(self._store, name), mark]
        refused = self._metadata.write_each(groups, now_ms=now_ms)
        for name in groups.keys() - refused.keys():
            del self.deleting[name]
            del self._unconfirmed[name]
            _log.info("Topic deleted on all brokers: topic=%s", name)
        # For the view: whoever is told from now on must not delete a topic made anew.
        self._metadata.publish(self._image.with_changes())

    def _publish(self, image: MetadataImage, *, now_ms: int) -> None:
        view = replace(self.view, image=image)
        failures = self._metadata.publish(image)
        for name, error in failures.items():
            _log.error("topic %s: %s", name, error.message)
        if self.deleting:
            self.confirmed(self._broker_id, view, failures.keys(), now_ms=now_ms)
