"""The memory that coordinators take for clients, counted where it changes.

Only what clients ask for is ever refused. What is read back from the log is counted too, and always
taken: a budget must not keep a partition from loading, nor lose what was acknowledged.
"""

from typing import Final

from barnabas_broker.invariants import violated

MEMORY_SHARE: Final = 16
MEMORY_BYTES_MIN: Final = 32 * 1024 * 1024
MEMORY_BYTES_MAX: Final = 128 * 1024 * 1024
"""All groups of a broker may take one part in so many of its memory, within these bounds, and all
transactional ids as much, where no setting says something else: 100,000 members that say a kilobyte
each."""

SMALL_BYTES: Final = 64 * 1024
"""What takes no more may have the last quarter of the budget, which larger ones leave."""


class Account:
    """Bytes that something holds, which count for the whole that it is part of, too."""

    __slots__ = ("_whole", "held")

    def __init__(self, whole: "Account | None" = None, held: int = 0) -> None:
        self.held = held
        self._whole = whole
        if whole is not None:
            whole.add(held)

    def add(self, more: int) -> None:
        """Hold so many bytes more, or fewer."""
        self.held += more
        assert self.held >= 0, violated("memory is given back once")
        if self._whole is not None:
            self._whole.add(more)

    def leave(self) -> None:
        """Be part of nothing any more."""
        self.join(None)

    def join(self, whole: "Account | None") -> None:
        """Be part of this, and of nothing else."""
        assert whole is not self, violated("an account is not part of itself")
        if self._whole is not None:
            self._whole.add(-self.held)
        self._whole = whole
        if whole is not None:
            whole.add(self.held)


def has_room(held: int, more: int, limit: int) -> bool:
    """Whether a budget of `limit` bytes, of which some are held, allows for more.

    What needs nothing more is always accepted, as the members of a group that rebalances.
    """
    if more <= 0:
        return True
    allowed = limit if more <= SMALL_BYTES else limit - limit // 4
    return held + more <= allowed


def default_limit(memory_bytes: int) -> int:
    """The budget of a broker that may use so much memory."""
    return min(max(memory_bytes // MEMORY_SHARE, MEMORY_BYTES_MIN), MEMORY_BYTES_MAX)
