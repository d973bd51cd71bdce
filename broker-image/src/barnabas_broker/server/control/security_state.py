"""What a broker knows of access: the ACLs of its authorizer, and delegation tokens.

It may have neither. Both are kept in the coordination data, and followed there.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING

from barnabas_broker.cluster.failures import each_isolated
from barnabas_broker.security.acl_rules import Rules
from barnabas_broker.security.authorizer import AllowAll, Authorizer
from barnabas_broker.server.control.acl_manager import AclManager, rules_from
from barnabas_broker.zk.store import CoordinationStore
from barnabas_kafka.settings import broker as keys
from barnabas_kafka.settings.broker import BrokerSettings

if TYPE_CHECKING:
    from barnabas_broker.server.control.delegation_token_manager import DelegationTokenManager


class SecurityState:
    """`load` once, then `start`, in the end `stop`. On the loop."""

    def __init__(self, settings: BrokerSettings) -> None:
        """Raises StartupError for what the authorizer's settings cannot be."""
        self._settings = settings
        self._rules: Rules | None = rules_from(settings)
        self.acls: AclManager | None = None
        """None: there is no authorizer."""
        self.tokens: DelegationTokenManager | None = None
        """None: there is no secret key, and so there are no delegation tokens."""

    async def load(self, store: CoordinationStore, *, clock_ms: Callable[[], int]) -> None:
        """Read everything. Raises CoordinationError, MalformedZnodeError, in one line."""
        if self._rules is not None:
            self.acls = AclManager(store, self._rules, clock_ms=clock_ms)
            await self.acls.load()
        key, alias = keys.DELEGATION_TOKEN_SECRET_KEY, keys.DELEGATION_TOKEN_MASTER_KEY
        secret = self._settings[key] or self._settings[alias]
        if secret:
            # Only where it is wanted: a start without tokens does without these modules.
            from barnabas_broker.server.control.delegation_token_manager import (
                DelegationTokenManager,
            )

            self.tokens = DelegationTokenManager(store, self._settings, secret, clock_ms=clock_ms)
            await self.tokens.load()

    def start(self, *, is_controller: Callable[[], asyncio.Future[bool]], shared: bool) -> None:
        """Follow changes from now on; what was changed since the load is read as well.

        `shared` says whether other brokers may change anything.
        """
        if self.acls is not None and shared:
            self.acls.start()
        if self.tokens is not None:
            self.tokens.start_expiry(is_controller)
            if shared:
                self.tokens.start()

    async def stop(self) -> None:
        """End what `load` and `start` began."""
        for part in (self.tokens, self.acls):
            if part is not None:
                await part.stop()

    def on_znode_change(self, path: str | None) -> None:
        """Another broker wrote to a znode, None for any; called from any thread."""
        parts = [part for part in (self.acls, self.tokens) if part is not None]
        each_isolated(
            parts, lambda part: part.on_znode_change(path), "Change notification", name=_kind_of
        )

    @property
    def authorizer(self) -> Authorizer:
        """Decides on the operations of principals; allows all without `authorizer.class.name`."""
        return AllowAll() if self.acls is None else self.acls.authorizer

    def log_left_out(self) -> None:
        """Log how many denials were not logged."""
        if self.acls is not None:
            self.acls.authorizer.audit.log_left_out()


def _kind_of(part: object) -> str:
    return type(part).__name__
