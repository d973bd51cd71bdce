"""Kafka's `ConnectionQuotas`: counts connections and decides whether, and when, to accept one more.

As in Apache's broker, a full broker or listener and a rate that is exceeded make newcomers wait in
the operating system's queue, while an address with too many connections is refused at once. The
listener of brokers is protected where clients have another, and so is the controller's: they are
only bound by their own limits, and room for them is made by ending the connection of a client that
was idle longest. Decides only; times are seconds of one monotonic clock and come in as arguments.
"""

from collections import Counter
from dataclasses import dataclass, field

from barnabas_broker.server.transport.limits import ConnectionLimits

MAPPED_IPV4 = "::ffff:"
"""How an IPv4 client's address begins on a socket that serves IPv6 as well."""

CLOCK_STEP_S = 1e-6
"""Waits shorter than this are rounding errors."""


def plain_address(address: str) -> str:
    """An address in the form in which it is counted and compared."""
    return address.removeprefix(MAPPED_IPV4)


@dataclass(slots=True)
class _Rate:
    """Spreads new connections evenly over each second, with a second's worth of them in advance."""

    due_at: float = 0.0

    def wait_s(self, rate: int, now: float) -> float:
        """How long the next one must wait, 0 for not at all."""
        if not rate:
            return 1.0
        wait = self.due_at + 1.0 / rate - now - 1.0
        return wait if wait > CLOCK_STEP_S else 0.0

    def count(self, rate: int, now: float) -> None:
        """One more came in at `now`."""
        if rate:
            self.due_at = max(self.due_at, now) + 1.0 / rate


@dataclass(slots=True)
class ConnectionQuotas:
    """The connections of one broker, counted."""

    limits: ConnectionLimits
    total: int = 0
    of_address: Counter[str] = field(default_factory=Counter)
    of_listener: Counter[str] = field(default_factory=Counter)
    _rate: _Rate = field(default_factory=_Rate)
    _rates: dict[str, _Rate] = field(default_factory=dict)

    def has_room(self, listener: str) -> bool:
        """Whether the listener may accept one more as things are."""
        limit = self.limits.of_listener.get(listener)
        if limit is not None and self.of_listener[listener] >= limit:
            return False
        return self.total < self.limits.total

    def may_evict(self, listener: str) -> bool:
        """Whether a connection of another listener is to make room for one of this one."""
        limit = self.limits.of_listener.get(listener)
        return (
            listener in self.limits.protected
            and self.total >= self.limits.total
            and (limit is None or self.of_listener[listener] < limit)
        )

    def wait_s(self, listener: str, now: float) -> float:
        """How long the listener must not accept for the sake of the rates, 0 for not at all."""
        wait = 0.0
        if listener not in self.limits.protected:
            wait = self._rate.wait_s(self.limits.rate, now)
        rate = self.limits.rate_of_listener.get(listener)
        if rate is not None:
            wait = max(wait, self._rate_of(listener).wait_s(rate, now))
        return wait

    def refuses(self, address: str) -> bool:
        """Whether this address has as many connections as it may have."""
        limit = self.limits.of_named_address.get(address, self.limits.of_address)
        return self.of_address[address] >= limit

    def opened(self, listener: str, address: str, now: float) -> None:
        """A connection was accepted."""
        self.total += 1
        self.of_address[address] += 1
        self.of_listener[listener] += 1
        if listener not in self.limits.protected:
            self._rate.count(self.limits.rate, now)
        rate = self.limits.rate_of_listener.get(listener)
        if rate is not None:
            self._rate_of(listener).count(rate, now)

    def closed(self, listener: str, address: str) -> None:
        """An accepted connection ended."""
        self.total -= 1
        self.of_listener[listener] -= 1
        self.of_address[address] -= 1
        if not self.of_address[address]:
            del self.of_address[address]  # Or every address ever seen would be remembered.

    def _rate_of(self, listener: str) -> _Rate:
        return self._rates.setdefault(listener, _Rate())
