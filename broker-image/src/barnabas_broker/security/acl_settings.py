"""The settings of Kafka's authorizers: super users, and the default without an ACL."""

from collections.abc import Mapping
from typing import Final, NamedTuple

from barnabas_broker.security.principals import Principal

SUPER_USERS: Final = "super.users"
ALLOW_EVERYONE: Final = "allow.everyone.if.no.acl.found"


class AuthorizerSettings(NamedTuple):
    """What `Rules` is made with."""

    super_users: frozenset[str] = frozenset()
    allow_without: bool = False


def authorizer_settings(given: Mapping[str, str]) -> AuthorizerSettings:
    """Those of a broker. Raises ValueError for what they cannot be."""
    allow = given.get(ALLOW_EVERYONE, "false").strip().lower()
    if allow not in ("true", "false"):
        raise ValueError(f"{ALLOW_EVERYONE}={allow}: neither true nor false")
    users = [each.strip() for each in given.get(SUPER_USERS, "").split(";")]
    try:
        supers = frozenset(str(Principal.parse(each)) for each in users if each)
    except ValueError as error:
        raise ValueError(f"{SUPER_USERS}: {error}") from error
    return AuthorizerSettings(supers, allow == "true")
