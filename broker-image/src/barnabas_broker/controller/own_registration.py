"""This broker's own znode under /brokers/ids: made, kept and corrected.

Kafka's `KafkaZkClient.registerBroker`, with what a broker here says besides: whether its logs may
lack their ends (barnabas.unclean.registration).
"""

import logging
from dataclasses import replace

from barnabas_broker.cluster.image import BrokerRegistration
from barnabas_broker.controller.controller_claim import wait_for_own_ghost
from barnabas_broker.controller.registrations import is_unclean
from barnabas_broker.zk.store import CoordinationStore, Create, Delete, Operation, SetData, Watch
from barnabas_broker.zk.znodes import BrokerZnode

_log = logging.getLogger(__name__)


class OwnRegistration:
    """What this broker registers as; None before it has registered."""

    def __init__(self, store: CoordinationStore, broker_id: int) -> None:
        self._store = store
        self._znode = BrokerZnode(broker_id)
        self.wanted: BrokerRegistration | None = None

    def make(self, broker: BrokerRegistration, *, now_ms: int) -> BrokerRegistration:
        """Register; returns what is on record, with its epoch.

        The registration of an earlier session is waited for. Raises CoordinationError where
        another broker of this id goes on living.
        """
        data = self._znode.encode(broker, now_ms=now_ms)
        stat = self._store.exists(self._znode.path)
        operations: list[Operation] = []
        if stat is not None and stat.ephemeral_owner == self._store.session:
            operations.append(Delete(self._znode.path))
        elif stat is not None:
            wait_for_own_ghost(self._store, broker.id)
        operations.append(Create(self._znode.path, data, ephemeral_owner=self._store.session))
        self._store.commit(operations, now_ms=now_ms)
        written, stat = self._store.get(self._znode.path)
        self.wanted = broker
        return self._znode.decode(written, epoch=stat.czxid)

    def trust(self, *, now_ms: int) -> None:
        """Have it say that no log lacks its end. Raises CoordinationError, ZooKeeperError."""
        if self.wanted is not None:
            self.wanted = replace(self.wanted, unclean=False)
            self.correct(now_ms=now_ms)

    def correct(self, *, now_ms: int) -> None:
        """Have it say what is so; it stays the same one, with its epoch."""
        if self.wanted is None or self.wanted.unclean:
            return
        written, stat = self._store.get(self._znode.path)
        if stat.ephemeral_owner == self._store.session and is_unclean(self._znode, written):
            data = self._znode.encode(self.wanted, now_ms=now_ms)
            self._store.commit([SetData(self._znode.path, data, stat.version)], now_ms=now_ms)

    def is_lost(self) -> bool:
        """Whether it is gone, or another session's; watches it."""
        self._store.watch(self._znode.path, Watch.DATA)
        stat = self._store.exists(self._znode.path)
        return stat is None or stat.ephemeral_owner != self._store.session
