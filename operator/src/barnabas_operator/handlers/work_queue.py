"""Which cluster is reconciled when: the decisions of the controller, without clock or threads.

A cluster has one pass at a time. Events during a pass make the cluster due right after it; events
that come together are one pass (level-triggered: a pass reads everything anyway). A failed pass
is retried with exponential back-off, which delays retries only: a change of a resource is acted on
at once.

Slots are shared fairly. A pass that takes longer than `SLOW_S` gives its slot back while it goes
on, and its cluster is slow until a pass is quick again. Slow clusters have a few slots of their
own, so however many hang, the others are served.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

from barnabas_operator.reconcile.reconciler import Key

FIRST_RETRY_S: Final = 1.0
LAST_RETRY_S: Final = 60.0
SLOW_S: Final = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Slots:
    """How many passes run at once: of quick clusters, of slow ones, and of all together."""

    quick: int = 16
    slow: int = 8
    total: int = 64


@dataclass(slots=True)
class WorkQueue:
    """Due times in seconds of any clock; `running` has the start of each pass."""

    slots: Slots = Slots()
    # Whether a cluster may have a pass now; those of other leaders stay in the queue.
    may_run: Callable[[Key], bool] = lambda _: True
    due: dict[Key, float] = field(default_factory=dict)
    running: dict[Key, float] = field(default_factory=dict)
    slow: set[Key] = field(default_factory=set)
    failures: dict[Key, int] = field(default_factory=dict)
    # Before that, what we own may not make a failed cluster due again: it could be our own doing.
    _not_before: dict[Key, float] = field(default_factory=dict)
    _changed: set[Key] = field(default_factory=set)

    def add(self, key: Key, now: float, *, changed: bool = True) -> None:
        """An event: the cluster is due now, in back-off too if a user `changed` a resource."""
        if changed:
            self._changed.add(key)
            at = now
        else:
            at = max(now, self._not_before.get(key, now))
        self.due[key] = min(at, self.due.get(key, at))

    def get(self, now: float) -> list[Key]:
        """Clusters to start a pass for now, the longest due first."""
        self._find_slow(now)
        slow = sum(key in self.slow for key in self.running)
        free = {True: self.slots.slow - slow, False: self.slots.quick - (len(self.running) - slow)}
        total = self.slots.total - len(self.running)
        chosen: list[Key] = []
        for key in self._ready(now):
            lane = key in self.slow
            if len(chosen) < total and free[lane] > 0:
                free[lane] -= 1
                chosen.append(key)
        for key in chosen:
            del self.due[key]
            self._changed.discard(key)
            self.running[key] = now
        return chosen

    def done(self, key: Key, now: float, *, again_in: float) -> None:
        """A pass ended well; the next is due then, or earlier after an event."""
        self._ended(key, now)
        self.failures.pop(key, None)
        self._not_before.pop(key, None)
        self.due[key] = min(now + again_in, self.due.get(key, now + again_in))

    def failed(self, key: Key, now: float, *, at_least: float = 0.0) -> float:
        """A pass failed; returns the seconds until the next one.

        `at_least` is how long the server that failed asks to be left alone.
        """
        self._ended(key, now)
        count = self.failures.get(key, 0)
        self.failures[key] = count + 1
        # The exponent is bounded: a float overflows after a thousand failures.
        back_off = min(FIRST_RETRY_S * 2.0 ** min(count, 10), LAST_RETRY_S)
        delay = min(max(back_off, at_least), LAST_RETRY_S)
        self._not_before[key] = now + max(FIRST_RETRY_S, min(at_least, LAST_RETRY_S))
        at = now + delay
        if key in self.due:
            at = now if key in self._changed else min(at, self._not_before[key])
        self.due[key] = at
        return at - now

    def forget(self, gone: Callable[[Key], bool]) -> list[Key]:
        """Drop the clusters for which it holds; returns them. Running ones stay until they end."""
        dropped = [key for key in self.due if gone(key) and key not in self.running]
        for key in dropped:
            del self.due[key]
            self.failures.pop(key, None)
            self._not_before.pop(key, None)
            self._changed.discard(key)
            self.slow.discard(key)
        return dropped

    def wake_at(self, now: float) -> float | None:
        """When to look again: something becomes due, or a pass becomes slow and frees its slot."""
        times = [at for key, at in self.due.items() if key not in self.running and at > now]
        if self._ready(now):
            times += [start + SLOW_S for key, start in self.running.items() if key not in self.slow]
        return min(times, default=None)

    def longest_wait(self, now: float) -> float:
        """For how many seconds the longest due cluster has waited for a slot."""
        return max((now - self.due[key] for key in self._ready(now)), default=0.0)

    def longest_pass(self, now: float) -> tuple[float, Key | None]:
        """The age of the oldest running pass, and whose it is."""
        oldest = min(self.running.items(), key=lambda each: each[1], default=None)
        return (now - oldest[1], oldest[0]) if oldest else (0.0, None)

    def _ready(self, now: float) -> list[Key]:
        ready = [key for key, at in self.due.items() if at <= now and key not in self.running]
        return sorted(filter(self.may_run, ready), key=lambda key: (self.due[key], key))

    def _find_slow(self, now: float) -> None:
        self.slow.update(key for key, start in self.running.items() if now - start >= SLOW_S)

    def _ended(self, key: Key, now: float) -> None:
        started = self.running.pop(key, now)
        if now - started < SLOW_S:
            self.slow.discard(key)
        else:
            self.slow.add(key)
