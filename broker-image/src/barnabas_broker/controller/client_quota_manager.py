"""Stores client quotas as `quota_changes` decides, for all brokers to read."""

import logging
from collections.abc import Collection, Sequence

from barnabas_broker.cluster.failures import refusal
from barnabas_broker.cluster.quota_entity import QuotaEntity
from barnabas_broker.controller import writes
from barnabas_broker.controller.loading import load_config
from barnabas_broker.controller.metadata_store import MetadataStore
from barnabas_broker.controller.quota_changes import (
    QuotaAlteration,
    QuotaChange,
    altered,
    check_stored,
    entity_of,
)
from barnabas_broker.security.principals import Principal
from barnabas_broker.zk.quota_znodes import quota_znode, sanitized
from barnabas_kafka.errors import ErrorCode, KafkaError

_log = logging.getLogger(__name__)


class ClientQuotaManager:
    """Changes quotas in the controller's thread; any broker may, as with Kafka's."""

    def __init__(self, metadata: MetadataStore) -> None:
        self._metadata = metadata

    def alter(
        self,
        alterations: Sequence[QuotaAlteration],
        *,
        validate_only: bool,
        unknown_hosts: Collection[str],
        principal: Principal,
        now_ms: int,
    ) -> list[KafkaError | None]:
        """Set and remove quotas; for each entity what went wrong, the others being done.

        `unknown_hosts` are the addresses among them that are none.
        """
        answers: list[KafkaError | None] = []
        for alteration in alterations:
            try:
                entity = entity_of(alteration.parts)
                if entity.ip is not None and entity.ip in unknown_hosts:
                    raise KafkaError(
                        ErrorCode.INVALID_REQUEST,
                        f"{sanitized(entity.ip)} is not a valid IP or resolvable host.",
                    )
                self._alter(entity, alteration.changes, validate_only, principal, now_ms=now_ms)
            except Exception as error:  # The boundary between one entity and the others.
                answers.append(refusal(error, "AlterClientQuotas", alteration.parts))
            else:
                answers.append(None)
        return answers

    def _alter(
        self,
        entity: QuotaEntity,
        changes: Sequence[QuotaChange],
        validate_only: bool,
        principal: Principal,
        *,
        now_ms: int,
    ) -> None:
        znode = quota_znode(entity)
        store = self._metadata.store
        with self._metadata.reading():
            known = load_config(store, znode)
        config = altered(entity, known, changes)
        if validate_only:
            return
        check_stored(entity, config)
        with self._metadata.reading():
            operations = writes.change_config(store, znode, config, now_ms=now_ms)
            if entity.user is not None and entity.client_id is not None:
                parent = znode.path.rpartition("/")[0]
                operations = [*writes.missing_parents(store, [parent]), *operations]
        users = _users(entity)
        self._metadata.commit(operations, users=users, quotas=[entity], now_ms=now_ms)
        _log.info("Altered client quotas: entity=%s principal=%s", znode.entity_path, principal)


def _users(entity: QuotaEntity) -> list[str]:
    """The user whose settings hold an entity's quotas."""
    user = entity.user
    return [user] if isinstance(user, str) and entity.client_id is None else []
