"""What a client has to say to get bearer tokens, and what it takes for one."""

import json
import re
from base64 import urlsafe_b64encode
from typing import Any

import pytest

from barnabas_broker.security.bearer_login import (
    HANDLERS,
    AccessToken,
    BearerLogin,
    BearerLoginError,
)
from tests.oracle.tokens import Signer

URL = "https://idp.example.com/token"
OPTIONS = {"clientId": "broker", "clientSecret": "of-the-broker", "scope": "kafka all"}
NOW_S = 1_000_000.0


def test_the_token_request_has_the_client_credentials_form() -> None:
    """As RFC 6749 (4.4.2) and Kafka's client have it; the secret is shown nowhere else."""
    login = BearerLogin.read(URL, {**OPTIONS, "extension_traceId": "7"}, HANDLERS[0])
    assert login.form == b"grant_type=client_credentials&scope=kafka+all"
    assert login.authorization == "Basic YnJva2VyOm9mLXRoZS1icm9rZXI="
    assert login.extensions == {"traceId": "7"}
    assert "of-the-broker" not in repr(login)
    without = BearerLogin.read(URL, {**OPTIONS, "scope": ""})
    assert without.form == b"grant_type=client_credentials"


@pytest.mark.parametrize(
    ("url", "options", "handler", "reason"),
    [
        ("", OPTIONS, "", "sasl.oauthbearer.token.endpoint.url is missing"),
        ("ldap://idp", OPTIONS, "", "begins with https://"),
        ("https://[", OPTIONS, "", "begins with https://"),
        ("https:///token", OPTIONS, "", "begins with https://"),
        ("file://", OPTIONS, "", "begins with https://"),
        (URL, {"clientId": "broker"}, "", "needs clientId and clientSecret"),
        (URL, {"clientSecret": "x"}, "", "needs clientId and clientSecret"),
        (URL, {**OPTIONS, "unsecuredLoginStringClaim_sub": "x"}, "", "LoginStringClaim_sub"),
        (URL, OPTIONS, "com.example.Handler", "sasl.login.callback.handler.class"),
    ],
)  # fmt: skip
def test_invalid_login_options_are_refused(
    url: str, options: dict[str, str], handler: str, reason: str
) -> None:
    """By its name, and without a secret."""
    with pytest.raises(BearerLoginError, match=re.escape(reason)) as caught:
        BearerLogin.read(url, options, handler)
    assert "of-the-broker" not in str(caught.value)


def test_a_file_needs_no_credentials() -> None:
    """Whoever reads the file has the token."""
    assert str(BearerLogin.read("file:///run/the%20token", {}).file) == "/run/the token"


def encoded(claims: Any) -> str:
    """A token that says so; its signature is not looked at by clients."""
    return f"e30.{urlsafe_b64encode(json.dumps(claims).encode()).decode().rstrip('=')}.x"


def test_when_another_one_is_fetched() -> None:
    """After 80 % of its life, as in Kafka; tokens without `iat` live from now on."""
    token = encoded({"iat": NOW_S - 100, "exp": NOW_S + 100})
    found = AccessToken.of_file(f"{token}\n".encode(), NOW_S)
    assert (found.text, found.refresh_at_s) == (token, NOW_S + 60)
    assert token not in repr(found)
    assert AccessToken.of_file(encoded({"exp": NOW_S + 10}).encode(), NOW_S).refresh_at_s == (
        NOW_S + 8
    )


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"", "not JSON"),
        (b"[" * 100_000, "not JSON"),
        (b"[]", "no access_token"),
        (b'{"access_token": 7}', "no access_token"),
        (b'{"access_token": "opaque"}', "no JSON Web Token"),
        (b'{"access_token": "a.b.c"}', "no JSON Web Token"),
        (b'{"access_token": "a.Ww.c"}', "no JSON Web Token"),
        ('{"access_token": "ä.e30.c"}'.encode(), "no JSON Web Token"),
        (b'{"access_token": "a.e30.c"}', "no time in exp"),
        (json.dumps({"access_token": encoded({"exp": "soon"})}).encode(), "no time in exp"),
        (json.dumps({"access_token": encoded({"exp": NOW_S})}).encode(), "expired"),
        (json.dumps({"access_token": encoded({"exp": float("nan")})}).encode(), "no time in exp"),
        (json.dumps({"access_token": encoded({"exp": 10**400})}).encode(), "no time in exp"),
    ],
)
def test_invalid_token_responses_are_refused(content: bytes, reason: str) -> None:
    """An answer that cannot be used is said to be so, without what it was."""
    with pytest.raises(BearerLoginError, match=reason):
        AccessToken.of_answer(content, NOW_S)


def test_a_token_of_a_provider() -> None:
    """Everything else in the answer is left alone."""
    token = Signer("first", "ES256").token()
    answer = json.dumps({"access_token": token, "token_type": "Bearer", "expires_in": 1}).encode()
    assert AccessToken.of_answer(answer, NOW_S).text == token
