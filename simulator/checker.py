"""What must always be true, checked at every step that could make it false.

The checker sees everything, which no broker does. A breach ends the run with its name and
transcript.
"""

from dataclasses import dataclass
from typing import Protocol

from barnabas_broker.zk.znodes import LeaderAndIsr
from simulator.events import Events
from simulator.memory_log import Record


class Copy(Protocol):
    """A log, as the checker looks at it."""

    records: list[Record]
    high_watermark: int


@dataclass(frozen=True, slots=True)
class Breach:
    """An invariant that did not hold."""

    at_ms: int
    invariant: str
    what: str


class BreachError(Exception):
    """The run ends here."""


class Checker:
    """Everything that was promised to anybody, and the copies it is held against."""

    def __init__(
        self,
        events: Events,
        copies: dict[int, Copy],
        *,
        replicas: tuple[int, ...],
        min_isr: int,
        lossless: bool = True,
    ) -> None:
        """Where not `lossless`, what nobody was told is safe may be lost and change."""
        self._events = events
        self._copies = copies
        self._replicas = replicas
        self._min_isr = min_isr
        self._lossless = lossless
        #: by offset; what a leader's high watermark has passed, which consumers may have read
        self.committed: list[str] = []
        self.acked: dict[int, str] = {}
        self._leaders: dict[int, int] = {}
        self._zk_epoch = -1
        self._zk_isr: tuple[int, ...] = ()
        self._controllers: dict[int, int] = {}
        self._values: set[str] = set()
        self._sequence: dict[str, int] = {}

    def fail(self, invariant: str, what: str) -> None:
        """End the run."""
        self._events.note(f"BREACH of {invariant}: {what}")
        raise BreachError(Breach(self._events.now_ms, invariant, what))

    # --- leaders -----------------------------------------------------------------------------

    def leads(self, broker: int, epoch: int, current: LeaderAndIsr | None) -> None:
        """A broker begins to lead."""
        other = self._leaders.setdefault(epoch, broker)
        if other != broker:
            self.fail("one leader per epoch", f"{other} and {broker} lead in epoch {epoch}")
        if current is not None and (current.leader, current.leader_epoch) == (broker, epoch):
            self._has_all_acked(broker, "became leader")

    def _has_all_acked(self, broker: int, why: str) -> None:
        records = self._copies[broker].records
        for offset, value in self.acked.items():
            if offset >= len(records) or records[offset].value != value:
                found = records[offset].value if offset < len(records) else "nothing"
                self.fail(
                    "acknowledged is never lost",
                    f"{broker} {why} with {found} at {offset}, where {value} was acknowledged",
                )

    def mark_moves(self, broker: int, old: int, new: int) -> None:
        """A leader moves its high watermark."""
        copy = self._copies[broker]
        if new > len(copy.records):
            self.fail("mark within the log", f"{broker}: {new} > {len(copy.records)}")
        self._same_as_committed(broker, old, new, extend=True)
        self._held_by_isr(broker, new)

    def follower_moves(self, broker: int, old: int, new: int) -> None:
        """A follower's high watermark has moved."""
        if new > old and self._lossless:
            self._same_as_committed(broker, old, new, extend=False)

    def _same_as_committed(self, broker: int, old: int, new: int, *, extend: bool) -> None:
        records, committed = self._copies[broker].records, self.committed
        for offset in range(old, new):
            value = records[offset].value
            if offset < len(committed):
                if committed[offset] != value:
                    self._changed(broker, offset, value)
            elif extend:
                self._commit(value)
            else:
                self.fail("committed by a leader", f"{broker} counts {offset}, no leader did")

    def _changed(self, broker: int, offset: int, value: str) -> None:
        was = self.committed[offset]
        if self._lossless:
            self.fail("committed never changes", f"{broker} has {value} at {offset}, was {was}")
        kept = self.committed[:offset]
        self.committed.clear()
        self._values.clear()
        self._sequence.clear()
        for one in (*kept, value):
            self._commit(one)

    def _commit(self, value: str) -> None:
        if value in self._values and self._lossless:
            self.fail("each record once", f"{value} is committed twice")
        producer, _, sequence = value.partition(".")
        if int(sequence) != self._sequence.get(producer, -1) + 1 and self._lossless:
            self.fail("no gaps", f"{value} after {self._sequence.get(producer, -1)}")
        self._sequence[producer] = int(sequence)
        self._values.add(value)
        self.committed.append(value)

    def _held_by_isr(self, broker: int, mark: int) -> None:
        if not mark or not self._lossless or self._leaders.get(self._zk_epoch) != broker:
            return
        for member in self._zk_isr:
            records = self._copies[member].records
            if len(records) < mark or records[mark - 1].value != self.committed[mark - 1]:
                self.fail(
                    "committed is on every in-sync replica",
                    f"{broker} counts up to {mark}, {member} has {len(records)}",
                )

    # --- ZooKeeper and controllers ----------------------------------------------------------

    def state_written(self, state: LeaderAndIsr) -> None:
        """ZooKeeper has a new state."""
        if state.leader_epoch < self._zk_epoch:
            self.fail("epochs grow", f"from {self._zk_epoch} to {state.leader_epoch}")
        if not set(state.isr) <= set(self._replicas) or not state.isr:
            self.fail("the ISR is of replicas", f"{state.isr} of {self._replicas}")
        if state.leader not in (-1, *state.isr):
            self.fail("a leader is in sync", f"{state.leader} leads, {state.isr} are in sync")
        self._zk_epoch, self._zk_isr = state.leader_epoch, state.isr
        leader = self._leaders.get(state.leader_epoch)
        if leader is not None and leader == state.leader:
            self._held_by_isr(leader, self._copies[leader].high_watermark)

    def obeys(self, broker: int, controller_epoch: int) -> None:
        """A broker does what a controller says."""
        if controller_epoch < self._controllers.get(broker, -1):
            self.fail("old controllers are not obeyed", f"{broker} obeys {controller_epoch}")
        self._controllers[broker] = controller_epoch

    # --- clients -----------------------------------------------------------------------------

    def acknowledged(self, broker: int, offset: int, value: str, in_sync: int) -> None:
        """A producer hears that its record is safe."""
        if in_sync < self._min_isr:
            self.fail("enough replicas", f"{value} is acknowledged by {in_sync}")
        if offset >= len(self.committed) or self.committed[offset] != value:
            self.fail("acknowledged is committed", f"{broker} acknowledged {value} at {offset}")
        self.acked[offset] = value

    def read_goes_back(self, broker: int, end: int, offset: int) -> None:
        """The leader's log ends before what a consumer has read."""
        if self._lossless:
            self.fail("what was read stays", f"{broker} ends at {end}, not {offset}")

    def was_read(self, offset: int, value: str) -> None:
        """A consumer reads a record."""
        lost = offset >= len(self.committed) or self.committed[offset] != value
        if lost and self._lossless:
            self.fail("what is read is committed", f"{value} at {offset}")

    # --- the end -----------------------------------------------------------------------------

    def at_the_end(self, state: LeaderAndIsr | None) -> None:
        """All is healed, and time has passed: everybody has everything."""
        if state is None or state.leader == -1:
            self.fail("liveness", "no leader")
            return
        if set(state.isr) != set(self._replicas):
            self.fail("liveness", f"in sync are only {state.isr}")
        records = self._copies[state.leader].records
        self._has_all_acked(state.leader, "leads at the end")
        for broker, copy in self._copies.items():
            if copy.records != records:
                self.fail("logs are equal", f"{broker} and {state.leader} differ at the end")
            last = 0
            for record in copy.records:
                if -1 < record.epoch < last:
                    self.fail("epochs are in order", f"{broker}: {record.epoch} after {last}")
                last = max(last, record.epoch)
        if self._copies[state.leader].high_watermark != len(records):
            self.fail("liveness", "the high watermark does not get to the end")
