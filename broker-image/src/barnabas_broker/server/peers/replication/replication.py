"""The parts of replication, put together for one broker."""

import asyncio
from collections.abc import Callable
from dataclasses import replace
from typing import Final
from weakref import WeakSet

from barnabas_broker.cluster.failures import call_isolated
from barnabas_broker.cluster.image import Endpoint, MetadataImage
from barnabas_broker.cluster.inter_broker import newest_versions, spoken
from barnabas_broker.log.directories import LogDirectories
from barnabas_broker.replica.context import ReplicationContext
from barnabas_broker.replica.manager import ReplicaManager
from barnabas_broker.replica.replication_quota import ReplicationQuota, ReplicationQuotas
from barnabas_broker.server.peers.peers import EndpointOf, Peers, SecurityOf
from barnabas_broker.server.peers.replication.alter_partition_manager import AlterPartitionManager
from barnabas_broker.server.peers.replication.isr_changes import AlterPartition, IsrChanges
from barnabas_broker.server.peers.replication.replica_fetcher import FetcherContext
from barnabas_broker.server.peers.replication.replica_fetcher_manager import ReplicaFetcherManager
from barnabas_broker.server.peers.replication.truncation import Truncation
from barnabas_broker.server.process.supervised_tasks import background
from barnabas_kafka.host_resolver import HostResolver
from barnabas_kafka.settings import broker as keys
from barnabas_kafka.settings.broker import BrokerSettings
from barnabas_kafka.settings.dynamic import (
    FOLLOWER_THROTTLED_RATE,
    LEADER_THROTTLED_RATE,
    MOVE_THROTTLED_RATE,
    rate_in,
)

METADATA_RETRY_S: Final = 1.0
"""How often metadata is applied again to partitions where that met an unexpected error."""

HELD_CHECK_S: Final = 1.0
"""How often to check high watermarks that wait for a replica outside the ISR."""


