"""The controller's duties, done by whichever broker holds /controller.

It reads ZooKeeper, decides with `controller.elections` and `controller.careful_election`, writes
with a check of its epoch and of the state's version, and tells brokers until they have answered.
One thing at a time.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from barnabas_broker.controller import careful_election, elections
from barnabas_broker.controller.careful_election import Ends, LogEnd
from barnabas_broker.controller.elections import LiveBrokers
from barnabas_broker.replica.isr import IsrChange
from barnabas_broker.zk.znodes import LeaderAndIsr
from simulator.network import Reply
from simulator.zookeeper import EXPIRED, LOST, Registration, Snapshot

if TYPE_CHECKING:
    from simulator.broker import Broker

RESEND_MS = 300


class Controller:
    """One term of office."""

    def __init__(self, broker: Broker, epoch: int) -> None:
        self._broker = broker
        self._world = broker.world
        self.epoch = epoch
        #: None before everything was read once
        self._known: dict[int, Registration] | None = None
        #: came again, and nothing has been written since
        self._restarted: set[int] = set()
        #: by broker, the registration that asked to stop
        self._stopping: dict[int, int] = {}
        self._alterations: list[tuple[int, int, IsrChange, Reply]] = []
        self._busy = False
        self._again = False
        self._over = False
        #: what each broker has answered: (its epoch, leader epoch)
        self._sent: dict[int, tuple[int, int]] = {}
        self._ends = Ends(-1)
        self._rebalance = False

    def resign(self) -> None:
        """This term is over."""
        self._over = True
        if self._broker.controller is self:
            self._broker.controller = None

    # --- requests ----------------------------------------------------------------------------

    def alter(self, source: int, broker_epoch: int, change: IsrChange, reply: Reply) -> None:
        """AlterPartition: `reply(error, isr, version)`."""
        if all(waiting[2] is not change for waiting in self._alterations):
            self._alterations.append((source, broker_epoch, change, reply))
        self.look()

    def stopping(self, broker: int, broker_epoch: int) -> None:
        """ControlledShutdown; one of an earlier life that comes late means nothing."""
        self._stopping[broker] = broker_epoch
        self.look()

    def _are_stopping(self, seen: Snapshot) -> set[int]:
        return {
            broker
            for broker, registration in seen.brokers.items()
            if self._stopping.get(broker) == registration.epoch
        }

    def rebalance(self) -> None:
        """Elect the preferred leader."""
        self._rebalance = True
        self.look()

    # --- one turn: read, decide, write, tell -------------------------------------------------

    def look(self) -> None:
        """Take a turn, after the present one if there is one."""
        if self._over:
            return
        if self._busy:
            self._again = True
            return
        self._busy = True
        self._broker.ask(self._world.zookeeper.read, self._seen)

    def _done(self) -> None:
        self._busy = False
        if self._again:
            self._again = False
            self.look()

    def _seen(self, seen: Any) -> None:
        if seen == EXPIRED:
            self._broker.lose_session()
        if self._over:
            return
        if not isinstance(seen, Snapshot):
            self._later()
            return
        if seen.controller_epoch != self.epoch or seen.controller != self._broker.number:
            self.resign()
            return
        state = self._decide(seen)
        if state is not None and state != seen.state:
            self._write(state, seen.version, self._restarted_are_seen)
        elif self._alterations:
            self._alter(seen)
        else:
            if seen.state is not None:
                self._restarted.clear()
            self._send_state(seen)
            self._done()

    def _restarted_are_seen(self, version: int | None) -> None:
        if version is not None:
            self._restarted.clear()

    def _later(self) -> None:
        self._busy = False
        self._broker.later(RESEND_MS, "controller-again", self.look)

    def _write(
        self,
        state: LeaderAndIsr,
        version: int,
        done: Callable[[int | None], None],
    ) -> None:
        zookeeper = self._world.zookeeper

        def written(answer: Any) -> None:
            if self._over:
                return
            if answer not in (LOST, EXPIRED):
                done(answer)
            self._busy = False
            self.look()

        self._broker.ask(
            lambda: zookeeper.write(state, version=version, controller_epoch=self.epoch), written
        )

    # --- decisions ---------------------------------------------------------------------------

    def _decide(self, seen: Snapshot) -> LeaderAndIsr | None:
        replicas = self._world.replicas
        if seen.state is None:
            live = tuple(broker for broker in replicas if broker in seen.brokers)
            if len(live) < len(replicas):
                return None
            return elections.first_leader(live, controller_epoch=self.epoch)
        self._notice(seen, seen.state)
        present = self._present(seen)
        settled = elections.settle(
            replicas, seen.state, present, unclean=False, controller_epoch=self.epoch
        )
        state = settled or seen.state
        if careful_election.waits(replicas, state, present):
            return self._elect_longest(seen, state, present)
        if state.leader != -1:
            return self._moved(seen, state)
        return state

    def _present(self, seen: Snapshot) -> LiveBrokers:
        return LiveBrokers(
            seen.brokers,
            self._are_stopping(seen),
            self._restarted,
            self._unclean_shutdowns(seen.brokers),
            careful=self._world.options.strict.careful_election,
        )

    def _unclean_shutdowns(self, brokers: Mapping[int, Registration]) -> frozenset[int]:
        if not self._world.options.strict.unclean_registration:
            return frozenset()
        return frozenset(number for number, each in brokers.items() if not each.clean)

    def _notice(self, seen: Snapshot, state: LeaderAndIsr) -> None:
        """Who came back with another registration; until a write has gone through."""
        strict, fresh = self._world.options.strict, self._known is None
        known, brokers = self._known or {}, seen.brokers
        for broker in known.keys() - brokers.keys():
            self._ends.forget([broker])
        unclean_shutdowns = self._unclean_shutdowns(brokers)
        for broker, registration in brokers.items():
            before = known.get(broker)
            if before is not None and before.epoch == registration.epoch:
                continue
            self._sent.pop(broker, None)
            self._ends.forget([broker])
            if before is not None or broker in unclean_shutdowns:
                self._restarted.add(broker)
        if fresh:
            epochs = {broker: registration.epoch for broker, registration in brokers.items()}
            self._restarted |= elections.unseen_restarts(
                state.leader,
                seen.state_zxid,
                registered=epochs if strict.epoch_after_restart else {},
                unclean_shutdowns=unclean_shutdowns,
            )
        self._known = brokers

    def _moved(self, seen: Snapshot, state: LeaderAndIsr) -> LeaderAndIsr:
        replicas, live = self._world.replicas, seen.brokers
        stopping = self._are_stopping(seen)
        changed = None
        if state.leader in stopping:
            changed = elections.elect_for_shutdown(
                replicas, state, live=live, stopping=stopping, controller_epoch=self.epoch
            )
        elif self._rebalance and state.leader != replicas[0]:
            changed = elections.elect_preferred(
                replicas, state, live=live, controller_epoch=self.epoch
            )
        self._rebalance = False
        return changed or state

    def _elect_longest(
        self, seen: Snapshot, state: LeaderAndIsr, present: LiveBrokers
    ) -> LeaderAndIsr:
        """The state as it is, or with a leader once all replicas have said how far they go."""
        if seen.state is not state:
            return state  # They are asked in its epoch, once it is written.
        replicas = self._world.replicas
        if self._ends.leader_epoch != state.leader_epoch:
            self._ends = Ends(state.leader_epoch)
        missing = self._ends.missing(replicas)
        for broker in sorted(missing & seen.brokers.keys()):
            self._ask_ends(broker, seen.brokers[broker].epoch, state.leader_epoch)
        if missing:
            self._broker.later(RESEND_MS, "ends-again", self.look)
        else:
            self._world.events.note(f"controller {self.epoch}: logs end at {self._ends}")
        elected = self._ends.elect(
            replicas, state, live=present.eligible, controller_epoch=self.epoch
        )
        return elected or state

    def _ask_ends(self, broker: int, broker_epoch: int, leader_epoch: int) -> None:
        """Ask a replica in the epoch that has no leader: who answers has left the one before."""

        def on_end(number: int, epoch: int, end: int) -> None:
            registered = (self._known or {}).get(number)
            if self._over or registered is None or registered.epoch != broker_epoch:
                return
            if leader_epoch == self._ends.leader_epoch:
                self._ends.add_log_end(number, LogEnd(epoch, end))
                self.look()

        own, network = self._broker.number, self._world.network
        target = self._world.brokers[broker]

        def reply(*args: Any) -> None:
            network.send(broker, own, "ends", on_end, *args)

        self._broker.send(broker, "ask-ends", target.on_ends, leader_epoch, reply)

    def _alter(self, seen: Snapshot) -> None:
        source, broker_epoch, change, reply = self._alterations.pop(0)
        state = seen.state
        registration = seen.brokers.get(source)
        error = ""
        if state is None or registration is None or registration.epoch != broker_epoch:
            error = "STALE"
        elif (state.leader, state.leader_epoch) != (source, change.leader_epoch):
            error = "FENCED"
        elif seen.version != change.partition_epoch:
            error = "VERSION"
        elif not set(change.isr) <= set(seen.brokers) - self._are_stopping(seen):
            error = "REFUSED"
        if error or state is None:
            if state is not None and error == "VERSION" and state.isr == change.isr:
                # It was made before, and the answer was lost.
                reply("", state.isr, seen.version)
            else:
                reply(error, (), -1)
            self._busy = False
            self.look()
            return
        wanted = replace(state, isr=change.isr, controller_epoch=self.epoch)

        def done(version: int | None) -> None:
            if version is not None:
                reply("", wanted.isr, version)

        self._write(wanted, seen.version, done)

    # --- telling -----------------------------------------------------------------------------

    def _send_state(self, seen: Snapshot) -> None:
        state = seen.state
        if state is None:
            return
        waiting = False
        for number in self._world.replicas:
            registration = seen.brokers.get(number)
            if registration is None:
                continue
            word = registration.epoch, state.leader_epoch
            if self._sent.get(number) == word:
                continue
            waiting = True
            self._send(number, registration.epoch, state, seen.version)
        if waiting:
            self._broker.later(RESEND_MS, "send-again", self.look)

    def _send(self, number: int, epoch: int, state: LeaderAndIsr, version: int) -> None:
        own, network = self._broker.number, self._world.network
        target = self._world.brokers[number]
        if self._world.deaf_until_ms[number] > self._world.events.now_ms:
            return

        def acknowledged() -> None:
            self._sent[number] = (epoch, state.leader_epoch)

        def reply() -> None:
            network.send(number, own, "acknowledged", acknowledged)

        self._broker.send(
            number,
            "leader-and-isr",
            target.on_leader_and_isr,
            self.epoch,
            epoch,
            state,
            version,
            reply,
        )
