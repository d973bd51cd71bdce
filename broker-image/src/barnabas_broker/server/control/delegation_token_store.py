"""Delegation tokens in the coordination data: read, changed, and read again after others' changes.

Every call blocks, in the one thread of the manager (`server.control.delegation_token_manager`). A
token is published as soon as it is known to be stored. A change is one transaction with its
notification: no broker misses it. What is decided about a token goes by what is stored of it, not
by what is known, so that two brokers that change one token do not undo each other's change.
"""

import logging
from collections.abc import Callable, Iterable
from typing import Final

from barnabas_broker.controller.writes import create_parents
from barnabas_broker.security.delegation_tokens import TokenCache, TokenInformation
from barnabas_broker.security.principals import Principal
from barnabas_broker.server.control.change_notifications import ChangeNotifications
from barnabas_broker.zk import token_znodes
from barnabas_broker.zk.store import (
    CoordinationError,
    CoordinationStore,
    Create,
    Delete,
    Operation,
    SetData,
)
from barnabas_broker.zk.token_znodes import TokenZnode
from barnabas_broker.zk.znodes import MalformedZnodeError
from barnabas_kafka.errors import ErrorCode, KafkaError
from barnabas_zookeeper.errors import BadVersionError, NoNodeError

logger = logging.getLogger(__name__)

TRIES_MAX: Final = 10
READ_AT_ONCE: Final = 500

Decide = Callable[[TokenInformation], TokenInformation | None]
"""What becomes of a token; None: it is removed. Raises KafkaError."""


class DelegationTokenStore:
    """The tokens of a cluster; what is known of them is in the cache."""

    def __init__(self, store: CoordinationStore, cache: TokenCache) -> None:
        self._store = store
        self._cache = cache
        self._notifications = ChangeNotifications(store, token_znodes.CHANGES)

    def load(self, *, now_ms: int) -> None:
        """Create Kafka's znodes where they are missing, watch for changes, and read all tokens.

        Raises CoordinationError, ZooKeeperError. A token that cannot be read is logged.
        """
        self._make_parents(now_ms)
        self._changed()
        listed = self._store.children(token_znodes.TOKENS)
        self._read([*self._cache.tokens.keys() - set(listed), *listed])

    def catch_up(self, *, now_ms: int, everything: bool) -> None:
        """Read what was announced since, or everything. Raises as `load`."""
        if everything:
            self.load(now_ms=now_ms)
        else:
            self._read(self._changed())

    def create(self, token: TokenInformation, *, now_ms: int) -> None:
        """Store a new token. Raises CoordinationError, ZooKeeperError."""
        znode = _znode(token)
        for _ in range(TRIES_MAX):
            try:
                self._commit(Create(znode.path, znode.encode()), token.id, now_ms)
            except NoNodeError:
                continue  # Another broker was quicker to remove an old notification.
            self._cache.publish({token.id: token})
            return
        raise CoordinationError(f"lost {TRIES_MAX} races for a delegation token")

    def change(self, token_id: str, decide: Decide, *, now_ms: int) -> TokenInformation | None:
        """Have `decide` say what becomes of a token; returns that.

        Raises KafkaError, CoordinationError, ZooKeeperError, MalformedZnodeError.
        """
        for _ in range(TRIES_MAX):
            path = f"{token_znodes.TOKENS}/{token_id}"
            try:
                data, stat = self._store.get(path)
            except NoNodeError:
                self._cache.publish({token_id: None})
                raise KafkaError(ErrorCode.DELEGATION_TOKEN_NOT_FOUND) from None
            token = _token(TokenZnode.decode(token_id, data))
            changed = decide(token)
            if changed == token:
                self._cache.publish({token_id: token})
                return token
            write: Operation = Delete(path, stat.version)
            if changed is not None:
                write = SetData(path, _znode(changed).encode(), stat.version)
            try:
                self._commit(write, token_id, now_ms)
            except (BadVersionError, NoNodeError):
                continue  # Another broker was quicker.
            self._cache.publish({token_id: changed})
            return changed
        raise CoordinationError(f"lost {TRIES_MAX} races for a delegation token")

    def _commit(self, write: Operation, token_id: str, now_ms: int) -> None:
        notification = Create(token_znodes.CHANGE_PREFIX, token_id.encode(), sequential=True)
        self._store.commit(
            [write, *self._notifications.expired(now_ms), notification], now_ms=now_ms
        )

    def _make_parents(self, now_ms: int) -> None:
        paths = token_znodes.TOKENS, token_znodes.CHANGES
        purpose = "the znodes of delegation tokens"
        create_parents(self._store, paths, now_ms=now_ms, purpose=purpose)

    def _changed(self) -> list[str]:
        """Watch for notifications; the tokens that new ones name."""
        named: dict[str, None] = {}
        for path, data in self._notifications.watch():
            try:
                named[token_znodes.decode_change(path, data)] = None
            except MalformedZnodeError as error:
                logger.error("Delegation token change notification ignored: %s", error)
        return list(named)

    def _read(self, token_ids: Iterable[str]) -> None:
        """Read these tokens, and know of them what is stored."""
        wanted = list(token_ids)
        changes: dict[str, TokenInformation | None] = {}
        for start in range(0, len(wanted), READ_AT_ONCE):
            some = wanted[start : start + READ_AT_ONCE]
            found = self._store.get_many([f"{token_znodes.TOKENS}/{it}" for it in some])
            for token_id, each in zip(some, found, strict=True):
                try:
                    changes[token_id] = (
                        None if each is None else _token(TokenZnode.decode(token_id, each[0]))
                    )
                except MalformedZnodeError as error:
                    logger.error("Delegation token ignored: %s", error)
                    changes[token_id] = None
        if changes:
            self._cache.publish(changes)


def _znode(token: TokenInformation) -> TokenZnode:
    return TokenZnode(
        token.id,
        str(token.owner),
        str(token.requester),
        tuple(map(str, token.renewers)),
        token.issued_at_ms,
        token.expires_at_ms,
        token.max_at_ms,
    )


def _token(znode: TokenZnode) -> TokenInformation:
    return TokenInformation(
        znode.id,
        Principal.parse(znode.owner),
        Principal.parse(znode.requester),
        tuple(map(Principal.parse, znode.renewers)),
        znode.issued_at_ms,
        znode.expires_at_ms,
        znode.max_at_ms,
    )
