"""A broker: the shell around the real replication cores, in virtual time.

What a shell does in the product (connections, timers, the controller's requests) is done here by
events; every decision is the product's own: `replica.isr` and `replica.epoch_checks` for a leader,
`replica.follower` for a follower (`simulator.replica_fetcher`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from barnabas_broker.cluster.image import PartitionState
from barnabas_broker.replica import epoch_checks
from barnabas_broker.replica.follower import (
    AskEpochEnd,
    AskLogEnds,
    AskRecords,
    EpochEnd,
    Fetched,
    LogEnds,
)
from barnabas_broker.replica.isr import InSync, InSyncRules, IsrChange
from barnabas_broker.zk.znodes import LeaderAndIsr
from barnabas_kafka.errors import ErrorCode, KafkaError
from simulator.controller import Controller
from simulator.network import Reply
from simulator.replica_fetcher import REQUEST_TIMEOUT_MS, ReplicaFetcher
from simulator.zookeeper import EXPIRED, LOST, Snapshot

if TYPE_CHECKING:
    from simulator.world import World

FETCH_WAIT_MS = 500


class Broker:
    """One broker, through all its lives."""

    def __init__(self, world: World, number: int) -> None:
        self.world = world
        self.number = number
        self.log = world.new_log(number)
        self.life = 0
        self.up = False
        self.power_lost = False
        self.clean = True
        #: whether the log has its end, or has caught up with a leader's since
        self.tail_known = True
        # The clock of the machine: what it shows, and how fast it goes.
        chance = world.events.chance
        self._clock_offset = chance.randint(-10_000, 10_000)
        self._clock_rate = chance.choice((0.95, 1.0, 1.0, 1.05))
        self.fetcher = ReplicaFetcher(self)
        self._forget()

    def _forget(self) -> None:
        options = self.world.options
        rules = InSyncRules(
            lag_max_ms=options.lag_max_ms,
            min_in_sync=options.min_in_sync,
            hold_below_min=options.strict.hold_below_min,
            flush_on_shrink=options.strict.flush_on_shrink,
        )
        self.leading = InSync(self.number, rules)
        self.fetcher.reset()
        self.session: int | None = None
        self.broker_epoch = -1
        self.registered = False
        self.reported_trusted = False
        self.seen_zxid = -1
        self.alive: frozenset[int] = frozenset()
        self.controller_epoch = 0
        self.controller: Controller | None = None
        self.controller_id = -1
        self._flush_planned = False
        self._connecting = False
        self._reading = False
        #: (last offset, leader epoch, value, reply)
        self._waiting: list[tuple[int, int, str, Reply]] = []
        self._parked: list[tuple[AskRecords, Reply]] = []

    def __repr__(self) -> str:
        return f"broker {self.number}"

    @property
    def now_ms(self) -> int:
        """The time as this machine has it."""
        return int(self.world.events.now_ms * self._clock_rate) + self._clock_offset

    # --- life --------------------------------------------------------------------------------

    def start(self) -> None:
        """A process starts."""
        if self.up:
            return
        world = self.world
        self.up = True
        self.life += 1
        self.log.restart(world.events.chance, power_lost=self.power_lost)
        self.power_lost = False
        self._forget()
        world.network.begin(self.number, self.life)
        world.events.note(f"{self} starts with {self.log.log_end_offset}, clean {self.clean}")
        if not self.clean:
            self.tail_known = False
        self.later(world.events.chance.randint(0, 300), "tick", self._tick)
        self.later(world.options.lag_max_ms // 2, "shrink", self._look_for_late)
        self._connect()

    def die(self) -> None:
        """The process is gone; nothing more is written."""
        if not self.up:
            return
        self.up = False
        self.clean = False
        self.world.network.end(self.number)
        self.world.events.note(f"{self} dies")

    def stop(self, away_ms: int) -> None:
        """Stop in good order, and start again later.

        The controller is asked to move leadership away; then the log is closed.
        """
        controller = self.world.brokers.get(self.controller_id)
        if controller is not None:
            epoch = self.broker_epoch
            self.send(controller.number, "stop", controller.on_stopping, self.number, epoch)
        self.later(300, "close", self._close, away_ms)

    def _close(self, away_ms: int) -> None:
        self.log.shut_down()
        zookeeper = self.world.zookeeper
        for session in zookeeper.sessions_of(self.number):
            zookeeper.expire(session)
        self.die()
        self.clean = self.tail_known
        self.world.events.after(away_ms, "restart", self.start)

    def later(self, delay_ms: int, label: str, act: Callable[..., None], *args: Any) -> None:
        """A timer of this process."""
        self.world.network.later(self.number, self.life, delay_ms, label, act, *args)

    def send(self, target: int, label: str, act: Callable[..., None], *args: Any) -> None:
        """A message to another broker or a client."""
        self.world.network.send(self.number, target, label, act, *args)

    def replier(self, target: int, act: Callable[..., None], *first: Any) -> Reply:
        """A way for another broker to answer this one."""
        network = self.world.network

        def reply(*args: Any, source: int = 0) -> None:
            network.send(source or target, target, "answer", act, *first, *args)

        return reply

    # --- ZooKeeper ---------------------------------------------------------------------------

    def ask(self, request: Callable[[], Any], answered: Callable[[Any], None]) -> None:
        """Ask ZooKeeper in this session; the answer may be LOST or EXPIRED."""
        self.world.zookeeper.ask(self.number, self.life, request, answered, session=self.session)

    def _tick(self) -> None:
        self.later(self.world.options.session_ms // 4, "tick", self._tick)
        if self.world.events.chance.random() < 0.1:
            self.log.checkpoint()
        if self.session is None:
            self._connect()
            return
        session, zookeeper = self.session, self.world.zookeeper
        self.ask(lambda: zookeeper.zxid, self._heartbeat)
        says = self.world.options.strict.unclean_registration
        if says and self.registered and self.tail_known and not self.reported_trusted:
            self.ask(lambda: zookeeper.trust(self.number, session), self._trusted)

    def _trusted(self, answer: Any) -> None:
        """The registration says no more that the log may lack its end, or nobody knows."""
        self.reported_trusted = answer is True

    def _heartbeat(self, zxid: Any) -> None:
        if zxid == EXPIRED:
            self.lose_session()
        elif zxid != LOST and (zxid != self.seen_zxid or not self.registered):
            self.look()

    def _connect(self) -> None:
        if self._connecting:
            return
        self._connecting = True
        zookeeper = self.world.zookeeper
        zookeeper.ask(
            self.number, self.life, lambda: zookeeper.connect(self.number), self._connected
        )

    def _connected(self, session: Any) -> None:
        self._connecting = False
        if session == LOST or self.session is not None:
            return
        self.session = session
        self._register()

    def _register(self) -> None:
        session = self.session
        if session is None:
            return
        clean, zookeeper = self.tail_known, self.world.zookeeper
        self.ask(lambda: zookeeper.register(self.number, session, clean=clean), self._registered)

    def _registered(self, epoch: Any) -> None:
        if epoch == EXPIRED:
            self.lose_session()
        elif epoch == LOST or epoch is None:
            # The znode of an earlier life is still there; it goes with its session.
            self.later(200, "register", self._register)
        else:
            self.broker_epoch = epoch
            self.registered = True
            self.look()

    def lose_session(self) -> None:
        """The session has expired: resign at once, and come back as a new registration."""
        self.session = None
        self.registered = self.reported_trusted = False
        if self.controller is not None:
            self.controller.resign()
        self._connect()

    def look(self) -> None:
        """Something changed in ZooKeeper: read what it is."""
        if not self.up or self.session is None or self._reading:
            return
        self._reading = True
        self.ask(self.world.zookeeper.read, self._seen)

    def _seen(self, seen: Any) -> None:
        self._reading = False
        if seen == EXPIRED:
            self.lose_session()
        if not isinstance(seen, Snapshot) or self.session is None:
            return
        self.seen_zxid = seen.zxid
        self.alive = frozenset(seen.brokers)
        self.controller_id = seen.controller
        if self.controller is not None:
            self.controller.look()
        elif seen.controller in (-1, self.number) and self.registered:
            # Where it is its own number, it won before, and the answer was lost.
            session, zookeeper = self.session, self.world.zookeeper
            self.ask(lambda: zookeeper.contest(self.number, session), self._contested)

    def _contested(self, epoch: Any) -> None:
        if epoch == EXPIRED:
            self.lose_session()
        elif epoch == LOST:
            self.seen_zxid = -1  # The next heartbeat looks who is controller.
        elif isinstance(epoch, int) and self.controller is None and self.session is not None:
            self.controller = Controller(self, epoch)
            self.controller_id = self.number
            self.controller.look()

    # --- the controller's word ---------------------------------------------------------------

    def on_leader_and_isr(
        self,
        controller_epoch: int,
        broker_epoch: int,
        state: LeaderAndIsr,
        version: int,
        reply: Reply,
    ) -> None:
        """LeaderAndIsr; who has not registered yet in this life knows that it is not meant."""
        late = controller_epoch < self.controller_epoch or broker_epoch < self.broker_epoch
        if late or self.broker_epoch == -1:
            return
        self.controller_epoch = controller_epoch
        self.world.checker.obeys(self.number * 1_000 + self.life, controller_epoch)
        reply()
        again = state.leader_epoch == self.leading.leader_epoch
        if state.leader_epoch < self.leading.leader_epoch or (again and not self.leading.leads):
            return
        current = PartitionState(
            replicas=self.world.replicas,
            isr=state.isr,
            leader=state.leader,
            leader_epoch=state.leader_epoch,
            controller_epoch=state.controller_epoch,
            partition_epoch=version,
        )
        if not again:
            self._fail_waiting()
        if state.leader == self.number:
            self._lead(current)
        else:
            self.leading.resign(current)
            if state.leader == -1:
                self.fetcher.stop()
            else:
                self.fetcher.follow(state.leader, state.leader_epoch)

    def _lead(self, state: PartitionState) -> None:
        self.fetcher.stop()
        self.tail_known = True
        if self.leading.become(state, log_end=self.log.log_end_offset, now_ms=self.now_ms):
            self.log.assign_epoch_start(state.leader_epoch)
            self.world.checker.leads(self.number, state.leader_epoch, self.world.zookeeper.state)
        self.commit()
        self.flush_soon()

    def _fail_waiting(self) -> None:
        for _, _, _, reply in self._waiting:
            reply("NOT_LEADER_OR_FOLLOWER", -1)
        self._waiting.clear()
        for asked, answer in self._parked:
            answer(asked, Fetched(error=ErrorCode.NOT_LEADER_OR_FOLLOWER), [])
        self._parked.clear()

    # --- leading -----------------------------------------------------------------------------

    def on_produce(self, value: str, reply: Reply) -> None:
        """Produce with acks=all: `reply(error, offset)`."""
        error = self.refuses_writes()
        offset = None if error else self.log.find(value)
        if offset is None:
            error = error or self.log.refusal(value)
            if error:
                reply(error, -1)
                return
            offset = self.append(value)
        self._waiting.append((offset, self.leading.leader_epoch, value, reply))
        self.commit()
        self.flush_soon()

    def refuses_writes(self) -> str:
        """Why nothing can be written here now, by the name of the error; empty where it can."""
        if not self.leading.leads:
            return "NOT_LEADER_OR_FOLLOWER"
        if len(self.leading.isr) < self.world.options.min_in_sync:
            return "NOT_ENOUGH_REPLICAS"
        return ""

    def append(self, value: str) -> int:
        """Append as leader; returns the offset."""
        offset = self.log.append(self.leading.leader_epoch, value)
        self._answer_parked()
        self.flush_soon()
        return offset

    def on_consume(self, offset: int, epoch: int, reply: Reply) -> None:
        """Fetch of a consumer: `reply(values, epoch)`, or `reply(None, -1)` for an error."""
        leading, log = self.leading, self.log
        if not leading.leads or leading.leader_epoch < epoch:
            reply(None, -1)
            return
        if offset > log.log_end_offset:
            if self.world.is_current(self):
                self.world.checker.read_goes_back(self.number, log.log_end_offset, offset)
            return
        end = min(log.high_watermark, offset + 20)
        values = [record.value for record in log.records[offset:end]]
        reply(values, leading.leader_epoch)

    def commit(self) -> None:
        """Move the high watermark to where it belongs, and answer who waited for it."""
        log, leading = self.log, self.leading
        fsync = self.world.options.profile.fsync
        old = log.high_watermark
        new = leading.committed_end(
            old,
            own_end=log.durable_offset if fsync else log.log_end_offset,
            log_end=log.log_end_offset,
            now_ms=self.now_ms,
            alive=self.alive,
        )
        if new > old:
            log.high_watermark = new
            self.world.checker.mark_moves(self.number, old, new)
        if self._waiting:
            self._acknowledge()

    def _acknowledge(self) -> None:
        mark, in_sync = self.log.high_watermark, len(self.leading.maximal_isr)
        left = []
        for waiting in self._waiting:
            offset, _, value, reply = waiting
            if mark <= offset:
                left.append(waiting)
            elif in_sync < self.world.options.min_in_sync:
                reply("NOT_ENOUGH_REPLICAS_AFTER_APPEND", -1)
            else:
                self.world.checker.acknowledged(self.number, offset, value, in_sync)
                reply("", offset)
        self._waiting = left

    def on_fetch(self, source: int, broker_epoch: int, asked: AskRecords, reply: Reply) -> None:
        """Fetch of a follower: `reply(asked, answer, records)`."""
        leading, log = self.leading, self.log
        error = self._refuses(asked.leader_epoch)
        if error is ErrorCode.NONE and not leading.knows(source):
            error = ErrorCode.UNKNOWN_LEADER_EPOCH
        diverging = None
        if error is ErrorCode.NONE:
            try:
                diverging = epoch_checks.divergence(
                    log, offset=asked.offset, fetched_epoch=asked.fetched_epoch
                )
            except KafkaError as failed:
                error = failed.code
        if error is ErrorCode.NONE and diverging is None and asked.offset > log.log_end_offset:
            error = ErrorCode.OFFSET_OUT_OF_RANGE
        if error is not ErrorCode.NONE or diverging is not None:
            reply(asked, Fetched(log.high_watermark, 0, diverging, error), [])
            return
        mark, end = log.high_watermark, log.log_end_offset
        moved = leading.fetched(
            source,
            offset=asked.offset,
            log_start=asked.log_start,
            leader_end=end,
            now_ms=self.now_ms,
            broker_epoch=broker_epoch,
        )
        change = leading.wanted_expansion(
            source, high_watermark=log.high_watermark, alive=self.alive
        )
        if change is not None:
            self.propose(change)
        if moved:
            self.commit()
        if asked.offset < end:
            count = self.world.events.chance.randint(1, 8)
            reply(asked, Fetched(mark, 0), log.read(asked.offset, count))
        else:
            parked = asked, reply
            self._parked.append(parked)
            self.later(FETCH_WAIT_MS, "fetch-wait", self._give_up, parked)

    def _refuses(self, epoch: int) -> ErrorCode:
        if not self.leading.leads:
            return ErrorCode.NOT_LEADER_OR_FOLLOWER
        if self.world.options.bugs.ignore_fetch_epoch:
            return ErrorCode.NONE
        return epoch_checks.check_epoch(self.leading.leader_epoch, epoch)

    def _answer_parked(self) -> None:
        parked, self._parked = self._parked, []
        for asked, reply in parked:
            reply(asked, Fetched(self.log.high_watermark, 0), self.log.read(asked.offset, 8))

    def _give_up(self, parked: tuple[AskRecords, Reply]) -> None:
        if parked in self._parked:
            self._parked.remove(parked)
            asked, reply = parked
            reply(asked, Fetched(self.log.high_watermark, 0), self.log.read(asked.offset, 8))

    def on_epoch_end(self, asked: AskEpochEnd, reply: Reply) -> None:
        """OffsetsForLeaderEpoch: `reply(asked, answer)`."""
        error = self._refuses(asked.leader_epoch)
        if error is not ErrorCode.NONE:
            reply(asked, EpochEnd(error=error))
            return
        answer = epoch_checks.epoch_end(self.log, asked.epoch)
        if self.world.options.bugs.forget_answered_epoch:
            answer = replace(answer, epoch=-1)
        reply(asked, answer)

    def on_log_ends(self, asked: AskLogEnds, reply: Reply) -> None:
        """ListOffsets of a follower: `reply(asked, answer)`."""
        error = self._refuses(asked.leader_epoch)
        reply(asked, LogEnds(0, self.log.log_end_offset, error))

    # --- the ISR -----------------------------------------------------------------------------

    def _look_for_late(self) -> None:
        self.later(self.world.options.lag_max_ms // 2, "shrink", self._look_for_late)
        change = self.leading.wanted_shrink(log_end=self.log.log_end_offset, now_ms=self.now_ms)
        if change is not None:
            if change.flush_first:
                self.log.flush()
            self.propose(change)
        elif self.leading.leads:
            self.commit()

    def propose(self, change: IsrChange) -> None:
        """Ask for a change of the ISR, of the controller or of ZooKeeper."""
        if self.leading.pending is not change:
            return
        if self.world.alters_by_request:
            controller = self.world.brokers.get(self.controller_id)
            if controller is not None:
                self.send(
                    controller.number,
                    "alter",
                    controller.on_alter_partition,
                    self.number,
                    self.broker_epoch,
                    change,
                    self.replier(self.number, self.on_altered, change),
                )
            self.later(REQUEST_TIMEOUT_MS, "alter-again", self.propose, change)
            return
        state = LeaderAndIsr(
            leader=self.number,
            leader_epoch=change.leader_epoch,
            isr=change.isr,
            controller_epoch=self.controller_epoch,
        )
        version = None if self.world.options.bugs.ignore_version else change.partition_epoch
        zookeeper = self.world.zookeeper
        self.ask(
            lambda: zookeeper.write(state, version=version, controller_epoch=None),
            lambda answer: self._written(change, answer),
        )

    def _written(self, change: IsrChange, version: Any) -> None:
        if version in (LOST, EXPIRED) or version is None:
            self.ask(self.world.zookeeper.read, lambda seen: self._compare(change, seen))
        else:
            self.on_altered(change, "", change.isr, version)

    def _compare(self, change: IsrChange, seen: Any) -> None:
        """Whether a write of which nothing is known, or which failed, is there all the same."""
        if self.leading.pending is not change:
            return
        if not isinstance(seen, Snapshot) or seen.state is None:
            self.later(200, "isr-again", self.propose, change)
        elif seen.version == change.partition_epoch:
            self.later(50, "isr-again", self.propose, change)
        elif (
            seen.version == change.partition_epoch + 1
            and seen.state.leader_epoch == change.leader_epoch
            and seen.state.isr == change.isr
            and seen.state.leader == self.number
        ):
            self.on_altered(change, "", change.isr, seen.version)

    def on_altered(self, change: IsrChange, error: str, isr: tuple[int, ...], version: int) -> None:
        """The answer to a change that was asked for."""
        if self.leading.pending is not change:
            return
        if not error:
            self.leading.change_committed(
                isr=isr, leader_epoch=change.leader_epoch, partition_epoch=version
            )
            self.commit()
        elif error == "REFUSED":
            self.leading.change_refused(change)

    def on_alter_partition(
        self, source: int, broker_epoch: int, change: IsrChange, reply: Reply
    ) -> None:
        """AlterPartition, if this is the controller."""
        if self.controller is not None:
            self.controller.alter(source, broker_epoch, change, reply)

    def on_stopping(self, source: int, broker_epoch: int) -> None:
        """ControlledShutdown, if this is the controller."""
        if self.controller is not None:
            self.controller.stopping(source, broker_epoch)

    def on_ends(self, leader_epoch: int, reply: Reply) -> None:
        """How far this replica's log goes: `reply(number, latest epoch, end)`.

        Not answered before the controller's word of that epoch is here: until then more may come.
        """
        if self.leading.leader_epoch == leader_epoch:
            reply(self.number, self.log.latest_epoch, self.log.log_end_offset)

    # --- the disk ----------------------------------------------------------------------------

    def flush_soon(self) -> None:
        """Put what was appended on the disk before long, where the profile says so."""
        if not self._flush_planned and self.world.options.profile.fsync:
            self._flush_planned = True
            self.later(self.world.events.chance.randint(1, 6), "flush", self._flush)

    def _flush(self) -> None:
        self._flush_planned = False
        if self.world.dies_at_flush(self):
            return
        self.log.flush()
        if self.leading.leads:
            self.commit()
        else:
            self.fetcher.replicate()
