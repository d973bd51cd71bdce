"""Bearer tokens for commands, by the same properties for either client library (KIP-768).

The properties are librdkafka's (`properties` translates Java's). Its own way to fetch tokens is not
used, so that a command behaves alike whichever library connects for it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from barnabas_broker.cli.errors import CommandError, InputError
from barnabas_broker.cli.properties import BEARER, BEARER_EXTENSIONS, BEARER_OPTIONS
from barnabas_broker.security.bearer_login import ENDPOINT, BearerLogin, BearerLoginError
from barnabas_broker.security.stores import StoreError
from barnabas_broker.server.network.token_endpoint import TokenEndpoint
from barnabas_kafka.client.sasl import OAuthBearer

OWN = frozenset((ENDPOINT, BEARER_EXTENSIONS, *BEARER_OPTIONS.values(), f"{BEARER}method"))
"""The properties that are honoured here, and not by librdkafka."""
UNSECURED = "enable.sasl.oauthbearer.unsecure.jwt"
"""Of librdkafka, which then makes unsecured tokens."""


def for_librdkafka(properties: Mapping[str, str]) -> dict[str, Any]:
    """The properties of a command that logs in with tokens.

    InputError as for `oauth_bearer`, CommandError where no token is to be had.
    """
    if properties.get(UNSECURED) == "true":
        return dict(properties)
    others = {name: value for name, value in properties.items() if name not in OWN}
    return {**others, "oauth_cb": _token_callback(properties)}


def oauth_bearer(properties: Mapping[str, str]) -> OAuthBearer:
    """For the admin client; InputError for what is missing or not supported."""
    endpoint = _endpoint(properties)
    return OAuthBearer(endpoint.provide, endpoint.login.extensions)


def _token_callback(properties: Mapping[str, str]) -> Callable[[str], tuple[Any, ...]]:
    endpoint = _endpoint(properties)
    try:
        endpoint.token()  # Else librdkafka waits ten seconds for it, and does not say why.
    except BearerLoginError as error:
        raise CommandError(str(error)) from None

    def answer(_: str) -> tuple[Any, ...]:
        token = endpoint.token()
        return token.text, token.expires_at_s, "", dict(endpoint.login.extensions)

    return answer


def _endpoint(properties: Mapping[str, str]) -> TokenEndpoint:
    options = {
        option: properties[name] for option, name in BEARER_OPTIONS.items() if name in properties
    }
    for pair in filter(None, properties.get(BEARER_EXTENSIONS, "").split(",")):
        name, _, value = pair.partition("=")
        options[f"extension_{name}"] = value
    try:
        return TokenEndpoint(BearerLogin.read(properties.get(ENDPOINT, ""), options))
    except (BearerLoginError, StoreError) as error:
        raise InputError(f"sasl.mechanism=OAUTHBEARER: {error}") from None
