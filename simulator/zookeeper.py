"""A ZooKeeper ensemble, as far as brokers and controller use it.

It holds one partition's state with its version, /controller with its epoch, and the registered
brokers, each bound to a session. A session that is not heard of for its timeout expires. Answers
to one client arrive in order; an answer that is lost leaves the client not knowing whether what it
asked for happened. A watch may come late, and is only a hint: whoever gets it reads.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Final

from barnabas_broker.zk.znodes import LeaderAndIsr
from simulator.events import Events
from simulator.network import Network

ZOOKEEPER: Final = 0
"""The ensemble's number on the network."""

LOST: Final = "connection lost"
"""The answer to a request of which nobody knows whether it was carried out."""

EXPIRED: Final = "session expired"


@dataclass(frozen=True, slots=True)
class Registration:
    """A live broker: `epoch` is the czxid of its znode."""

    broker: int
    epoch: int
    clean: bool


@dataclass(frozen=True, slots=True)
class Snapshot:
    """What a controller reads."""

    state: LeaderAndIsr | None
    version: int
    brokers: dict[int, Registration]
    controller: int
    controller_epoch: int
    zxid: int
    state_zxid: int
    """When the partition's state was last written (its mzxid)."""


@dataclass(slots=True)
class _Session:
    broker: int
    last_seen_ms: int


class ZooKeeper:
    """See the module's docstring."""

    def __init__(self, events: Events, network: Network, *, session_ms: int) -> None:
        self._events = events
        self._network = network
        self._session_ms = session_ms
        self._sessions: dict[int, _Session] = {}
        self._made = 0
        self._answered_ms: dict[int, int] = {}
        self.zxid = self.state_zxid = 0
        self.state: LeaderAndIsr | None = None
        self.version = -1
        self.controller: tuple[int, int] | None = None  # broker, session
        self.controller_epoch = 0
        self.brokers: dict[int, tuple[Registration, int]] = {}
        #: called with a broker's number when something changed that it watches
        self.poke: Callable[[int], None] = lambda _broker: None
        #: called after each change of the partition's state
        self.changed: Callable[[LeaderAndIsr], None] = lambda _state: None
        events.after(session_ms // 4, "zk-tick", self._tick)

    # --- clients -----------------------------------------------------------------------------

    def ask(
        self,
        broker: int,
        life: int,
        request: Callable[[], Any],
        answered: Callable[[Any], None],
        *,
        session: int | None = None,
    ) -> None:
        """Carry out `request` and call `answered` with what it returned, LOST or EXPIRED."""
        done = [False]

        def respond(answer: Any) -> None:
            if not done[0]:
                done[0] = True
                answered(answer)

        def arrive() -> None:
            if session is not None:
                if session not in self._sessions:
                    back(EXPIRED)
                    return
                self._sessions[session].last_seen_ms = self._events.now_ms
            back(request())

        def back(answer: Any) -> None:
            delay = self._network.delay_ms()
            at_ms = max(self._events.now_ms + delay, self._answered_ms.get(broker, 0))
            self._answered_ms[broker] = at_ms
            delay = at_ms - self._events.now_ms
            self._network.send(ZOOKEEPER, broker, "zk-answer", respond, answer, delay_ms=delay)

        self._network.send(broker, ZOOKEEPER, "zk-ask", arrive)
        self._network.later(broker, life, self._session_ms // 2, "zk-lost", respond, LOST)

    def _tick(self) -> None:
        now_ms = self._events.now_ms
        for number, session in list(self._sessions.items()):
            if now_ms - session.last_seen_ms > self._session_ms:
                self.expire(number)
        self._events.after(self._session_ms // 4, "zk-tick", self._tick)

    def sessions_of(self, broker: int) -> list[int]:
        """The sessions that a broker has, of this life and earlier ones."""
        return [number for number, session in self._sessions.items() if session.broker == broker]

    def expire(self, number: int) -> None:
        """End a session, and with it what is bound to it."""
        session = self._sessions.pop(number)
        self.zxid += 1
        self._events.note(f"zookeeper: the session of {session.broker} ends")
        if self.controller is not None and self.controller[1] == number:
            self.controller = None
        for broker, (_, owner) in list(self.brokers.items()):
            if owner == number:
                del self.brokers[broker]
        self._poke_all()

    def _poke_all(self) -> None:
        for broker in sorted({session.broker for session in self._sessions.values()}):
            self._network.send(ZOOKEEPER, broker, "zk-watch", self.poke, broker)

    # --- what can be asked -------------------------------------------------------------------

    def connect(self, broker: int) -> int:
        """A new session."""
        self._made += 1
        self._sessions[self._made] = _Session(broker, self._events.now_ms)
        return self._made

    def register(self, broker: int, session: int, *, clean: bool) -> int | None:
        """Create the broker's znode: its epoch, or None while one of an earlier life is there."""
        held = self.brokers.get(broker)
        if held is not None:
            return held[0].epoch if held[1] == session else None
        self.zxid += 1
        self.brokers[broker] = Registration(broker, self.zxid, clean), session
        self._events.note(f"zookeeper: {broker} registers, epoch {self.zxid}")
        self._poke_all()
        return self.zxid

    def trust(self, broker: int, session: int) -> bool:
        """Write into a registration that its broker has caught up; whether it is that session's."""
        held = self.brokers.get(broker)
        if held is None or held[1] != session:
            return False
        if not held[0].clean:
            self.zxid += 1
            self.brokers[broker] = replace(held[0], clean=True), session
        return True

    def contest(self, broker: int, session: int) -> int | None:
        """Create /controller and take the next epoch; None where another holds it."""
        if self.controller is not None and self.controller[1] != session:
            return None
        if self.controller is None:
            self.zxid += 1
            self.controller = broker, session
            self.controller_epoch += 1
            self._events.note(f"zookeeper: {broker} is controller {self.controller_epoch}")
            self._poke_all()
        return self.controller_epoch

    def read(self) -> Snapshot:
        """All there is."""
        return Snapshot(
            self.state,
            self.version,
            {broker: registration for broker, (registration, _) in self.brokers.items()},
            self.controller[0] if self.controller is not None else -1,
            self.controller_epoch,
            self.zxid,
            self.state_zxid,
        )

    def write(
        self, state: LeaderAndIsr, *, version: int | None, controller_epoch: int | None
    ) -> int | None:
        """Write the partition's state; the new version, or None where a check failed.

        `version` None writes over whatever is there. `controller_epoch` is checked in the same
        transaction where a controller writes.
        """
        if controller_epoch is not None and controller_epoch != self.controller_epoch:
            return None
        if version is not None and version != self.version:
            return None
        self.version += 1
        self.zxid += 1
        self.state_zxid = self.zxid
        self.state = state
        self._events.note(
            f"zookeeper: leader {state.leader} epoch {state.leader_epoch} "
            f"ISR {list(state.isr)} version {self.version}"
        )
        self.changed(state)
        return self.version
