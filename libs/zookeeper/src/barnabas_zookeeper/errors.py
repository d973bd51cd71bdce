"""What can be wrong with an operation on a znode, as ZooKeeper names and numbers it.

The numbers are those of `KeeperException.Code`; they travel in replies of the ZooKeeper protocol.
"""

from typing import ClassVar


class ZooKeeperError(Exception):
    """Base of all refusals; `path` is the znode concerned.

    `index` is the position of the refused operation within its transaction.
    """

    code: ClassVar[int]

    def __init__(self, path: str, detail: str = "") -> None:
        super().__init__(f"{path}: {detail or type(self).__name__}")
        self.path = path
        self.index = 0


class BadArgumentsError(ZooKeeperError):
    """The path is not one that a znode can have."""

    code = -8


class NoAuthError(ZooKeeperError):
    """The ACL of the znode does not allow the client to do that."""

    code = -102


class NoNodeError(ZooKeeperError):
    """The znode, or the parent of one to be created, does not exist."""

    code = -101


class BadVersionError(ZooKeeperError):
    """The znode was changed since the version that the caller expects."""

    code = -103


class NoChildrenForEphemeralsError(ZooKeeperError):
    """The parent lives only as long as its session, so it may have no children."""

    code = -108


class NodeExistsError(ZooKeeperError):
    """A znode of that path exists already."""

    code = -110


class NotEmptyError(ZooKeeperError):
    """The znode still has children."""

    code = -111


class InvalidAclError(ZooKeeperError):
    """What was given as access says nothing that can be checked."""

    code = -114


class NoWatcherError(ZooKeeperError):
    """The client does not watch this znode in that way."""

    code = -121
