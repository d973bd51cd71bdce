"""Access control of znodes: ZooKeeper's schemes world, auth, digest and ip.

A client is known by identities: each is world:anyone and the address it comes from; with
each user and password that it gives it is also digest:user:hash. Of the schemes that need a server
of others' (sasl, x509) there is none here, and access given by them is refused.
"""

import base64
import hashlib
import ipaddress
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from enum import IntFlag

from barnabas_zookeeper.errors import InvalidAclError
from barnabas_zookeeper.tree import ALL_PERMISSIONS, Acl


class Permission(IntFlag):
    """What can be allowed."""

    READ = 1
    WRITE = 2
    CREATE = 4
    DELETE = 8
    ADMIN = 16


@dataclass(frozen=True, slots=True)
class Identity:
    """A client's identity, by a scheme."""

    scheme: str
    id: str


def digest_of(user_and_password: bytes) -> Identity:
    """The identity of `user:password`; raises ValueError where there is no colon."""
    user, colon, _ = user_and_password.partition(b":")
    if not colon:
        raise ValueError("a digest is made of user:password")
    # The algorithm is the protocol's: clients compute the same to give access to a user.
    hashed = hashlib.sha1(user_and_password, usedforsecurity=False).digest()
    return Identity("digest", f"{user.decode()}:{base64.b64encode(hashed).decode()}")


def allowed(acl: Iterable[Acl], wanted: Permission, identities: Collection[Identity]) -> bool:
    """Whether a client of these identities may do one of the wanted things."""
    return any(
        each.permissions & wanted and any(_is(identity, each) for identity in identities)
        for each in acl
    )


def _is(identity: Identity, entry: Acl) -> bool:
    if entry.scheme == "world":
        return True
    if entry.scheme != identity.scheme:
        return False
    if entry.scheme == "ip":
        network = ipaddress.ip_network(entry.id, strict=False)
        return ipaddress.ip_address(identity.id) in network
    return entry.id == identity.id


def resolve(path: str, acl: Iterable[Acl], identities: Collection[Identity]) -> tuple[Acl, ...]:
    """Access as it is kept: `auth` means the requester. Raises InvalidAclError."""
    kept: list[Acl] = []
    for each in acl:
        if each.scheme == "auth":
            own = [identity for identity in identities if identity.scheme == "digest"]
            if not own:
                raise InvalidAclError(path, "auth: the client has not said who it is")
            kept += [Acl(each.permissions, identity.scheme, identity.id) for identity in own]
        elif _is_sound(each):
            kept.append(each)
        else:
            raise InvalidAclError(path, f"{each.scheme}:{each.id} cannot be checked")
    if not kept:
        raise InvalidAclError(path, "it gives no access at all")
    return tuple(dict.fromkeys(kept))


def _is_sound(entry: Acl) -> bool:
    if not 0 <= entry.permissions <= ALL_PERMISSIONS:
        return False
    if entry.scheme == "world":
        return entry.id == "anyone"
    if entry.scheme == "digest":
        return entry.id.count(":") == 1
    if entry.scheme == "ip":
        try:
            ipaddress.ip_network(entry.id, strict=False)
        except ValueError:
            return False
        return True
    return False
