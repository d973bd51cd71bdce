"""The controller of others at its store: hands events to the core, and performs what it commands.

Everything here happens in the controller's thread, one event after the other. What is decided is
decided in `core`; the target state of all brokers is `view`, which
`server.peers.controller_channel_manager` sends. Nothing here waits for another broker: its
response arrives as an event of its own.
"""

from collections.abc import Iterable
from random import Random
from typing import Any

from barnabas_broker.cluster.image import PartitionState
from barnabas_broker.controller.commands import Answer, Command
from barnabas_broker.controller.config_manager import ConfigManager
from barnabas_broker.controller.context import ControllerContext
from barnabas_broker.controller.core import ControllerCore
from barnabas_broker.controller.events import Event, Failed, Performed
from barnabas_broker.controller.metadata_store import MetadataStore
from barnabas_broker.controller.performing import perform
from barnabas_broker.controller.reassignment import in_progress
from barnabas_broker.controller.target_state import TargetState
from barnabas_kafka.ids import TopicPartition


class ActiveController:
    """The core and its store. `context` is the core's, to be read between two events."""

    def __init__(
        self, metadata: MetadataStore, settings: ConfigManager, *, broker_id: int, random: Random
    ) -> None:
        self._metadata = metadata
        self.context = ControllerContext(
            broker_id=broker_id, settings=settings, random=random, image=metadata.image
        )
        self._core = ControllerCore(self.context)

    def process(self, event: Event, *, now_ms: int) -> Any:
        """Have an event handled; its answer.

        Raises the error that ended it: KafkaError; CoordinationError, ZooKeeperError and
        MalformedZnodeError from what is read.
        """
        self._sync()
        try:
            command = self._core.handle(event)
            while not isinstance(command, Answer):
                command = self._core.handle(self._performed(command, now_ms))
        finally:
            self._core.abandon()
        return command.value

    def _performed(self, command: Command, now_ms: int) -> Event:
        try:
            result = perform(command, self._metadata, now_ms=now_ms)
        except Exception as error:  # The transition knows what it means, or ends by it.
            return Failed(error)
        finally:
            self.context.stale = self._metadata.stale
        return Performed(result)

    def _sync(self) -> None:
        context = self.context
        context.image = self._metadata.image
        context.epoch = self._metadata.controller_epoch
        context.stale = self._metadata.stale

    def end(self) -> None:
        """Forget it all: another broker is the controller."""
        self.context.reset()

    @property
    def view(self) -> TargetState:
        """What is to be true in the cluster."""
        self._sync()
        return self.context.view

    def under_way(
        self, partitions: Iterable[TopicPartition] | None = None
    ) -> dict[TopicPartition, PartitionState]:
        """The partitions, of those given or of all, that are being moved."""
        self._sync()
        if partitions is None:
            return self.context.moving()
        found = {tp: self.context.image.partition(tp) for tp in partitions}
        return {tp: it for tp, it in found.items() if it is not None and in_progress(it)}
