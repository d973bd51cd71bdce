"""The TLS and credentials of a session with an ensemble."""

from __future__ import annotations

import json
import ssl
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final


@dataclass(frozen=True, slots=True, kw_only=True)
class Login:
    """A user and password for SASL DIGEST-MD5; `source` is the file and section they are from."""

    username: str
    password: str = field(repr=False)
    source: str = ""

    def __str__(self) -> str:
        return f"the user {self.username}" + (f" ({self.source})" if self.source else "")


@dataclass(frozen=True, slots=True, kw_only=True)
class TlsMaterial:
    """What a context was made of, for a process that has to make it again."""

    check_hostname: bool
    minimum: int
    maximum: int
    ciphers: str | None = None
    trust: str | None = None
    """PEM; None for the authorities of the machine."""
    identity: str | None = field(default=None, repr=False)
    """PEM of key and certificates."""
    password: str | None = field(default=None, repr=False)
    """Of the key."""

    def encode(self) -> bytes:
        """As JSON."""
        return json.dumps({name: getattr(self, name) for name in self.__slots__}).encode()


@dataclass(frozen=True, slots=True, kw_only=True)
class Credentials:
    """What a session shows, speaks over, and puts on the znodes that it makes."""

    login: Login | None = None
    digest: str | None = field(default=None, repr=False)
    """`user:password` of ZooKeeper's own scheme of that name."""
    tls: ssl.SSLContext | None = None
    """Where TLS is spoken; the certificate in it, if there is one, identifies the broker, too."""
    material: TlsMaterial | None = None
    """What `tls` was made of."""
    renewed: Callable[[], tuple[ssl.SSLContext, TlsMaterial] | None] | None = field(
        default=None, compare=False, repr=False
    )
    """Both read again where a file has changed since the last call; reads files, never raises."""
    set_acl: bool = False
    """Whether znodes get ACLs (`acls.py`); without, they are open to all clients."""


NO_CREDENTIALS: Final = Credentials()
