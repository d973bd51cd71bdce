"""Which cluster is due when: the decisions of the loop, without clock or tasks.

A cluster is worked on by one pass at a time. What happens meanwhile makes it due again right after;
events that come together are one pass (level-triggered: a pass looks at everything anyway). A pass
that fails is tried again, later each time.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

from barnabas_operator.reconcile.passes import Key

FIRST_RETRY_S: Final = 1.0
LAST_RETRY_S: Final = 60.0


@dataclass(slots=True)
class Agenda:
    """Due times in seconds of any clock; `running` are being worked on."""

    due: dict[Key, float] = field(default_factory=dict)
    running: set[Key] = field(default_factory=set)
    failures: dict[Key, int] = field(default_factory=dict)

    def ask(self, key: Key, now: float) -> None:
        """Something happened to a cluster: it is due now."""
        self.due[key] = min(now, self.due.get(key, now))

    def take(self, now: float, limit: int) -> list[Key]:
        """Clusters to begin with now, the longest due first; at most `limit` run at once."""
        ready = [key for key, at in self.due.items() if at <= now and key not in self.running]
        ready.sort(key=lambda key: (self.due[key], key))
        chosen = ready[: max(0, limit - len(self.running))]
        for key in chosen:
            del self.due[key]
            self.running.add(key)
        return chosen

    def done(self, key: Key, now: float, *, again_in: float) -> None:
        """A pass ended well; the next is due then, or earlier if something happened meanwhile."""
        self.running.discard(key)
        self.failures.pop(key, None)
        self.due[key] = min(now + again_in, self.due.get(key, now + again_in))

    def failed(self, key: Key, now: float) -> float:
        """A pass failed; returns the seconds until it is tried again."""
        self.running.discard(key)
        count = self.failures.get(key, 0)
        self.failures[key] = count + 1
        delay = min(FIRST_RETRY_S * 2.0**count, LAST_RETRY_S)
        self.due[key] = now + delay
        return delay

    def forget(self, existing: frozenset[Key]) -> None:
        """Clusters that nothing names any more are not looked at again."""
        for key in [key for key in self.due if key not in existing]:
            del self.due[key]
            self.failures.pop(key, None)

    def next_due(self) -> float | None:
        """When the next cluster that is not being worked on is due."""
        return min((at for key, at in self.due.items() if key not in self.running), default=None)
