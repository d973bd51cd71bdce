"""Bearer tokens of this process: fetched when a connection needs one, and kept for a while.

A token of a file is read each time, so that a rewritten file takes effect. One thread fetches,
and all waiting connections share the result: an identity provider that hangs blocks nothing
else. Nor does it hold up connections while the token fetched last is good: as in Kafka
(`ExpiringCredentialRefreshingLogin`), that one is used until the next one has come.
"""

import asyncio
import logging
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from http.client import HTTPException
from typing import Final

from barnabas_broker.security.bearer_login import (
    BYTES_MAX,
    AccessToken,
    BearerLogin,
    BearerLoginError,
)
from barnabas_broker.server.network.identity_provider import FETCH_TIMEOUT_S, fetch, trusting

log = logging.getLogger(__name__)


class TokenEndpoint:
    """The tokens that one login gets."""

    def __init__(self, login: BearerLogin, now_s: Callable[[], float] = time.time) -> None:
        """Raises StoreError where the trust store for https cannot be used."""
        self.login: Final = login
        self._context = trusting(login.url, login.trust)
        self._now_s = now_s
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="bearer-token")
        self._lock = threading.Lock()  # Over `_last` and `_good`.
        self._last: Future[AccessToken] | None = None
        #: what the last fetch gave that did not fail
        self._good: Future[AccessToken] | None = None

    def token(self) -> AccessToken:
        """A token that is good now; blocks. Raises BearerLoginError."""
        return self._current().result()

    async def provide(self) -> str:
        """Its text, for the client's OAuthBearer."""
        # All waiting connections share the fetch, so it survives the cancellation of one.
        found = await asyncio.shield(asyncio.wrap_future(self._current()))
        return found.text

    def _current(self) -> "Future[AccessToken]":
        with self._lock:
            last = self._last
            if last is None or (last.done() and not self._keeps(last)):
                last = self._last = self._thread.submit(self._renew)
            come = last.done() and last.exception() is None
            if self._good is None or come or not self._lasts(self._good.result()):
                return last
            return self._good

    def _keeps(self, last: "Future[AccessToken]") -> bool:
        if self.login.file is not None or last.exception() is not None:
            return False
        return self._now_s() < last.result().refresh_at_s

    def _lasts(self, token: AccessToken) -> bool:
        """Whether a token is good for longer than the next one can take to come."""
        return self._now_s() + FETCH_TIMEOUT_S < token.expires_at_s

    def _renew(self) -> AccessToken:
        try:
            token = self._fetch()
        except BearerLoginError as error:
            if self._good is not None:  # Else every waiting connection gets the error.
                log.warning("Failed to renew a bearer token, using the last one: %s", error)
            raise
        if self.login.file is None:
            with self._lock:
                self._good = Future()
                self._good.set_result(token)
        return token

    def _fetch(self) -> AccessToken:
        login = self.login
        try:
            if login.file is not None:
                with login.file.open("rb") as file:
                    return AccessToken.of_file(file.read(BYTES_MAX), self._now_s())
            answer = fetch(
                login.url,
                self._context,
                bytes_max=BYTES_MAX,
                posted=login.form,
                headers={"Authorization": login.authorization, "Cache-Control": "no-cache"},
            )
        except BearerLoginError as error:
            raise BearerLoginError(f"{login.url}: {error}") from None
        except (OSError, HTTPException, ValueError) as error:
            raise BearerLoginError(f"no token from {login.url}: {error}") from None
        try:
            return AccessToken.of_answer(answer, self._now_s())
        except BearerLoginError as error:
            raise BearerLoginError(f"{login.url}: {error}") from None
