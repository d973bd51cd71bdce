"""Writes transactions and turns what they wrote into the next image, for all shells beside it.

The image is read back from the store after each transaction instead of being worked out a second
time, so that it cannot say anything else than what a restart would find.
"""

import logging
from collections.abc import Callable, Iterable, Sequence

from barnabas_broker.cluster.image import MetadataImage
from barnabas_broker.controller.loading import load_broker_configs, load_topic
from barnabas_broker.zk.store import CoordinationError, CoordinationStore, Operation
from barnabas_kafka.errors import ErrorCode, KafkaError

Listener = Callable[[MetadataImage, MetadataImage], None]

_log = logging.getLogger(__name__)


class Ledger:
    """The store, the image of what is in it, and those who want to hear of changes."""

    def __init__(self, store: CoordinationStore) -> None:
        self.store = store
        self.image = MetadataImage(cluster_id="")
        self.controller_epoch = 0
        self._listeners: list[Listener] = []

    def add_listener(self, listener: Listener) -> None:
        """Have `listener(old, new)` called after each change, in the order of adding."""
        self._listeners.append(listener)

    def commit(
        self,
        operations: Sequence[Operation],
        *,
        topics: Iterable[str] = (),
        removed: Iterable[str] = (),
        broker_configs: bool = False,
        now_ms: int,
    ) -> None:
        """Commit and publish; the keywords say which parts of the image the operations change.

        Raises KafkaError UNKNOWN_SERVER_ERROR, having logged why, where the store fails.
        """
        if not operations:
            return
        try:
            self.store.commit(operations, now_ms=now_ms)
        except CoordinationError as error:
            _log.error("%s", error)
            raise KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR, str(error)) from error
        self.publish(
            self.image.with_changes(
                put=tuple(load_topic(self.store, name) for name in topics),
                remove=frozenset(removed),
                broker_configs=load_broker_configs(self.store) if broker_configs else None,
            )
        )

    def publish(self, image: MetadataImage) -> None:
        """Make `image` the current one and tell the listeners."""
        before, self.image = self.image, image
        for listener in self._listeners:
            listener(before, image)
