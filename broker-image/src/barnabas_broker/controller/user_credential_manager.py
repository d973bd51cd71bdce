"""Stores SCRAM credentials as `scram_credentials` decides, for all brokers to read."""

import logging
from collections.abc import Sequence

from barnabas_broker.cluster.failures import refusal
from barnabas_broker.controller import writes
from barnabas_broker.controller.metadata_store import MetadataStore
from barnabas_broker.controller.requests import Outcome
from barnabas_broker.controller.scram_credentials import Deletion, Upsertion, plan_credentials
from barnabas_broker.security.principals import Principal
from barnabas_broker.zk.znodes import ConfigZnode

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
        for user, config in changed.items():
            try:
                znode = ConfigZnode.for_user(user)
                with self._metadata.reading():
                    store = self._metadata.store
                    operations = writes.change_config(store, znode, config, now_ms=now_ms)
                self._metadata.commit(operations, users=[user], now_ms=now_ms)
            except Exception as error:  # The boundary between one user and the others.
                refused[user] = refusal(error, "AlterUserScramCredentials", user)
            else:
                _log.info("Altered SCRAM credentials: user=%r principal=%s", user, principal)
        changes: list[Deletion | Upsertion] = [*deletions, *upsertions]
        users = dict.fromkeys(each.user for each in changes)
        return [
            Outcome.refused(user, refused[user]) if user in refused else Outcome(user)
            for user in users
        ]
