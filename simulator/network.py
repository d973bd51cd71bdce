"""A network that delays, loses, doubles and reorders, and whose links are cut one way or both.

A message reaches the process it was sent to, never a later life of it; one that its sender did not
live to see arrive arrives all the same.
"""

from typing import Any

from simulator.events import Act, Events

What = tuple[str, Act, tuple[Any, ...]]
"""What is to happen: its label, and the call."""

Reply = Act
"""What the receiver of a request calls with its answer."""


class Network:
    """Numbers are brokers; 0 is ZooKeeper, and negative ones are clients."""

    def __init__(self, events: Events, *, loss: float, doubling: float) -> None:
        self._events = events
        self._loss = loss
        self._doubling = doubling
        self._cuts: dict[tuple[int, int], int] = {}
        self._lives: dict[int, int] = {}
        self._paused_until: dict[int, int] = {}

    def delay_ms(self) -> int:
        """Mostly a few ms, at times very long."""
        chance = self._events.chance
        return chance.randint(0, 5) if chance.random() < 0.95 else chance.randint(5, 400)

    # --- machines ----------------------------------------------------------------------------

    def begin(self, number: int, life: int) -> None:
        """A process starts."""
        self._lives[number] = life

    def end(self, number: int) -> None:
        """A process ends."""
        self._lives.pop(number, None)

    def pause(self, number: int, until_ms: int) -> None:
        """A process stands still: nothing reaches it and no timer of its runs until then."""
        self._paused_until[number] = max(self._paused_until.get(number, 0), until_ms)

    def cut(self, source: int, target: int) -> None:
        """Nothing passes from one to the other, until as many `mend`."""
        self._cuts[source, target] = self._cuts.get((source, target), 0) + 1

    def mend(self, source: int, target: int) -> None:
        """End a cut."""
        if self._cuts.get((source, target)):
            self._cuts[source, target] -= 1

    def heal(self) -> None:
        """End every cut and loss, and pauses too."""
        self._cuts.clear()
        self._paused_until.clear()
        self._loss = self._doubling = 0.0

    # --- messages ----------------------------------------------------------------------------

    def send(
        self,
        source: int,
        target: int,
        label: str,
        act: Act,
        *args: Any,
        delay_ms: int | None = None,
    ) -> None:
        """Let `act(*args)` happen at the target, if the message gets there."""
        chance = self._events.chance
        if self._cuts.get((source, target)) or chance.random() < self._loss:
            return
        life = self._lives.get(target, 0)
        if target > 0 and not life:
            return
        if delay_ms is None:
            delay_ms = self.delay_ms()
        what = label, act, args
        self._events.after(delay_ms, label, self._arrive, source, target, life, what)
        if source > 0 and target > 0 and chance.random() < self._doubling:
            again = self.delay_ms() + delay_ms
            self._events.after(again, label, self._arrive, source, target, life, what)

    def _arrive(self, source: int, target: int, life: int, what: What) -> None:
        if self._cuts.get((source, target)) or self._lives.get(target, 0) != life:
            return
        self._when_awake(target, life, what)

    def later(
        self, number: int, life: int, delay_ms: int, label: str, act: Act, *args: Any
    ) -> None:
        """A timer of a process: it does not survive it."""
        self._events.after(delay_ms, label, self._when_awake, number, life, (label, act, args))

    def _when_awake(self, number: int, life: int, what: What) -> None:
        if self._lives.get(number, 0) != life:
            return
        label, act, args = what
        until_ms = self._paused_until.get(number, 0)
        if until_ms > self._events.now_ms:
            wait = until_ms - self._events.now_ms
            self._events.after(wait, label, self._when_awake, number, life, what)
            return
        act(*args)