class Replication:
    """What copies from other brokers, and what looks after those that copy from here.

    `local_endpoint` is the bound address of a listener of this broker, `security` how to connect to
    that listener of others. `image`, `settings` and
    `broker_epoch` are asked for as they are now. `alter_partition` may be set before `start`;
    `context` and `fetchers` are for the ReplicaManager, `quotas` for serving followers and
    moves logs.
    """

    def __init__(
        self,
        broker_id: int,
        logs: LogDirectories,
        *,
        local_endpoint: Callable[[str], Endpoint | None],
        security: SecurityOf,
        image: Callable[[], MetadataImage],
        settings: Callable[[], BrokerSettings],
        broker_epoch: Callable[[], int],
        monotonic_ms: Callable[[], int],
        clock_ms: Callable[[], int],
    ) -> None:
        self._broker_id = broker_id
        self._local_endpoint = local_endpoint
        self._security = security
        self._image = image
        self._settings = settings
        self._newest = newest_versions(spoken(settings()))
        self._resolver = HostResolver()
        self._made: WeakSet[Peers] = WeakSet()
        self._alter = AlterPartitionManager(
            broker_id,
            self.control_peers("alter-partition"),
            controller_id=lambda: image().controller_id,
            broker_epoch=broker_epoch,
        )
        self.alter_partition: AlterPartition = self._alter.alter
        self._isr_changes = IsrChanges(
            lambda *asked: self.alter_partition(*asked),
            clock_ms=clock_ms,
        )
        self.context = ReplicationContext(
            monotonic_ms,
            lag_max_ms=settings()[keys.REPLICA_LAG_TIME_MAX_MS],
            flush_on_shrink=settings()[keys.BARNABAS_ISR_SHRINK_FLUSH],
            change_isr=self._isr_changes.begin,
            truncated_logs=logs.truncated_logs,
        )
        self.quotas = _quotas(settings())
        self.fetchers = ReplicaFetcherManager(
            self.endpoint_of,
            FetcherContext(
                broker_id=broker_id,
                truncation=Truncation(logs, clock_ms=clock_ms),
                quota=self.quotas.follower,
                truncated_logs=logs.truncated_logs,
                settings=settings,
                broker_epoch=broker_epoch,
                monotonic_ms=monotonic_ms,
                clock_ms=clock_ms,
            ),
            resolver=self._resolver,
            security=security,
        )
        self._fetcher_count = settings()[keys.NUM_REPLICA_FETCHERS]
        self._controller_id = image().controller_id
        self._tasks: list[asyncio.Task[None]] = []

    def endpoint_of(self, broker: int) -> Endpoint | None:
        """Where a live broker is reached by brokers."""
        return self._endpoint(broker, self._settings().inter_broker_listener)

    def control_endpoint_of(self, broker: int) -> Endpoint | None:
        """Where a live broker is reached by its controller, and the controller by brokers.

        That is `control.plane.listener.name` where it is set and the other one has it too; else,
        as while it is introduced broker by broker, the listener of brokers. Apache's controller
        does not do the latter: it does not reach brokers without that listener at all.
        """
        listener = self._settings().control_plane_listener
        dedicated = None if listener is None else self._endpoint(broker, listener)
        return dedicated or self.endpoint_of(broker)

    def _endpoint(self, broker: int, listener: str) -> Endpoint | None:
        known = self._image().brokers.get(broker)
        if known is None:
            return None
        # The DNS name of a terminating pod may vanish before its controlled shutdown completes.
        own = self._local_endpoint(listener) if broker == self._broker_id else None
        registered = known.endpoint(listener)
        if own is None or registered is None:
            return own or registered
        return replace(own, server_name=registered.host)

    def peers(self, purpose: str) -> Peers:
        """Connections to other brokers for one purpose; the caller closes them."""
        return self._peers(purpose, self.endpoint_of)

    def control_peers(self, purpose: str) -> Peers:
        """The same, between the controller and others."""
        return self._peers(purpose, self.control_endpoint_of)

    def _peers(self, purpose: str, endpoint_of: EndpointOf) -> Peers:
        client_id = f"broker-{self._broker_id}-{purpose}"
        made = Peers(
            endpoint_of,
            client_id=client_id,
            newest=self._newest,
            resolver=self._resolver,
            security=self._security,
        )
        self._made.add(made)
        return made

    def start(self, replicas: ReplicaManager) -> None:
        """Begin to look after the in-sync replicas, and to retry metadata that failed to apply."""

        async def shrink() -> None:
            replicas.shrink_isrs()

        async def recheck() -> None:
            replicas.recheck_held()

        async def retry() -> None:
            for _ in replicas.retry_failed():
                await asyncio.sleep(0)  # There may be thousands, as without file descriptors.

        every = background().every
        self._tasks = [
            every("ISR expiration", lambda: self.context.lag_max_ms / 2000, shrink),
            every("high watermark check", lambda: HELD_CHECK_S, recheck),
            every("applying metadata", lambda: METADATA_RETRY_S, retry),
        ]

    def on_image(self) -> None:
        """The replicas have applied the image; apply its live brokers and settings."""
        steps = [made.disconnect_unregistered for made in self._made]
        steps.append(self.fetchers.disconnect_unregistered)
        call_isolated(steps, "Disconnecting", "unregistered brokers")
        controller_id = self._image().controller_id
        if controller_id != self._controller_id:
            self._controller_id = controller_id
            steps = [self._alter.look_at_controller, self._isr_changes.retry_now]
            call_isolated(steps, "ISR changes", "another controller")
        count = self._settings()[keys.NUM_REPLICA_FETCHERS]
        if count != self._fetcher_count:
            self._fetcher_count = count
            self.fetchers.rearrange()
        configs = self._image().broker_configs.get(str(self._broker_id), {})
        self.quotas.leader.limit = rate_in(configs, LEADER_THROTTLED_RATE)
        self.quotas.follower.limit = rate_in(configs, FOLLOWER_THROTTLED_RATE)
        self.quotas.moves.limit = rate_in(configs, MOVE_THROTTLED_RATE)

    async def stop(self) -> None:
        """Copy nothing any more, and ask for nothing."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self._isr_changes.stop()
        await self._alter.stop()
        await self.fetchers.stop()


def _quotas(settings: BrokerSettings) -> ReplicationQuotas:
    windows = settings[keys.REPLICATION_QUOTA_WINDOW_NUM]
    window_ms = settings[keys.REPLICATION_QUOTA_WINDOW_SIZE_SECONDS] * 1000
    return ReplicationQuotas(
        leader=ReplicationQuota(windows=windows, window_ms=window_ms),
        follower=ReplicationQuota(windows=windows, window_ms=window_ms),
        moves=ReplicationQuota(
            windows=settings[keys.ALTER_LOG_DIRS_REPLICATION_QUOTA_WINDOW_NUM],
            window_ms=settings[keys.ALTER_LOG_DIRS_REPLICATION_QUOTA_WINDOW_SIZE_SECONDS] * 1000,
        ),
    )
