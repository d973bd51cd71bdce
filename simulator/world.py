"""One run: a cluster, its clients, its faults and the checker, from a seed to an outcome."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from random import Random

from barnabas_broker.invariants import on_violation
from simulator.broker import Broker
from simulator.checker import Breach, BreachError, Checker, Copy
from simulator.clients import Consumer, Producer
from simulator.events import Events
from simulator.faults import Fault, plan
from simulator.memory_log import MemoryLog
from simulator.network import Network
from simulator.options import Options, Power
from simulator.zookeeper import ZOOKEEPER, ZooKeeper

RESTART_MS = 150


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of a run."""

    seed: int
    breach: Breach | None
    faults: tuple[Fault, ...]
    events: int
    acknowledged: int
    read: int
    elections: int
    trace: int
    transcript: tuple[str, ...] = ()


class World:
    """See the module's docstring."""

    def __init__(
        self, seed: int, options: Options, *, among: World | None = None, first: int = 1
    ) -> None:
        """Its brokers count from `first` on; `among` others it has their time and network."""
        self.options = options
        events = Events(seed) if among is None else among.events
        self.events: Events = events
        chance = events.chance
        self.network: Network = (
            Network(
                events, loss=chance.choice((0.0, 0.01, 0.04)), doubling=chance.choice((0.0, 0.03))
            )
            if among is None
            else among.network
        )
        #: what strikes and is healed together
        self.rings: list[World] = [self]
        bugs = options.bugs
        plain = bugs.forget_answered_epoch or bugs.ignore_fetch_epoch
        self.truncates_on_fetch = chance.random() < 0.5 and not plain
        self.alters_by_request = chance.random() < 0.5 and not bugs.ignore_version
        self.replicas = tuple(range(first, first + options.brokers))
        self.zookeeper = ZooKeeper(events, self.network, session_ms=options.session_ms)
        self.brokers = {number: self.new_broker(number) for number in self.replicas}
        self.checker = self.new_checker(
            {number: broker.log for number, broker in self.brokers.items()}
        )
        self.zookeeper.poke = lambda number: self.brokers[number].look()
        self.zookeeper.changed = self.checker.state_written
        self.producers = self.new_producers()
        self.consumer = Consumer(self, 9)
        #: until when brokers do not hear the controller
        self.deaf_until_ms = dict.fromkeys(self.replicas, 0)
        #: brokers whose power fails at their next sync, before or after it
        self.armed: set[int] = set()

    def new_broker(self, number: int) -> Broker:
        """A broker, which is not up yet."""
        return Broker(self, number)

    def new_checker(self, copies: dict[int, Copy]) -> Checker:
        """Who looks after the logs."""
        return Checker(
            self.events,
            copies,
            replicas=self.replicas,
            min_isr=self.options.min_in_sync,
            lossless=self.options.profile.lossless,
        )

    def new_producers(self) -> list[Producer]:
        """Who writes to the partition."""
        return [Producer(self, number) for number in range(1, 3)]

    def plan(self, seed: int) -> list[Fault]:
        """The faults of a seed."""
        return plan(self.options, Random(seed))

    def new_log(self, number: int) -> MemoryLog:
        """The log of a broker."""
        del number
        if self.options.real_log:
            # Imported where it is used: all else here runs without the log and its disk.
            from simulator.disk_log import DiskLog

            return DiskLog()
        return MemoryLog(keeps_epochs=not self.options.bugs.truncate_to_high_watermark)

    # --- what brokers and clients ask --------------------------------------------------------

    def guess_leader(self) -> int:
        """Whom a client takes for the leader: mostly right."""
        state, chance = self.zookeeper.state, self.events.chance
        if state is None or state.leader == -1 or chance.random() < 0.1:
            return chance.choice(self.replicas)
        return state.leader

    def is_current(self, broker: Broker) -> bool:
        """Whether ZooKeeper has that broker as the leader, and it knows."""
        state = self.zookeeper.state
        return (
            state is not None
            and state.leader == broker.number
            and state.leader_epoch == broker.leading.leader_epoch
        )

    def dies_at_flush(self, broker: Broker) -> bool:
        """Whether the power fails now, at a sync; half of the time the sync was through."""
        if broker.number not in self.armed:
            return False
        self.armed.discard(broker.number)
        if self.events.chance.random() < 0.5:
            broker.log.flush()
        self._power(broker, RESTART_MS)
        return True

    # --- faults ------------------------------------------------------------------------------

    def _power(self, broker: Broker, lasts_ms: int) -> None:
        if broker.up:
            broker.die()
            broker.power_lost = True
            self.events.after(lasts_ms, "power-back", broker.start)

    def strike(self, fault: Fault) -> None:
        """A fault begins."""
        self.events.note(f"{fault.kind} strikes {list(fault.brokers)} for {fault.lasts_ms} ms")
        getattr(self, f"_{fault.kind}s")(fault)

    def _kills(self, fault: Fault) -> None:
        for number in fault.brokers:
            broker = self.brokers[number]
            if broker.up:
                broker.die()
                self.events.after(fault.lasts_ms, "restart", broker.start)

    def _powers(self, fault: Fault) -> None:
        brokers = [self.brokers[number] for number in fault.brokers]
        if self.options.profile.power is Power.ONE_AT_A_TIME and not self._all_well():
            return
        for broker in brokers:
            if self.options.profile.fsync and self.events.chance.random() < 0.5:
                self.armed.add(broker.number)
            else:
                self._power(broker, fault.lasts_ms)

    def _all_well(self) -> bool:
        """Whether every broker is up, registered, in sync, and has all that is committed.

        Only then one may lose its power: who lost something before has it back.
        """
        state, committed = self.zookeeper.state, len(self.checker.committed)
        return (
            state is not None
            and set(state.isr) == set(self.replicas)
            and all(
                broker.up and broker.registered and broker.log.log_end_offset >= committed
                for broker in self.brokers.values()
            )
        )

    def _stops(self, fault: Fault) -> None:
        broker = self.brokers[fault.brokers[0]]
        if broker.up:
            broker.stop(fault.lasts_ms)

    def _pauses(self, fault: Fault) -> None:
        self.network.pause(fault.brokers[0], self.events.now_ms + fault.lasts_ms)

    def _cuts(self, fault: Fault) -> None:
        one, other = fault.brokers
        self.network.cut(one, other)
        self.events.after(fault.lasts_ms, "mend", self.network.mend, one, other)

    def _isolates(self, fault: Fault) -> None:
        (number,) = fault.brokers
        for other in (ZOOKEEPER, *self.replicas):
            if other != number:
                for pair in ((number, other), (other, number)):
                    self.network.cut(*pair)
                    self.events.after(fault.lasts_ms, "mend", self.network.mend, *pair)

    def _detachs(self, fault: Fault) -> None:
        for pair in ((fault.brokers[0], ZOOKEEPER), (ZOOKEEPER, fault.brokers[0])):
            self.network.cut(*pair)
            self.events.after(fault.lasts_ms, "mend", self.network.mend, *pair)

    def _deafens(self, fault: Fault) -> None:
        self.deaf_until_ms[fault.brokers[0]] = self.events.now_ms + fault.lasts_ms

    def _expires(self, fault: Fault) -> None:
        for number in fault.brokers:
            for session in self.zookeeper.sessions_of(number):
                self.zookeeper.expire(session)

    def _rebalances(self, fault: Fault) -> None:
        del fault
        for broker in self.brokers.values():
            if broker.controller is not None:
                broker.controller.rebalance()

    # --- the run -----------------------------------------------------------------------------

    def run(self, faults: Sequence[Fault]) -> Breach | None:
        """Trouble, healing, and the last look."""
        events, options = self.events, self.options
        for ring in self.rings:
            for broker in ring.brokers.values():
                broker.start()
        for fault in faults:
            ring = next(each for each in self.rings if fault.brokers[0] in each.replicas)
            events.after(fault.at_ms, fault.kind, ring.strike, fault)
        try:
            events.run(options.troubled_ms)
            for ring in self.rings:
                ring.heal()
            events.run(options.troubled_ms + options.healed_ms // 2)
            for ring in self.rings:
                ring.rest()
            events.run(options.troubled_ms + options.healed_ms)
            for ring in self.rings:
                ring.last_look()
        except BreachError as caught:
            breach = caught.args[0]
            assert isinstance(breach, Breach)
            return breach
        finally:
            for ring in self.rings:
                for broker in ring.brokers.values():
                    broker.log.close()
        return None

    def rest(self) -> None:
        """Have nothing new sent."""
        for producer in self.producers:
            producer.rest()

    def last_look(self) -> None:
        """Everything must be well."""
        self.checker.at_the_end(self.zookeeper.state)

    @property
    def acknowledged(self) -> int:
        """How many records were."""
        return len(self.checker.acked)

    def heal(self) -> None:
        """End all faults."""
        self.events.note("all is healed")
        self.network.heal()
        self.armed.clear()
        self.deaf_until_ms = dict.fromkeys(self.replicas, 0)
        for broker in self.brokers.values():
            if not broker.up:
                self.events.after(RESTART_MS, "restart", broker.start)


def _world(seed: int, options: Options) -> World:
    if options.transactions:
        # Imported where it is used: it is made of what is here.
        from simulator.transactions import TransactionalWorld

        return TransactionalWorld(seed, options)
    return World(seed, options)


def run(
    seed: int,
    options: Options,
    *,
    faults: Sequence[Fault] | None = None,
    transcript: bool = False,
) -> Outcome:
    """Run one schedule. `faults` replaces those that the seed plans."""
    world = _world(seed, options)
    if transcript:
        world.events.transcript = []
    planned = world.plan(seed) if faults is None else list(faults)
    violations: list[Breach] = []
    events = world.events

    def note(invariant: str, _state: str) -> None:
        violations.append(Breach(events.now_ms, "assertion", invariant))

    breach: Breach | None = None
    with on_violation(note):
        try:
            breach = world.run(planned)
        except AssertionError:
            if not violations:
                raise
    if violations:  # Also where a core's caller has caught it.
        breach = violations[0]
    return Outcome(
        seed,
        breach,
        tuple(planned),
        events.count,
        world.acknowledged,
        world.consumer.position,
        world.zookeeper.state.leader_epoch if world.zookeeper.state is not None else 0,
        events.trace,
        tuple(events.transcript or ()),
    )
