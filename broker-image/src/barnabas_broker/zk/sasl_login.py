"""SASL DIGEST-MD5 as ZooKeeper speaks it, by way of kazoo and pure-sasl.

kazoo sends an empty token, the server answers with its challenge, and after the response with a
proof of its own. A server that does not speak SASL answers with no token at all, which pure-sasl
takes for an invitation to begin: both would go on for ever.
"""

from __future__ import annotations

from typing import Any, Final

from puresasl import SASLProtocolException
from puresasl.mechanisms import DigestMD5Mechanism, mechanisms

from barnabas_broker.zk.credentials import Login

MECHANISM: Final = "ZOOKEEPER-DIGEST-MD5"
SERVICE: Final = "zookeeper"
HOST: Final = "zk-sasl-md5"
"""What ZooKeeper calls every member in the digest, wherever it is."""


class ZooKeeperDigest(DigestMD5Mechanism):  # type: ignore[misc]  # pure-sasl has no types.
    """DIGEST-MD5 that begins once."""

    def __init__(self, sasl: Any, **properties: Any) -> None:
        super().__init__(sasl, **properties)
        sasl.host = HOST
        self._begun = False

    def process(self, challenge: bytes | None = None) -> Any:
        """The answer to a challenge; raises SASLProtocolException where the second one is none."""
        if challenge is None and self._begun:
            raise SASLProtocolException("the server does not answer by SASL")
        self._begun = True
        return super().process(challenge)


mechanisms[MECHANISM] = ZooKeeperDigest


def sasl_options(login: Login | None) -> dict[str, Any] | None:
    """What kazoo hands to pure-sasl; nothing is signed or sealed once a user is known."""
    if login is None:
        return None
    return {
        "mechanism": MECHANISM,
        "service": SERVICE,
        "username": login.username,
        "password": login.password,
        "qops": (b"auth",),
        "callback": _missing,
    }


def _missing(name: str) -> str:
    """What pure-sasl calls for what a challenge lacks. Its own error would end kazoo's thread."""
    raise SASLProtocolException(f"the challenge has no {name}")
