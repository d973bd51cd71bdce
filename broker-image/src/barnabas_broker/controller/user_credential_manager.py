"""Stores SCRAM credentials as `scram_credentials` decides, for all brokers to read."""

import logging
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Final

from barnabas_broker.cluster.failures import each_isolated
from barnabas_broker.controller import writes
from barnabas_broker.controller.metadata_store import MetadataStore
from barnabas_broker.controller.requests import Outcome
from barnabas_broker.controller.scram_credentials import Deletion, Upsertion, plan_credentials
from barnabas_broker.security.principals import Principal
from barnabas_broker.zk.znodes import ConfigZnode
from barnabas_kafka.errors import KafkaError

USERS_AT_ONCE: Final = 50
"""Users that one transaction changes: each takes a sync of its own, or a round trip."""

_log = logging.getLogger(__name__)


class UserCredentialManager:
    """Changes users' credentials in the controller's thread."""

    def __init__(self, metadata: MetadataStore) -> None:
        self._metadata = metadata

    def alter(
        self,
        deletions: Sequence[Deletion],
        upsertions: Sequence[Upsertion],
        *,
        principal: Principal,
        now_ms: int,
    ) -> list[Outcome]:
        """Set and remove credentials; one answer for each user, independent of the others."""
        known = self._metadata.image.user_configs
        changed, refused = plan_credentials(known, deletions, upsertions)
        names = list(changed)
        for start in range(0, len(names), USERS_AT_ONCE):
            some = names[start : start + USERS_AT_ONCE]
            if self._write_in([some], changed, now_ms):
                # One may be at fault: the others are to be changed.
                refused |= self._write_in([(user,) for user in some], changed, now_ms)
        for user in names:
            if user not in refused:
                _log.info("Altered SCRAM credentials: user=%r principal=%s", user, principal)
        changes: list[Deletion | Upsertion] = [*deletions, *upsertions]
        users = dict.fromkeys(each.user for each in changes)
        return [
            Outcome.refused(user, refused[user]) if user in refused else Outcome(user)
            for user in users
        ]

    def _write(
        self, users: Collection[str], changed: Mapping[str, Mapping[str, str]], now_ms: int
    ) -> None:
        with self._metadata.reading():
            operations = writes.change_configs(
                self._metadata.store,
                {ConfigZnode.for_user(user): changed[user] for user in users},
                now_ms=now_ms,
            )
        self._metadata.commit(operations, users=users, now_ms=now_ms)

    def _write_in(
        self,
        transactions: Iterable[Collection[str]],
        changed: Mapping[str, Mapping[str, str]],
        now_ms: int,
    ) -> dict[str, KafkaError]:
        """The errors of the users whose transaction failed."""
        failed = each_isolated(
            transactions,
            lambda users: self._write(users, changed, now_ms),
            "AlterUserScramCredentials",
        )
        return {user: each.error for each in failed for user in each.item}
