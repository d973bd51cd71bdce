"""The delegation tokens of a broker that has `delegation.token.secret.key`, and their thread.

Any broker issues, renews and expires tokens. They are loaded before any client is served, and read
again when another broker announces a change. The controller removes those that have expired.
"""

import asyncio
import logging
from collections.abc import Callable
from functools import partial
from typing import Final, TypeVar

from barnabas_broker.cluster.failures import refusal
from barnabas_broker.security.delegation_tokens import (
    TOKENS_MAX,
    TOKENS_OF_OWNER_MAX,
    TokenCache,
    TokenInformation,
    TokenRules,
)
from barnabas_broker.security.principals import Principal
from barnabas_broker.server.control.change_notifications import ChangeNotificationListener
from barnabas_broker.server.control.delegation_token_store import Decide, DelegationTokenStore
from barnabas_broker.server.process.supervised_tasks import background
from barnabas_broker.zk.store import CoordinationError, CoordinationStore
from barnabas_broker.zk.token_znodes import CHANGES
from barnabas_broker.zk.znodes import MalformedZnodeError
from barnabas_kafka.errors import ErrorCode, KafkaError
from barnabas_kafka.settings import broker as keys
from barnabas_kafka.settings.broker import BrokerSettings
from barnabas_zookeeper.errors import ZooKeeperError

logger = logging.getLogger(__name__)

Result = TypeVar("Result")


