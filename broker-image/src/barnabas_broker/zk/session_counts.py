"""How the session with an ensemble fares, in numbers."""

from collections.abc import Callable
from enum import Enum


class SessionState(Enum):
    """ZooKeeper's names for the states of a session."""

    CONNECTING = "CONNECTING"
    """There is no connection; the session may last yet."""
    CONNECTED = "CONNECTED"
    """Requests are answered."""
    EXPIRED = "EXPIRED"
    """The ensemble has ended the session; a new one begins with the next connection."""
    AUTH_FAILED = "AUTH_FAILED"
    """The ensemble has refused the broker's user; another attempt follows."""
    CLOSED = "CLOSED"
    """We have ended it."""


def _ignore(_microseconds: int) -> None:
    pass


class SessionCounts:
    """What a session has been through. Written by its threads, read by any.

    `took` is called with the microseconds that each request waited for its answer, in whichever
    thread that was.
    """

    __slots__ = ("connects", "disconnects", "expires", "refusals", "state", "took")

    def __init__(self) -> None:
        self.state = SessionState.CONNECTING
        self.connects = 0
        self.disconnects = 0
        self.expires = 0
        self.refusals = 0
        self.took: Callable[[int], None] = _ignore

    def connected(self) -> None:
        """There is a connection, the first one or another."""
        self.state = SessionState.CONNECTED
        self.connects += 1

    def disconnected(self) -> None:
        """There is none any more."""
        self.state = SessionState.CONNECTING
        self.disconnects += 1

    def expired(self) -> None:
        """The ensemble knows the session no longer."""
        self.state = SessionState.EXPIRED
        self.expires += 1

    def refused(self) -> None:
        """The ensemble does not accept the broker's user."""
        self.state = SessionState.AUTH_FAILED
        self.refusals += 1

    def closed(self) -> None:
        """The session was ended from here."""
        self.state = SessionState.CLOSED
