"""Who may do what: ZooKeeper's schemes, and what of them is refused."""

import pytest
from kazoo.security import make_digest_acl_credential

from barnabas_zookeeper.access import Identity, Permission, allowed, digest_of, resolve
from barnabas_zookeeper.errors import InvalidAclError
from barnabas_zookeeper.tree import OPEN, Acl

ANYONE = Identity("world", "anyone")
ME = digest_of(b"me:secret")


def test_a_digest_is_what_clients_compute() -> None:
    """kazoo gives access to a user by the hash that the server makes of the password."""
    assert ME.id == make_digest_acl_credential("me", "secret")
    with pytest.raises(ValueError, match="user:password"):
        digest_of(b"nobody")


@pytest.mark.parametrize(
    ("acl", "identities", "granted"),
    [
        (OPEN, [ANYONE], True),
        ((Acl(1, "world", "anyone"),), [ANYONE], True),
        ((Acl(2, "world", "anyone"),), [ANYONE], False),
        ((Acl(1, "digest", ME.id),), [ANYONE], False),
        ((Acl(1, "digest", ME.id),), [ANYONE, ME], True),
        ((Acl(1, "ip", "10.0.0.0/8"),), [ANYONE, Identity("ip", "10.1.2.3")], True),
        ((Acl(1, "ip", "10.0.0.1"),), [ANYONE, Identity("ip", "10.0.0.2")], False),
        ((), [ANYONE, ME], False),
    ],
)
def test_reading(acl: tuple[Acl, ...], identities: list[Identity], granted: bool) -> None:
    """One entry that fits and allows is enough."""
    assert allowed(acl, Permission.READ, identities) is granted


def test_the_auth_scheme_is_replaced_by_the_callers_identity() -> None:
    """As CREATOR_ALL_ACL does: kept is who it was, not that it was somebody."""
    assert resolve("/a", [Acl(31, "auth", "")], [ANYONE, ME]) == (Acl(31, "digest", ME.id),)


@pytest.mark.parametrize(
    "acl",
    [
        [],
        [Acl(31, "auth", "")],
        [Acl(31, "world", "me")],
        [Acl(31, "digest", "me")],
        [Acl(31, "ip", "example.com")],
        [Acl(31, "sasl", "kafka")],
        [Acl(32, "world", "anyone")],
    ],
)
def test_access_that_cannot_be_checked_is_refused(acl: list[Acl]) -> None:
    """What nobody can ever satisfy, or everybody could by mistake, is not kept."""
    with pytest.raises(InvalidAclError):
        resolve("/a", acl, [ANYONE])
