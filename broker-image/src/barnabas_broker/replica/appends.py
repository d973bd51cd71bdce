"""What waits for appends to a log that this broker leads: followers' fetches, fetch sessions."""

from typing import Protocol

from barnabas_broker.replica.delayed_fetch import DelayedFetch


class Watching(Protocol):
    """The session of a follower, which reads a partition again only if something changed."""

    def changed(self) -> None:
        """Something that followers are sent, or that decides about them, may have changed."""

    def refresh(self) -> None:
        """Say when the follower was last caught up."""

    def grew(self, size: int) -> None:
        """So many bytes were appended."""

    def wake(self) -> None:
        """What has changed is to be sent at once."""


class Appends:
    """What followers wait on: the end of the log, where consumers wait for the high watermark.

    A fetch without a session waits itself; sessions are notified of every change.
    """

    __slots__ = ("fetch_waiters", "watches")

    def __init__(self) -> None:
        self.fetch_waiters: set[DelayedFetch] = set()
        self.watches: tuple[Watching, ...] = ()

    def grew(self, size: int) -> None:
        """So many bytes were appended."""
        for watch in self.watches:
            watch.grew(size)
        if self.fetch_waiters:
            for fetch in list(self.fetch_waiters):
                fetch.grew(size)

    def changed(self) -> None:
        """Something that followers are sent, or that decides about them, may have changed."""
        for watch in self.watches:
            watch.changed()
