"""The parts of a running broker, bundled for the handlers that use them."""

import secrets
from collections.abc import Sequence
from dataclasses import dataclass, field

from barnabas_broker.cluster.image import MetadataImage
from barnabas_broker.coordinator.group.shell import GroupCoordinator
from barnabas_broker.log.directories import LogDirectories
from barnabas_broker.replica.fetch_session import SessionCache
from barnabas_broker.replica.manager import ReplicaManager
from barnabas_broker.server.controller_thread import ControllerThread
from barnabas_broker.server.handler import Handler
from barnabas_broker.server.producer_ids import ProducerIds
from barnabas_kafka.settings.broker import BrokerSettings


@dataclass(slots=True, kw_only=True)
class Broker:
    """One broker process: what its handlers may read and change."""

    id: int
    logs: LogDirectories
    controller: ControllerThread
    replicas: ReplicaManager
    groups: GroupCoordinator
    producer_ids: ProducerIds
    fetch_sessions: SessionCache
    handlers: Sequence[Handler] = field(default_factory=list)

    @property
    def settings(self) -> BrokerSettings:
        """The settings in effect, changes at run time included."""
        return self.controller.settings

    @property
    def image(self) -> MetadataImage:
        """The cluster as it is now."""
        return self.controller.image

    def draw_session_id(self) -> int:
        """A random id for a fetch session: positive, and not to be guessed by others."""
        return secrets.randbelow(2**31 - 1) + 1
