"""Where a broker's coordination data is, and which broker it is in it.

With `zookeeper.connect` it is an ensemble that others may read and write, without it a file that
belongs to this broker. kazoo, and what reads the broker's ZooKeeper credentials, are imported only
in the first case: a tenth of a second and a few megabytes that an embedded broker does without.
"""

import os
import threading
from collections.abc import Callable
from pathlib import Path

from barnabas_broker.server.process.startup import StartupError
from barnabas_broker.zk.credentials import NO_CREDENTIALS, Credentials
from barnabas_broker.zk.embedded import EmbeddedStore
from barnabas_broker.zk.session_counts import SessionCounts, SessionState
from barnabas_broker.zk.store import CoordinationError, CoordinationStore, Heir, SetData
from barnabas_broker.zk.znodes import BrokerSequenceZnode
from barnabas_kafka.settings import broker as keys
from barnabas_kafka.settings.broker import BrokerSettings
from barnabas_zookeeper.errors import BadVersionError

FIRST_GENERATED_ID = 1
"""What is added to `reserved.broker.max.id` for a broker that was given no id: it is alone."""

SEQUENCE_TRIES_MAX = 100
"""Every lost race means that another broker got an id; a hundred in a row mean a broken store."""


class Coordination:
    """The store of one broker. `open` blocks; `close` may be called from any thread, also then."""

    def __init__(
        self,
        settings: BrokerSettings,
        directory: Path,
        *,
        heir: Heir | None = None,
        hung: Callable[[], bool] = bool,
    ) -> None:
        """`directory` is the first log directory; `heir` ends the session if this process cannot.

        While the broker is `hung` its session says nothing.
        Raises StartupError where the broker lacks the credentials that ZooKeeper demands.
        """
        self._settings = settings
        self._heir = heir
        self._hung = hung
        self._directory = directory
        self.connect = settings[keys.ZOOKEEPER_CONNECT]
        self.store: CoordinationStore | None = None
        self._closed = False
        self._life = threading.Lock()  # Over `store` and `_closed`.
        #: of the session, where the store is an ensemble
        self.counts: SessionCounts | None = None
        self._credentials = self._shown() if self.shared else NO_CREDENTIALS

    @property
    def shared(self) -> bool:
        """Whether others may read and write the same data."""
        return bool(self.connect)

    def open(self, *, now_ms: int) -> CoordinationStore:
        """Open the file, or connect. Raises CoordinationError, in one line."""
        if not self.connect:
            store = EmbeddedStore.open(self._directory, now_ms=now_ms)
            self._keep(store)
            return store
        from barnabas_broker.zk.session import SessionStore  # Late, see above.

        session = SessionStore(
            self.connect,
            session_timeout_ms=self._settings[keys.ZOOKEEPER_SESSION_TIMEOUT_MS],
            max_in_flight=self._settings[keys.ZOOKEEPER_MAX_IN_FLIGHT_REQUESTS],
            heir=self._heir,
            credentials=self._credentials,
            hung=self._hung,
        )
        self.counts = session.counts
        self._keep(session)  # Before it connects, so that `close` can end the attempt.
        session.open(connection_timeout_ms=self._connection_timeout_ms)
        return session

    def broker_id(self, store: CoordinationStore, stored: int | None, *, now_ms: int) -> int:
        """`broker.id`, or the id the directories were written with, or a new one.

        A shared store counts those it has given away, as Apache brokers do. Raises StartupError
        where an id is needed and may not be generated.
        """
        given = self._settings[keys.BROKER_ID]
        if given >= 0:
            return given
        if stored is not None:
            return stored
        reserved = self._settings[keys.RESERVED_BROKER_MAX_ID]
        if not self.shared:
            return reserved + FIRST_GENERATED_ID
        if not self._settings[keys.BROKER_ID_GENERATION_ENABLE]:
            raise StartupError("broker.id is not set, and broker.id.generation.enable is false")
        return reserved + _next_in_sequence(store, now_ms)

    @property
    def reachable(self) -> bool:
        """Whether the data can be read and written now, as far as is known."""
        return self.counts is None or self.counts.state is SessionState.CONNECTED

    def close(self) -> None:
        """Close the file, or end the session; one that is being opened is closed then, too."""
        with self._life:
            store, self.store = self.store, None
            self._closed = True
        if store is not None:
            store.close()

    def _keep(self, store: CoordinationStore) -> None:
        with self._life:
            if not self._closed:
                self.store = store
                return
        store.close()
        raise CoordinationError("the coordination data was closed while it was opened")

    def _shown(self) -> Credentials:
        from barnabas_broker.server.control.zookeeper_security import (
            credentials,  # Late, see above.
        )

        return credentials(self._settings, os.environ)

    @property
    def _connection_timeout_ms(self) -> int:
        return int(self._settings[keys.ZOOKEEPER_CONNECTION_TIMEOUT_MS])


def _next_in_sequence(store: CoordinationStore, now_ms: int) -> int:
    """The next number of /brokers/seqid, which is the version it gets by being written."""
    path = BrokerSequenceZnode.PATH
    for _ in range(SEQUENCE_TRIES_MAX):
        _, stat = store.get(path)
        try:
            store.commit([SetData(path, None, stat.version)], now_ms=now_ms)
        except BadVersionError:
            continue
        return stat.version + 1
    raise CoordinationError(f"lost {SEQUENCE_TRIES_MAX} races for a broker id")
