"""The memory that groups take, counted where it changes.

Each group has an account, and its shard's and the coordinator's grow and shrink with it. What is
counted is what clients make a broker keep: groups, members, what they tell about themselves, ids
that were given out. Offsets are not: they are in the log, and kept however many there are.

Only what clients ask for is ever refused. What is read back from the log is counted too, and always
taken: a budget must not keep a partition from loading, nor lose what was acknowledged.
"""

from typing import Final

GROUP_BYTES: Final = 2048
"""A group with its tables; all that is counted apiece is measured with CPython 3.11, rounded up."""
MEMBER_BYTES: Final = 1024
"""A member, its timers, and its places in the tables of its group."""
PROTOCOL_BYTES: Final = 192
"""An assignment protocol or the name of a topic that a member names, besides its text."""
PENDING_BYTES: Final = 256
"""An id that was given out, with its timer."""
PARTITION_BYTES: Final = 192
"""A partition that a member of the consumer protocol is assigned."""

SMALL_BYTES: Final = 64 * 1024
"""A member that takes no more may have the last quarter of the budget, which larger ones leave."""


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
        if self._whole is not None:
            self._whole.add(more)

    def leave(self) -> None:
        """Be part of nothing any more."""
        self.join(None)

    def join(self, whole: "Account | None") -> None:
        """Be part of this, and of nothing else."""
        if self._whole is not None:
            self._whole.add(-self.held)
        self._whole = whole
        if whole is not None:
            whole.add(self.held)


def has_room(held: int, more: int, limit: int) -> bool:
    """Whether a budget of `limit` bytes, of which some are held, allows for more.

    Who needs nothing more is always welcome, as the members of a group that rebalances.
    """
    if more <= 0:
        return True
    allowed = limit if more <= SMALL_BYTES else limit - limit // 4
    return held + more <= allowed