class DelegationTokenManager(ChangeNotificationListener):
    """Keeps a cluster's tokens; `load` once, then `start`, in the end `stop`. On the loop."""

    def __init__(
        self,
        store: CoordinationStore,
        settings: BrokerSettings,
        secret: str,
        *,
        clock_ms: Callable[[], int],
    ) -> None:
        self.cache: Final = TokenCache(secret)
        self._rules = TokenRules(
            settings[keys.DELEGATION_TOKEN_MAX_LIFETIME_MS],
            settings[keys.DELEGATION_TOKEN_EXPIRY_TIME_MS],
        )
        self._check_s = settings[keys.DELEGATION_TOKEN_EXPIRY_CHECK_INTERVAL_MS] / 1000
        self._tokens = DelegationTokenStore(store, self.cache)
        super().__init__("delegation tokens", self._tokens, (CHANGES,), clock_ms=clock_ms)
        self._expiry: asyncio.Task[None] | None = None

    async def load(self) -> None:
        """Read all tokens. Raises CoordinationError, in one line."""
        try:
            await self._run(lambda: self._tokens.load(now_ms=self._clock_ms()))
        except ZooKeeperError as error:
            raise CoordinationError(f"the delegation tokens cannot be read: {error}") from error
        logger.info("Loaded %d delegation tokens", len(self.cache.tokens))

    def start_expiry(self, is_controller: Callable[[], "asyncio.Future[bool]"]) -> None:
        """Remove expired tokens while this broker is the controller."""
        removal = partial(self._expire_as_controller, is_controller)
        self._expiry = background().every(
            "expiry of delegation tokens", lambda: self._check_s, removal
        )

    async def stop(self) -> None:
        """End what follows changes, and the thread; blocks for what it is at."""
        if self._expiry is not None:
            self._expiry.cancel()
            await asyncio.gather(self._expiry, return_exceptions=True)
        await super().stop()

    def create(
        self,
        owner: Principal,
        requester: Principal,
        renewers: tuple[Principal, ...],
        *,
        lifetime_ms: int,
    ) -> "asyncio.Future[TokenInformation]":
        """Issue a token; the future brings KafkaError where there is none."""

        def create() -> TokenInformation:
            if len(self.cache.tokens) >= TOKENS_MAX:
                message = f"There are {TOKENS_MAX} delegation tokens; no more are issued."
                raise KafkaError(ErrorCode.POLICY_VIOLATION, message)
            if sum(it.owner == owner for it in self.cache.tokens.values()) >= TOKENS_OF_OWNER_MAX:
                message = (
                    f"{owner} has {TOKENS_OF_OWNER_MAX} delegation tokens; no more are issued."
                )
                raise KafkaError(ErrorCode.POLICY_VIOLATION, message)
            now_ms = self._clock_ms()
            token = self._rules.create(
                owner, requester, renewers, lifetime_ms=lifetime_ms, now_ms=now_ms
            )
            self._tokens.create(token, now_ms=now_ms)
            logger.info("Created delegation token %s for owner %s", token.id, owner)
            return token

        return self._run(partial(self._try, create))

    def renew(
        self, principal: Principal, token_hmac: bytes, *, period_ms: int
    ) -> "asyncio.Future[int]":
        """Have a token expire at another time, in milliseconds; the future brings KafkaError."""

        def decide(token: TokenInformation) -> TokenInformation:
            return self._rules.renew(token, principal, period_ms=period_ms, now_ms=self._clock_ms())

        return self._run(partial(self._try, partial(self._change, token_hmac, decide)))

    def expire(
        self, principal: Principal, token_hmac: bytes, *, period_ms: int
    ) -> "asyncio.Future[int]":
        """Have a token expire in that time, at once where it is negative; as `renew`."""

        def decide(token: TokenInformation) -> TokenInformation | None:
            return self._rules.expire(
                token, principal, period_ms=period_ms, now_ms=self._clock_ms()
            )

        return self._run(partial(self._try, partial(self._change, token_hmac, decide)))

    async def remove_expired(self) -> None:
        """Remove every token that has expired; raises the first error when all were tried.

        Raises CoordinationError at once, while ZooKeeper is away.
        """
        now_ms = self._clock_ms()
        failed: KafkaError | None = None
        for token in list(self.cache.tokens.values()):
            if token.has_expired(now_ms):
                try:
                    await self._run(partial(self._remove, token.id))
                except CoordinationError:
                    raise  # No other one could be removed either.
                except Exception as error:  # The boundary between one token and the others.
                    failed = failed or refusal(error, "Expiration", f"token {token.id}")
        if failed is not None:
            raise failed

    # --- in the thread

    def _change(self, token_hmac: bytes, decide: Decide) -> int:
        token_id = self.cache.id_of(token_hmac)
        if token_id is None:
            raise KafkaError(ErrorCode.DELEGATION_TOKEN_NOT_FOUND)
        now_ms = self._clock_ms()
        changed = self._tokens.change(token_id, decide, now_ms=now_ms)
        until_ms = now_ms if changed is None else changed.expires_at_ms
        logger.info("Delegation token %s expires at %d", token_id, until_ms)
        return until_ms

    def _remove(self, token_id: str) -> None:
        now_ms = self._clock_ms()

        def decide(token: TokenInformation) -> TokenInformation | None:
            return None if token.has_expired(now_ms) else token

        try:
            changed = self._tokens.change(token_id, decide, now_ms=now_ms)
        except KafkaError as error:
            if error.code is not ErrorCode.DELEGATION_TOKEN_NOT_FOUND:
                raise
            return  # It is gone already.
        if changed is None:
            logger.info("Removed expired delegation token %s", token_id)

    def _try(self, work: Callable[[], Result]) -> Result:
        try:
            return work()
        except KafkaError:
            raise
        except (CoordinationError, ZooKeeperError, MalformedZnodeError) as error:
            logger.error("Failed to change a delegation token: %s", error)
            self.on_znode_change(None)  # It may or may not be stored.
            raise KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR) from error
        except Exception as error:  # One token that fails must not end what others wait for.
            self.on_znode_change(None)
            raise refusal(error, "Changing", "a delegation token") from error

    # --- on the loop

    async def _expire_as_controller(
        self, is_controller: Callable[[], "asyncio.Future[bool]"]
    ) -> None:
        if await is_controller():
            await self.remove_expired()
