"""The keys of an identity provider: fetched in a thread, and again as long as they are used.

A listener's tokens are checked with the keys of the last fetch that succeeded. Until the first one
has, every token is refused, and the broker serves all others: an identity provider that is down
must not keep a cluster from starting (Kafka's broker does not start then).

A token whose key is not known makes the keys be fetched again at once, so that a provider may sign
with a new key without waiting; at most once in MISSING_KEY_INTERVAL_S, for any client can invent
keys.
"""

import asyncio
import logging
from http.client import HTTPException
from pathlib import Path
from typing import Final

from barnabas_broker.security.bearer_settings import KeySource
from barnabas_broker.security.jwks import BYTES_MAX, KeySet, KeySetError
from barnabas_broker.security.stores import StoreError
from barnabas_broker.server.network.identity_provider import fetch, trusting

logger = logging.getLogger(__name__)

MISSING_KEY_INTERVAL_S: Final = 10.0
REFRESH_MAX_S: Final = 365 * 86_400.0


class JwksEndpoint:
    """The keys behind one address; `follow` fetches them for as long as it runs."""

    def __init__(self, source: KeySource) -> None:
        """Raises StoreError where the trust store for https cannot be used."""
        self.source = source
        self._context = trusting(source.url, source.trust)
        self._keys: KeySet | None = None
        self._missing = asyncio.Event()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._fetched_at = float("-inf")

    @property
    def keys(self) -> KeySet | None:
        """The keys known now, None before the first fetch has succeeded."""
        return self._keys

    def key_missing(self) -> None:
        """Have the keys fetched again soon: a token names one that is not known. On the loop."""
        loop = self._loop
        if loop is not None and loop.time() - self._fetched_at >= MISSING_KEY_INTERVAL_S:
            self._missing.set()

    async def follow(self) -> None:
        """Fetch the keys, again after `refresh.ms`, and sooner after a failure."""
        self._loop = asyncio.get_running_loop()
        failures = 0
        while True:
            self._missing.clear()
            self._fetched_at = self._loop.time()
            try:
                self._keys = await asyncio.to_thread(self.fetch)
            except (OSError, HTTPException, ValueError) as error:
                failures += 1
                pause_s = self._backoff_s(failures)
                logger.error(
                    "Failed to fetch the keys of %s, trying again in %.1f s: %s",
                    self.source.url, pause_s, error,
                )  # fmt: skip
            else:
                failures = 0
                pause_s = min(max(self.source.refresh_ms, 1) / 1000, REFRESH_MAX_S)
                logger.info("Fetched %d keys of %s", len(self._keys.keys), self.source.url)
            try:
                await asyncio.wait_for(self._missing.wait(), pause_s)
            except TimeoutError:
                pass

    def fetch(self) -> KeySet:
        """Fetch the keys now; blocks.

        Raises OSError, HTTPException or ValueError where there are none.
        """
        return KeySet.parse(fetch(self.source.url, self._context, bytes_max=BYTES_MAX))

    def _backoff_s(self, failures: int) -> float:
        first, longest = self.source.retry_backoff_ms, self.source.retry_backoff_max_ms
        pause_ms = min(first << min(failures - 1, 20), longest)
        return min(max(pause_ms, 1) / 1000, REFRESH_MAX_S)


class FileKeys:
    """The keys of a file, as it was when the listener's settings were read."""

    def __init__(self, path: Path) -> None:
        """Raises StoreError where the file holds no keys."""
        try:
            with path.open("rb") as file:
                self.keys: Final = KeySet.parse(file.read(BYTES_MAX + 1))
        except OSError as error:
            raise StoreError(f"{path}: {error.strerror}") from error
        except KeySetError as error:
            raise StoreError(f"{path}: {error}") from error

    def key_missing(self) -> None:
        """A changed file is read again anyway."""
