"""What the parts of a group take of memory (`coordinator.memory`).

Each group has an account, and its shard's and the coordinator's grow and shrink with it. Counted is
what clients make a broker keep: groups, members, their metadata, ids that were
given out. Offsets are not: they are in the log, and kept however many there are.
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
