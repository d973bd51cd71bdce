"""Which topics each subscribed expression matches, remembered while the topics stay the same.

Matching a thousand topics takes some 6 ms, and an expression may be made to take 20 ms for each
topic (RE2 is linear in the length of a name, but also in the size of the expression). So each is
matched once: as work in turns, before the decision that needs it, and where topics have come since,
those alone. What others made necessary meanwhile is matched at once.
"""

from collections import OrderedDict
from collections.abc import Generator, Iterable
from typing import Final, NamedTuple

from barnabas_broker.coordinator.group.consumer.validation import compiled
from barnabas_broker.invariants import violated

REMEMBERED_MAX: Final = 1000
"""Expressions that are remembered; of more, those that were used longest ago are forgotten."""
MATCHES_MAX: Final = 500_000
"""Names in all their results together, at some 60 bytes each."""


class _Known(NamedTuple):
    names: frozenset[str]
    matched: frozenset[str]


class Expressions:
    """The expressions of one broker, for all subscribers; ACLs are not applied here."""

    def __init__(
        self, *, remembered_max: int = REMEMBERED_MAX, matches_max: int = MATCHES_MAX
    ) -> None:
        self.names: frozenset[str] = frozenset()
        self._remembered_max = remembered_max
        self._matches_max = matches_max
        self._known: OrderedDict[str, _Known] = OrderedDict()
        self._matches = 0

    def __len__(self) -> int:
        return len(self._known)

    def on_topics(self, names: Iterable[str]) -> None:
        """Match among these from now on."""
        now = frozenset(names)
        if now != self.names:
            self.names = now

    def matching(self, expression: str) -> Generator[None, None, frozenset[str]]:
        """The names that an expression matches whole; may be interrupted after each name.

        Raises KafkaError INVALID_REGULAR_EXPRESSION.
        """
        names, known = self.names, self._known.get(expression)
        if known is not None and known.names is names:
            self._known.move_to_end(expression)
            return known.matched
        matched = set() if known is None else set(known.matched & names)
        unseen = names if known is None else names - known.names
        if unseen:
            matcher = compiled(expression)
            for name in unseen:
                if matcher.fullmatch(name):
                    matched.add(name)
                yield
        found = frozenset(matched)
        assert found <= names, violated("an expression matches topics that there are")
        self._remember(expression, _Known(names, found))
        return found

    def matched(self, expression: str) -> frozenset[str]:
        """The names that an expression matches whole, at once."""
        work = self.matching(expression)
        while True:
            try:
                next(work)
            except StopIteration as finished:
                found: frozenset[str] = finished.value
                return found

    def _remember(self, expression: str, known: _Known) -> None:
        before = self._known.pop(expression, None)
        self._matches += len(known.matched) - (0 if before is None else len(before.matched))
        self._known[expression] = known
        while len(self._known) > 1 and (
            len(self._known) > self._remembered_max or self._matches > self._matches_max
        ):
            _, forgotten = self._known.popitem(last=False)
            self._matches -= len(forgotten.matched)
        assert self._matches >= len(known.matched), violated("what is remembered is counted")
        assert len(self._known) <= max(self._remembered_max, 1), violated("expressions are bounded")
