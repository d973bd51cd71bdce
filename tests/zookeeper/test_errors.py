"""The refusals of ZooKeeper, with the numbers that travel in its protocol."""

from barnabas_zookeeper.errors import (
    BadArgumentsError,
    BadVersionError,
    InvalidAclError,
    NoAuthError,
    NoChildrenForEphemeralsError,
    NodeExistsError,
    NoNodeError,
    NotEmptyError,
    NoWatcherError,
    ZooKeeperError,
)


def test_codes_are_those_of_the_zookeeper_protocol() -> None:
    """A reply carries the number, so it must be the one that every client knows."""
    codes = {
        BadArgumentsError: -8,
        NoAuthError: -102,
        NoNodeError: -101,
        BadVersionError: -103,
        NoChildrenForEphemeralsError: -108,
        NodeExistsError: -110,
        NotEmptyError: -111,
        InvalidAclError: -114,
        NoWatcherError: -121,
    }
    assert {kind: kind.code for kind in ZooKeeperError.__subclasses__()} == codes


def test_a_refusal_says_where_and_why() -> None:
    """Logs show the path, and the reason where there is more to say than the error's name."""
    assert str(NoNodeError("/a")) == "/a: NoNodeError"
    assert str(BadVersionError("/a", "version is 2, not 1")) == "/a: version is 2, not 1"
