"""Bearer tokens from an endpoint: fetched for credentials, kept, shared, and refused."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from barnabas_broker.security.bearer_login import BYTES_MAX, BearerLogin, BearerLoginError
from barnabas_broker.server.network.token_endpoint import TokenEndpoint
from tests.broker.server.network.http_server import Answering, HttpServer
from tests.oracle.tokens import HOUR_S, Signer
from tests.waiting import SETTLE, seconds, wait_for

SIGNER = Signer("first", "ES256")
CREDENTIALS = {"clientId": "alice", "clientSecret": "wonderland", "scope": "kafka"}


class TokenProvider:
    """An identity provider that gives tokens of its clients; each has a number."""

    def __init__(self) -> None:
        self.asked: list[tuple[dict[str, str], bytes]] = []
        self.answer: tuple[int, bytes] | None = None
        self.open = threading.Event()
        self.open.set()
        provider = self

        class Handler(Answering):
            def post(self) -> None:
                form = self.rfile.read(int(self.headers["Content-Length"]))
                headers = {name.lower(): value for name, value in self.headers.items()}
                provider.asked.append((headers, form))
                provider.open.wait(seconds(SETTLE))
                self.answer(*(provider.answer or (200, provider.token())), provider.url)

        self._server = HttpServer(Handler, "/token")
        self.url = self._server.url

    def token(self) -> bytes:
        """What is answered where nothing else is to be."""
        token = SIGNER.token("alice", jti=str(len(self.asked)), aud="kafka")
        return json.dumps({"access_token": token}).encode()

    def close(self) -> None:
        """Stop."""
        self.open.set()
        self._server.close()


@pytest.fixture
def provider() -> Iterator[TokenProvider]:
    """One for each test."""
    started = TokenProvider()
    yield started
    started.close()


def endpoint(url: str, now_s: list[float] | None = None) -> TokenEndpoint:
    """Of alice."""
    login = BearerLogin.read(url, CREDENTIALS)
    return TokenEndpoint(login) if now_s is None else TokenEndpoint(login, lambda: now_s[0])


def test_tokens_are_kept_for_most_of_their_life(provider: TokenProvider) -> None:
    """Connections share one; a new one is fetched before it expires."""
    import time

    now_s = [time.time()]
    tokens = endpoint(provider.url, now_s)
    first = tokens.token()
    assert tokens.token() == first
    now_s[0] += HOUR_S * 0.75
    assert asyncio.run(tokens.provide()) == first.text
    now_s[0] += HOUR_S * 0.1
    wait_for("the next token", lambda: tokens.token() != first)
    ((headers, form), _) = provider.asked
    assert form == b"grant_type=client_credentials&scope=kafka"
    assert headers["authorization"] == "Basic YWxpY2U6d29uZGVybGFuZA=="
    assert headers["content-type"] == "application/x-www-form-urlencoded"


@pytest.mark.parametrize("status", [302, 307, 401, 500])
def test_a_provider_that_gives_none(provider: TokenProvider, status: int) -> None:
    """The status is told, no redirection gets the credentials, and the next call asks again."""
    tokens = endpoint(provider.url)
    provider.answer = (status, b'{"error":"invalid_client"}')
    with pytest.raises(BearerLoginError, match=f"no token from {provider.url}.*{status}") as caught:
        tokens.token()
    assert "wonderland" not in str(caught.value)
    assert len(provider.asked) == 1
    provider.answer = None
    assert tokens.token().text


def test_a_provider_that_hangs_or_fails_while_the_last_token_is_good(
    provider: TokenProvider, caplog: pytest.LogCaptureFixture
) -> None:
    """Connections go on with it, and wait for another one when it is about to expire."""
    import time

    now_s = [time.time()]
    tokens = endpoint(provider.url, now_s)
    first = tokens.token()
    now_s[0] += HOUR_S * 0.85
    provider.open.clear()
    assert asyncio.run(tokens.provide()) == first.text
    provider.answer = (503, b"")
    provider.open.set()
    wait_for("the failure", lambda: "Failed to renew a bearer token" in caplog.text)
    assert tokens.token() == first
    now_s[0] = first.expires_at_s - 1
    with pytest.raises(BearerLoginError, match="503"):
        tokens.token()
    provider.answer = None
    assert tokens.token() != first


def test_an_answer_without_end(provider: TokenProvider) -> None:
    """No more of it is read than a token may be."""
    provider.answer = (200, b" " * (BYTES_MAX + 1))
    with pytest.raises(BearerLoginError, match=f"more than {BYTES_MAX} bytes"):
        endpoint(provider.url).token()


def test_all_that_wait_share_one_request(provider: TokenProvider) -> None:
    """And the end of one of them does not take it from the others."""
    provider.open.clear()
    tokens = endpoint(provider.url)

    async def together() -> list[str]:
        leaving, *others = [asyncio.ensure_future(tokens.provide()) for _ in range(20)]
        await asyncio.sleep(0)
        leaving.cancel()
        provider.open.set()
        return await asyncio.gather(*others)

    assert len(set(asyncio.run(together()))) == 1
    assert len(provider.asked) == 1


def test_a_file_is_read_for_each_connection(tmp_path: Path) -> None:
    """So whoever writes it renews the token."""
    file = tmp_path / "token"
    tokens = endpoint(file.as_uri())
    with pytest.raises(BearerLoginError, match="No such file"):
        tokens.token()
    for jti in ("first", "second"):
        file.write_text(SIGNER.token(jti=jti) + "\n")
        assert tokens.token().text == file.read_text().strip()
    file.write_text(SIGNER.token(exp=1))
    with pytest.raises(BearerLoginError, match=f"{file}: the token has expired"):
        tokens.token()
