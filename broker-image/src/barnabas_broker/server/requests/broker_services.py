"""The parts of a running broker, bundled for the handlers that use them."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from random import SystemRandom
from typing import Final

from barnabas_broker.cluster.image import MetadataImage
from barnabas_broker.coordinator.group.group_coordinator import GroupCoordinator
from barnabas_broker.coordinator.transaction.markers import MarkerWriter
from barnabas_broker.coordinator.transaction.transaction_coordinator import TransactionCoordinator
from barnabas_broker.log.directories import LogDirectories
from barnabas_broker.replica.fetch_session import SessionCache
from barnabas_broker.replica.follower_session import FollowerSession
from barnabas_broker.replica.manager import ReplicaManager
from barnabas_broker.replica.replication_quota import ReplicationQuotas
from barnabas_broker.replica.selector import Selector
from barnabas_broker.server.background.log_mover import LogMover
from barnabas_broker.server.control.acl_manager import AclManager
from barnabas_broker.server.control.controller_thread import ControllerThread
from barnabas_broker.server.control.producer_ids import ProducerIds
from barnabas_broker.server.control.security_state import SecurityState
from barnabas_broker.server.control.zookeeper_offsets import ZooKeeperOffsets
from barnabas_broker.server.peers.controller_client import ControllerClient
from barnabas_broker.server.peers.transaction_marker_channel_manager import (
    TransactionMarkerChannelManager,
)
from barnabas_broker.server.process.offload_pool import OffloadPool
from barnabas_broker.server.process.volumes import Volumes
from barnabas_broker.server.requests.api_metrics import RequestMetrics
from barnabas_broker.server.requests.client_quotas import ClientQuotas
from barnabas_broker.server.requests.handler import Handler
from barnabas_broker.server.requests.pending_responses import Answers
from barnabas_kafka.settings.broker import BrokerSettings

_CHANCE: Final = SystemRandom()
FOLLOWER_SESSIONS: Final = 1000
"""One for each fetcher of each other broker."""


@dataclass(slots=True, kw_only=True)
class BrokerServices:
    """One broker process: what its handlers may read and change."""

    id: int
    logs: LogDirectories
    controller: ControllerThread
    link: ControllerClient
    replicas: ReplicaManager
    groups: GroupCoordinator
    mover: LogMover
    zookeeper_offsets: ZooKeeperOffsets
    transaction_peers: TransactionMarkerChannelManager
    transactions: TransactionCoordinator
    markers: MarkerWriter
    producer_ids: ProducerIds
    fetch_sessions: SessionCache
    replication_quotas: ReplicationQuotas
    quotas: ClientQuotas
    #: ACLs and delegation tokens
    security: SecurityState
    #: milliseconds of a clock that never goes back
    monotonic_ms: Callable[[], int]
    #: of followers, which no number of consumers evicts
    follower_sessions: SessionCache = field(
        default_factory=lambda: SessionCache(
            slots=FOLLOWER_SESSIONS, eviction_ms=120_000, kind=FollowerSession
        )
    )
    #: picks the replica that a consumer reads from (replica.selector.class); None: the leader
    selector: Selector | None = None
    heavy: OffloadPool = field(default_factory=OffloadPool)
    volumes: Volumes = field(default_factory=Volumes)
    handlers: Sequence[Handler] = field(default_factory=list)
    requests: RequestMetrics = field(default_factory=RequestMetrics)
    answers: Answers = field(default_factory=Answers)

    @property
    def acls(self) -> AclManager | None:
        """The ACLs that the authorizer goes by; None: there is no authorizer."""
        return self.security.acls

    @property
    def settings(self) -> BrokerSettings:
        """The settings in effect, changes at run time included."""
        return self.controller.settings

    @property
    def image(self) -> MetadataImage:
        """The cluster as it is now, as far as clients may know of it."""
        return self.controller.image.announced

    def draw_session_id(self) -> int:
        """A random id for a fetch session: positive, and not to be guessed by others."""
        return _CHANCE.randrange(1, 2**31)
