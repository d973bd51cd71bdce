"""Notifies the controller when log directories of this broker fill up, fail, or recover.

Kafka's `LogDirFailureHandler`, in both directions: a notification znode in
the coordination data, upon which the controller asks about all replicas of this broker. It is left
again when others have come into sync with what is led here out of a full directory, for they can
take over then. Lives on the event loop; the controller's thread writes.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import Protocol

from barnabas_broker.server.control.controller_thread import ControllerThread
from barnabas_kafka.ids import TopicPartition

log = logging.getLogger(__name__)


class Leaders(Protocol):
    """What this broker leads."""

    def counted_out_leaders(self) -> frozenset[TopicPartition]:
        """The partitions that others should lead, for their log directory here takes nothing."""


class LogDirEvents:
    """Announces changes of log directories; a single broker has no controller to notify."""

    def __init__(
        self, controller: ControllerThread, replicas: Leaders, now_ms: Callable[[], int]
    ) -> None:
        self._controller = controller
        self._replicas = replicas
        self._now_ms = now_ms
        self._announced: frozenset[TopicPartition] = frozenset()

    def send(self) -> None:
        """A log directory has changed."""
        if not self._controller.shared:
            return
        self._announced = self._replicas.counted_out_leaders()
        now_ms = self._now_ms()
        try:
            propagated = self._controller.run(lambda it: it.propagate_log_dir_event(now_ms=now_ms))
        except RuntimeError:  # The broker is stopping, and others take over anyway.
            return
        propagated.add_done_callback(_log_failure)

    def look(self) -> None:
        """Partition states have changed: announce where more leaders need to be replaced."""
        leaders = self._replicas.counted_out_leaders()
        if leaders <= self._announced:
            self._announced = leaders
        else:
            self.send()


def _log_failure(propagated: asyncio.Future[None]) -> None:
    if not propagated.cancelled() and propagated.exception() is not None:
        log.error(
            "Log directory failure not reported to the controller: %r", propagated.exception()
        )
