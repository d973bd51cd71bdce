"""Znodes of delegation tokens (`kafka.zk.DelegationTokenInfoZNode`, KIP-48, KIP-373).

`/delegation_token/tokens/<id>` has what is known of a token, without its HMAC, which every broker
works out from the id and the secret. A sequential znode below `/delegation_token/token_changes`
has the id of a token that was created, changed or removed.
"""

from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import quote, unquote

from barnabas_broker.zk.names import is_znode_name
from barnabas_broker.zk.znodes import MalformedZnodeError, decode_object, encode_object

TOKENS: Final = "/delegation_token/tokens"
CHANGES: Final = "/delegation_token/token_changes"
CHANGE_PREFIX: Final = f"{CHANGES}/token_change_"
VERSION: Final = 3
REQUESTERS_SINCE: Final = 3
"""The version since which the requester is stored (KIP-373); before, it is the owner."""


@dataclass(frozen=True, slots=True)
class TokenZnode:
    """What is stored of a token; principals are written `User:alice`."""

    id: str
    owner: str
    requester: str
    renewers: tuple[str, ...]
    issued_at_ms: int
    expires_at_ms: int
    max_at_ms: int

    @property
    def path(self) -> str:
        """Where it is kept."""
        return f"{TOKENS}/{self.id}"

    def encode(self) -> bytes:
        """Version 3."""
        return encode_object(
            {
                "version": VERSION,
                "owner": _sanitized(self.owner),
                "tokenRequester": _sanitized(self.requester),
                "renewers": [_sanitized(each) for each in self.renewers],
                "issueTimestamp": self.issued_at_ms,
                "maxTimestamp": self.max_at_ms,
                "expiryTimestamp": self.expires_at_ms,
                "tokenId": self.id,
            }
        )

    @classmethod
    def decode(cls, token_id: str, data: bytes | None) -> "TokenZnode":
        """Raises MalformedZnodeError."""
        path = f"{TOKENS}/{token_id}"
        value = decode_object(path, data)
        try:
            version = value["version"]
            if not isinstance(version, int) or not 0 < version <= VERSION:
                raise MalformedZnodeError(path, f"a token of version {version}")
            requester = value["tokenRequester" if version >= REQUESTERS_SINCE else "owner"]
            found = cls(
                value["tokenId"],
                _principal(path, value["owner"]),
                _principal(path, requester),
                tuple(_principal(path, each) for each in value["renewers"]),
                _time(path, value["issueTimestamp"]),
                _time(path, value["expiryTimestamp"]),
                _time(path, value["maxTimestamp"]),
            )
        except (KeyError, TypeError) as error:
            raise MalformedZnodeError(path, f"not a token ({error!r})") from error
        if found.id != token_id:
            raise MalformedZnodeError(path, "it has the id of another token")
        return found


def decode_change(path: str, data: bytes | None) -> str:
    """The id of the token that was changed. Raises MalformedZnodeError."""
    try:
        token_id = (data or b"").decode()
    except UnicodeDecodeError as error:
        raise MalformedZnodeError(path, "it names no token") from error
    if not is_znode_name(token_id):
        raise MalformedZnodeError(path, "it names no token")
    return token_id


def _sanitized(principal: str) -> str:
    """As `org.apache.kafka.common.utils.Sanitizer` has it."""
    return quote(principal, safe="").replace("~", "%7E")


def _principal(path: str, text: Any) -> str:
    found = unquote(text) if isinstance(text, str) else ""
    if not found.partition(":")[1]:
        raise MalformedZnodeError(path, "not a token (a principal is malformed)")
    return found


def _time(path: str, value: Any) -> int:
    if not isinstance(value, int) or isinstance(value, bool):
        raise MalformedZnodeError(path, "not a token (a time is malformed)")
    return value
