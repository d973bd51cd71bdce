"""The composition root of a broker: creates its parts, starts them and stops them, in order."""

import asyncio
import contextlib
import logging
import random
import time
import uuid
from collections.abc import Mapping, Sequence
from contextlib import AsyncExitStack
from functools import partial
from typing import TYPE_CHECKING

from barnabas_broker.cluster.failures import call_isolated
from barnabas_broker.cluster.image import (
    OWN_SOFTWARE,
    BrokerRegistration,
    MetadataImage,
)
from barnabas_broker.cluster.inter_broker import asks_controller, served_versions
from barnabas_broker.controller.careful_election import EndsAnswer
from barnabas_broker.controller.controller import Controller
from barnabas_broker.controller.events import TopicDeletionStopReplicaResponseReceived
from barnabas_broker.controller.offline_replicas import Answered
from barnabas_broker.controller.startup import make_parents
from barnabas_broker.controller.target_state import TargetState
from barnabas_broker.coordinator.group.group_coordinator import GroupCoordinator
from barnabas_broker.coordinator.transaction.markers import MarkerWriter
from barnabas_broker.coordinator.transaction.transaction_coordinator import TransactionCoordinator
from barnabas_broker.log.directories import LogDirectories, LogDirectoryError
from barnabas_broker.log.health import DirectoryHealth, Health
from barnabas_broker.log.partition_log import PartitionLog
from barnabas_broker.log.recovery_progress import RecoveryProgress
from barnabas_broker.replica.fetch_session import SessionCache
from barnabas_broker.replica.group_commit import GroupCommits
from barnabas_broker.replica.manager import ReplicaManager
from barnabas_broker.replica.selector import SELECTORS
from barnabas_broker.server.background.background_tasks import BackgroundTasks
from barnabas_broker.server.background.leader_balance import LeaderBalance
from barnabas_broker.server.background.log_cleaner import LogCleaner
from barnabas_broker.server.background.log_mover import LogMover
from barnabas_broker.server.control.controller_thread import ControllerThread
from barnabas_broker.server.control.coordination import Coordination
from barnabas_broker.server.control.log_dir_events import LogDirEvents
from barnabas_broker.server.control.producer_ids import ProducerIds, largest_id
from barnabas_broker.server.control.security_state import SecurityState
from barnabas_broker.server.control.supervision import Supervision
from barnabas_broker.server.control.zookeeper_offsets import ZooKeeperOffsets
from barnabas_broker.server.network.listener import Listener
from barnabas_broker.server.network.socket_server import SocketServer
from barnabas_broker.server.node.addresses import advertised_endpoints
from barnabas_broker.server.node.announcement import announce
from barnabas_broker.server.node.topic_configs import log_config, topic_rules
from barnabas_broker.server.peers.controlled_shutdown import hand_over, hand_over_if_reachable
from barnabas_broker.server.peers.controller_channel_manager import ControllerChannelManager
from barnabas_broker.server.peers.controller_client import ControllerClient
from barnabas_broker.server.peers.replication.isr_writes import IsrWrites
from barnabas_broker.server.peers.replication.replication import Replication
from barnabas_broker.server.peers.transaction_marker_channel_manager import (
    TransactionMarkerChannelManager,
)
from barnabas_broker.server.process.broker_state import BrokerLifecycle, BrokerState
from barnabas_broker.server.process.cooperative_scheduler import (
    CooperativeScheduler,
    Unfinished,
    Work,
)
from barnabas_broker.server.process.loop_progress import LoopProgress
from barnabas_broker.server.requests.broker_services import BrokerServices
from barnabas_broker.server.requests.client_quotas import ClientQuotas
from barnabas_broker.server.requests.dispatch import Dispatcher, collect_handlers
from barnabas_broker.server.transport.limits import (
    memory_bytes,
)
from barnabas_broker.zk.store import CoordinationStore
from barnabas_kafka.errors import KafkaError
from barnabas_kafka.ids import TopicPartition
from barnabas_kafka.settings import broker as keys
from barnabas_kafka.settings.broker import BrokerSettings

if TYPE_CHECKING:
    from barnabas_broker.server.metrics.admin import Admin

log = logging.getLogger(__name__)

CONTROLLER_STOP_TIMEOUT_S = 3
"""How long a stop lets the controller finish what it was asked for."""

FIRST_METADATA_TIMEOUT_S = 30
"""How long a start waits for the controller's first metadata."""

SESSION_EVICTION_MS = 120_000
"""Kafka's MIN_INCREMENTAL_FETCH_SESSION_EVICTION_MS, which no setting changes."""


def clock_ms() -> int:
    """The wall clock, milliseconds since the epoch: the only one in the broker."""
    return time.time_ns() // 1_000_000


def monotonic_ms() -> int:
    """Milliseconds by a clock that is never set, so that it never goes back."""
    return time.monotonic_ns() // 1_000_000


class BrokerServer:
    """A broker. `start` once, then `stop` once."""

    def __init__(
        self,
        settings: BrokerSettings,
        *,
        supervision: Supervision | None = None,
        began_s: float | None = None,
    ) -> None:
        self._given = settings
        self._began_s = began_s
        self._supervision = supervision
        self._stops = AsyncExitStack()
        self._coordination: Coordination
        self._progress = LoopProgress(settings[keys.ZOOKEEPER_SESSION_TIMEOUT_MS] / 1000)
        self._background: BackgroundTasks | None = None
        self.cleaner: LogCleaner | None = None
        self._commits: GroupCommits | None = None
        self._security: SecurityState
        self._unclean = False
        self._loaded = False
        self.admin: Admin | None = None
        self._lifecycle = BrokerLifecycle()
        self._recovery = RecoveryProgress(time.monotonic)
        self.broker: BrokerServices
        self.replication: Replication
        self._isr_writes: IsrWrites | None = None
        self.socket_server: SocketServer
        self._log_dir_events: LogDirEvents
        self._log_dirs_failed: asyncio.Future[LogDirectoryError]

    @property
    def listeners(self) -> Sequence[Listener]:
        """The bound listeners."""
        return self.socket_server.listeners

    async def start(self) -> None:
        """Start the broker; on return clients are served.

        Raises StartupError, LogDirectoryError, CoordinationError or MalformedZnodeError, each with
        one line for the operator; call `stop` then too.
        """
        began_s = time.monotonic() if self._began_s is None else self._began_s
        self._security = SecurityState(self._given)
        self._lifecycle.state = BrokerState.STARTING
        self._open_admin_port()
        Listener.check_ports(self._given)
        logs = LogDirectories.take(self._given[keys.LOG_DIRS])
        self._coordination = coordination = Coordination(
            self._given, logs.first, heir=self._supervision, hung=self._progress.hung
        )
        self._stops.push_async_callback(asyncio.to_thread, coordination.close)
        self._stops.push_async_callback(self._close_logs, logs)
        now_ms = clock_ms()
        store, governed, broker_id = await asyncio.to_thread(
            _open_coordination, self._given, coordination, logs
        )
        announce(governed.settings, governed.image, broker_id)
        logs.claim(broker_id=broker_id, cluster_id=governed.image.cluster_id)
        await self._load(logs, governed, now_ms)
        self._unclean = _started_uncleanly(governed, logs, broker_id)
        self._loaded = True
        if governed.settings[keys.BARNABAS_DURABILITY] == keys.FSYNC:
            self._commits = GroupCommits(asyncio.get_running_loop())
            self._stops.push_async_callback(asyncio.to_thread, self._commits.close)
        self._stops.push_async_callback(self._security.stop)
        await self._security.load(store, clock_ms=clock_ms)
        controller = ControllerThread(governed, loop=asyncio.get_running_loop(), clock_ms=clock_ms)
        self._stops.push_async_callback(self._stop_controller, controller)
        self.broker = self._assemble(broker_id, logs, controller, store)
        self._stops.push_async_callback(asyncio.to_thread, self.broker.heavy.close)
        self._stops.push_async_callback(asyncio.to_thread, self.broker.volumes.close)
        self._stops.push_async_callback(asyncio.to_thread, self.broker.zookeeper_offsets.close)
        self.socket_server = SocketServer(governed.settings, monotonic_ms=monotonic_ms)
        self._stops.push_async_callback(self.socket_server.close)
        self.socket_server.bind(lambda: self.broker)
        for listener in self.listeners:
            if listener.security is not None:
                governed.add_validator(listener.security.validate_reconfiguration)
        await self._register(store, shared=coordination.shared, now_ms=now_ms)
        is_active = partial(controller.run, lambda governed: governed.is_active)
        self._security.start(is_controller=is_active, shared=coordination.shared)
        await self._begin_background_tasks()
        for coordinator in (self.broker.groups, self.broker.transactions):
            coordinator.start()
            self._stops.callback(coordinator.stop)
        self._answer_on_admin_port()
        self.socket_server.serve(self._dispatcher())
        await self._await_first_metadata(controller)
        self._lifecycle.state = BrokerState.RUNNING
        self._progress.start()
        self._stops.callback(self._progress.stop)
        took_ms = (time.monotonic() - began_s) * 1000
        log.info("broker %d is ready after %.0f ms", broker_id, took_ms)

    async def _load(self, logs: LogDirectories, governed: Controller, now_ms: int) -> None:
        """Load every log, which may take minutes; a stop waits only for logs being loaded."""
        self._lifecycle.state = BrokerState.RECOVERY
        loading = asyncio.get_running_loop().run_in_executor(
            None,
            lambda: logs.load(
                lambda topic: log_config(governed.settings, governed.stored, topic),
                now_ms=now_ms,
                threads=governed.settings[keys.NUM_RECOVERY_THREADS_PER_DATA_DIR],
                progress=self._recovery,
            ),
        )
        try:
            await asyncio.shield(loading)
        except asyncio.CancelledError:
            self._recovery.given_up.set()
            # A directory must not be closed while it is being opened.
            await asyncio.gather(loading, return_exceptions=True)
            raise
        self._lifecycle.state = BrokerState.STARTING

    async def _await_first_metadata(self, controller: ControllerThread) -> None:
        """Wait for the first UpdateMetadata, with a timeout."""
        await asyncio.wait({controller.metadata_received}, timeout=FIRST_METADATA_TIMEOUT_S)
        if not controller.metadata_received.done():
            log.warning(
                "No UpdateMetadata received from a controller within %.0f s; connections that "
                "ask for metadata are closed until one arrives",
                FIRST_METADATA_TIMEOUT_S,
            )

    def _assemble(
        self,
        broker_id: int,
        logs: LogDirectories,
        controller: ControllerThread,
        store: CoordinationStore,
    ) -> BrokerServices:
        replicas = self._replicas(broker_id, logs, controller)
        groups = GroupCoordinator(
            leader=replicas.leader,
            settings=lambda: controller.settings,
            new_id=lambda: str(uuid.uuid4()),
            clock_ms=clock_ms,
            memory_bytes=memory_bytes(),
        )
        producer_ids = ProducerIds(
            broker_id, controller=controller, above=largest_id(logs.logs.values())
        )
        markers = MarkerWriter(
            leader=replicas.leader, ended=groups.transaction_ended, clock_ms=clock_ms
        )
        transaction_peers = TransactionMarkerChannelManager(
            broker_id,
            image=lambda: controller.image.announced,
            markers=self.replication.peers("markers"),
            asking=self.replication.peers("transactions"),
        )
        self._stops.push_async_callback(transaction_peers.stop)
        transactions = TransactionCoordinator(
            leader=replicas.leader,
            exists=lambda tp: controller.image.partition(tp) is not None,
            settings=lambda: controller.settings,
            new_producer_id=lambda: producer_ids.next(clock_ms()),
            markers=markers,
            clock_ms=clock_ms,
            elsewhere=transaction_peers,
            memory_bytes=memory_bytes(),
        )
        return BrokerServices(
            id=broker_id,
            logs=logs,
            controller=controller,
            link=self._controller_client(controller),
            replicas=replicas,
            groups=groups,
            mover=LogMover(
                broker_id,
                logs,
                replicas,
                meter=lambda size: self.replication.quotas.moves.record(size, monotonic_ms()),
                threads=controller.settings[keys.NUM_REPLICA_ALTER_LOG_DIRS_THREADS],
                image=lambda: controller.image,
                clock_ms=clock_ms,
            ),
            transactions=transactions,
            transaction_peers=transaction_peers,
            markers=markers,
            producer_ids=producer_ids,
            zookeeper_offsets=ZooKeeperOffsets(
                store,
                znodes_max=lambda: controller.settings[keys.BARNABAS_ZOOKEEPER_OFFSETS_MAX],
            ),
            fetch_sessions=_session_cache(controller.settings),
            replication_quotas=self.replication.quotas,
            quotas=_quotas(controller),
            monotonic_ms=monotonic_ms,
            selector=SELECTORS.get(controller.settings[keys.REPLICA_SELECTOR_CLASS] or ""),
            handlers=collect_handlers(served_versions(controller.settings)),
            security=self._security,
        )

    def _controller_client(self, controller: ControllerThread) -> ControllerClient:
        link = ControllerClient(
            self.replication.control_peers("to-controller"), lambda: controller.image
        )
        self._stops.callback(link.close)
        return link

    def _replicas(
        self, broker_id: int, logs: LogDirectories, controller: ControllerThread
    ) -> ReplicaManager:
        self.replication = Replication(
            broker_id,
            logs,
            local_endpoint=lambda name: next(
                (each.local_endpoint for each in self.listeners if each.name == name), None
            ),
            security=lambda name: next(
                (each.client_security for each in self.listeners if each.name == name), None
            ),
            image=lambda: controller.image,
            settings=lambda: controller.settings,
            broker_epoch=lambda: controller.broker_epoch,
            monotonic_ms=monotonic_ms,
            clock_ms=clock_ms,
        )
        self._stops.push_async_callback(self.replication.stop)
        if controller.shared and not asks_controller(controller.settings):
            self._isr_writes = IsrWrites(controller, monotonic_ms=monotonic_ms, clock_ms=clock_ms)
            self.replication.alter_partition = self._isr_writes.alter
        return ReplicaManager(
            broker_id,
            logs,
            rules_for=lambda topic: topic_rules(controller.settings, topic),
            clock_ms=clock_ms,
            flush_soon=self._flush_soon,
            commits=self._commits,
            context=self.replication.context,
            copying=self.replication.fetchers,
            among_others=controller.shared,
        )

    async def _begin_background_tasks(self) -> None:
        broker, controller = self.broker, self.broker.controller
        self._background = BackgroundTasks(
            broker.logs,
            watch_clients=self._watch_clients,
            drop_unused=self.socket_server.shared.memory.drop_unused,
            settings=lambda: controller.settings,
            clock_ms=clock_ms,
        )
        await self._background.look_for_room()  # Before the first records come.
        self.cleaner = LogCleaner(
            broker.logs, settings=lambda: controller.settings, clock_ms=clock_ms
        )
        self.replication.start(broker.replicas)
        if self._isr_writes is not None:
            self._isr_writes.start()
            self._stops.push_async_callback(self._isr_writes.stop)
        for part in (self._background, self.cleaner, broker.mover):
            part.start()
            self._stops.push_async_callback(part.stop)

    async def log_dirs_failed(self) -> LogDirectoryError:
        """Wait until no log directory is usable and the broker must stop; returns why."""
        return await asyncio.shield(self._log_dirs_failed)

    async def hand_over(self) -> None:
        """Perform a controlled shutdown: other brokers take the leaderships, if there are any."""
        if self.broker.controller.shared:
            self._lifecycle.state = BrokerState.PENDING_CONTROLLED_SHUTDOWN
            broker = self.broker
            broker.replicas.stopping = True
            handing_over = hand_over(broker.link, broker.image, broker.id, broker.settings)
            if not await hand_over_if_reachable(
                handing_over, reachable=lambda: self._coordination.reachable
            ):
                # What waits for an answer of ZooKeeper would hold up every part that stops.
                await asyncio.to_thread(self._coordination.close)

    async def stop(self) -> None:
        """Stop cleanly, in the reverse order of the start; safe after a start that failed."""
        self._lifecycle.state = BrokerState.SHUTTING_DOWN
        await self._stops.aclose()

    async def _close_logs(self, logs: LogDirectories) -> None:
        # Clients are not served any more; liveness probes still are.
        await asyncio.to_thread(
            logs.close,
            clean=self._loaded,
            now_ms=clock_ms(),
            threads=self._given[keys.NUM_RECOVERY_THREADS_PER_DATA_DIR],
        )

    async def _stop_controller(self, controller: ControllerThread) -> None:
        stopping = asyncio.ensure_future(controller.stop())
        _, late = await asyncio.wait({stopping}, timeout=CONTROLLER_STOP_TIMEOUT_S)
        if late:
            # It waits for an ensemble that is away; without a session it waits no longer.
            await asyncio.to_thread(self._coordination.close)
        await stopping

    async def _register(self, store: CoordinationStore, *, shared: bool, now_ms: int) -> None:
        """Register, take leadership, and account for everything that lies on disk."""
        broker, controller = self.broker, self.broker.controller
        ports = {listener.name: listener.port for listener in self.listeners}
        registration = BrokerRegistration(
            broker.id,
            advertised_endpoints(controller.settings, ports),
            controller.settings[keys.BROKER_RACK],
            software=OWN_SOFTWARE,
            unclean=self._unclean,
        )
        broker.logs.truncated_logs.ended = self._register_trusted
        broker.replicas.applied_late = self._apply_metadata_again
        await controller.run(lambda governed: governed.register(registration, now_ms=now_ms))
        found = broker.logs.logs
        self._log_dir_events = LogDirEvents(controller, broker.replicas, clock_ms)
        self._watch(broker.logs)
        if shared:
            _log_strays(found, await controller.run(lambda governed: governed.stored))
            channels = self._channels(controller)
            self._stops.push_async_callback(channels.close)
            controller.attach(self._apply_metadata, channels.take)
            # The elected controller sends which partitions it holds, and their leaders.
            await controller.run(lambda governed: governed.contest(now_ms=clock_ms()))
            store.subscribe(partial(self._on_znode_change, controller))
            # What was written since then, and all watches.
            controller.on_znode_change(None)
            balance = LeaderBalance(controller, clock_ms)
            balance.start()
            self._stops.push_async_callback(balance.stop)
            return
        ids = {tp: partition_log.topic_id for tp, partition_log in found.items()}
        epochs = {tp: partition_log.latest_epoch for tp, partition_log in found.items()}
        await controller.run(lambda it: it.adopt(ids, epochs=epochs, now_ms=now_ms))
        deleting = await controller.run(lambda governed: governed.deleting)
        for tp in [tp for tp in found if tp.topic in deleting]:
            broker.logs.delete(tp, now_ms)
        await controller.run(lambda governed: governed.finish_deletions(now_ms=now_ms))
        applying = self._apply_metadata(MetadataImage(cluster_id=""), controller.image)
        applied = CooperativeScheduler().begin(applying)
        if isinstance(applied, Unfinished):
            await applied.future
        controller.attach(self._apply_metadata)

    def _on_znode_change(self, controller: ControllerThread, path: str | None) -> None:
        """Another broker wrote to a znode, None for any; called from any thread."""
        steps = (
            partial(controller.on_znode_change, path),
            partial(self._security.on_znode_change, path),
        )
        call_isolated(steps, "Change notification", path)

    def _channels(self, controller: ControllerThread) -> ControllerChannelManager:
        """The channels by which this broker, as the controller, sends decisions to the others."""
        replicas = self.broker.replicas

        async def report(number: int, view: TargetState, refused: frozenset[str]) -> None:
            now_ms = clock_ms()
            try:
                answer = TopicDeletionStopReplicaResponseReceived(number, view.deleting, refused)
                await controller.run(lambda it: it.active.process(answer, now_ms=now_ms))
            except (KafkaError, RuntimeError) as error:  # Tried again with the next catch-up.
                log.warning("Topic deletion not completed yet: %s", error)

        async def storage(number: int, answered: Answered) -> None:
            now_ms = clock_ms()
            with contextlib.suppress(RuntimeError):  # The broker is stopping.
                await controller.run(
                    lambda it: it.storage_answered(number, answered, now_ms=now_ms)
                )

        async def ends(
            number: int, epoch: int, answered: Mapping[TopicPartition, EndsAnswer]
        ) -> None:
            now_ms = clock_ms()
            with contextlib.suppress(RuntimeError):  # The broker is stopping.
                await controller.run(
                    lambda it: it.ends_answered(number, epoch, answered, now_ms=now_ms)
                )

        return ControllerChannelManager(
            self.broker.id,
            self.replication.control_peers("control"),
            listener=controller.settings.inter_broker_listener,
            timeout_s=controller.settings[keys.CONTROLLER_SOCKET_TIMEOUT_MS] / 1000,
            stop=lambda tp, delete, ended: replicas.stop(tp, delete=delete, ended=ended),
            report=report,
            storage=storage,
            ends=ends,
            own=replicas,
        )

    def _apply_metadata(
        self, old: MetadataImage, new: MetadataImage
    ) -> Work[Mapping[str, KafkaError]]:
        """Apply an image to the replicas, then to the coordinators whose logs they are."""
        failures = yield from self.broker.replicas.on_image(old, new)
        self._apply_to_coordinators(old, new)
        return failures

    def _apply_to_coordinators(self, old: MetadataImage, new: MetadataImage) -> None:
        broker = self.broker
        steps = (
            self.replication.on_image,
            partial(broker.groups.on_image, old.announced, new.announced),
            partial(broker.transactions.on_image, new.announced),
            partial(broker.quotas.on_image, old, new),
            self._log_dir_events.look,
        )
        call_isolated(steps, "Applying metadata", "this broker")

    def _apply_metadata_again(self) -> None:
        """Apply the image to coordinators whose replicas applied it late."""
        image = self.broker.controller.image
        self._apply_to_coordinators(image, image)

    def _register_trusted(self) -> None:
        """Update the registration: no log of this broker may be truncated any more."""
        log.info("All replicas are leaders or in sync")
        with contextlib.suppress(RuntimeError):  # The broker is stopping.
            done = self.broker.controller.run(lambda governed: governed.trust(now_ms=clock_ms()))
            done.add_done_callback(_log_failed_registration)

    def _watch(self, logs: LogDirectories) -> None:
        """Watch log directories fill up, fail and recover; errors are reported by any thread."""
        loop = asyncio.get_running_loop()
        self._log_dirs_failed = loop.create_future()

        def on_health(health: DirectoryHealth) -> None:
            with contextlib.suppress(RuntimeError):  # The loop has ended.
                loop.call_soon_threadsafe(self._on_directory_health, health)

        logs.watch(on_health)

    def _on_directory_health(self, health: DirectoryHealth) -> None:
        broker = self.broker
        steps = partial(broker.replicas.on_health, health, broker.image), self._log_dir_events.send
        call_isolated(steps, "Handling a change", health.path)
        if health.state is Health.FULL and self._background is not None:
            self._background.retain_soon()
        lost = self.broker.logs.all_offline
        if lost is not None and not self._log_dirs_failed.done():
            self._log_dirs_failed.set_result(LogDirectoryError(lost))

    def _dispatcher(self) -> Dispatcher:
        return Dispatcher(
            self.broker,
            self.broker.handlers,
            authorizer=self._security.authorizer,
            quotas=self.broker.quotas,
            clock_ms=clock_ms,
        )

    def _open_admin_port(self) -> None:
        """Answer probes before anything that may take long."""
        if not self._given[keys.BARNABAS_ADMIN_LISTENER]:
            return
        # Only where it is wanted: the library of metrics is a tenth of an idle broker.
        from barnabas_broker.server.metrics.admin import Admin

        self.admin = Admin(self._given, self._lifecycle, self._recovery)
        self._stops.push_async_callback(self.admin.stop)
        self.admin.start()
        log.info("metrics and probes at %s", self.admin.url)

    def _answer_on_admin_port(self) -> None:
        if self.admin is None or self.cleaner is None:
            return
        from barnabas_broker.server.metrics.background import Kept
        from barnabas_broker.server.metrics.waiting import Waits

        self.admin.serve(
            self.broker,
            self.listeners,
            counters=self.socket_server.counters,
            kept=Kept(
                self.cleaner.manager,
                self.socket_server.shared.memory,
                self.socket_server.shared.output,
                Waits(self._commits, self._coordination.counts),
            ),
            clock_ms=clock_ms,
        )
        self._stops.callback(self.admin.withdraw)

    async def _watch_clients(self) -> None:
        """Once a second: close idle and slow clients, and follow settings and quotas."""
        await self.socket_server.watch(self.broker.settings, self.broker.image.quota_configs)
        steps = self.broker.quotas.expire, self._security.log_left_out
        call_isolated(steps, "Watching", "clients")

    def _flush_soon(self, partition_log: PartitionLog) -> None:
        if self._background is not None:
            self._background.flush_soon(partition_log)


def _open_coordination(
    settings: BrokerSettings, coordination: Coordination, logs: LogDirectories
) -> tuple[CoordinationStore, Controller, int]:
    """Open the coordination data and take one's place there; blocks."""
    now_ms = clock_ms()
    store = coordination.open(now_ms=now_ms)
    make_parents(store, now_ms=now_ms)
    broker_id = coordination.broker_id(store, logs.stored_broker_id, now_ms=now_ms)
    controller = Controller(
        store, broker_id=broker_id, settings=settings, random=random.SystemRandom()
    )
    begin = controller.join if coordination.shared else controller.start
    begin(cluster_id=logs.stored_cluster_id, now_ms=now_ms)
    return store, controller, broker_id


def _log_failed_registration(registered: "asyncio.Future[None]") -> None:
    if not registered.cancelled() and (error := registered.exception()) is not None:
        log.warning("Registration not updated yet, all replicas are in sync: %s", error)


def _started_uncleanly(governed: Controller, logs: LogDirectories, broker_id: int) -> bool:
    """Whether to register as after an unclean shutdown: logs may be truncated.

    Not for topics that are being deleted. Their replicas here may be gone while others are away
    that are in their ISR on record, and no leader will ever find them whole.
    """
    if not (governed.shared and governed.settings[keys.BARNABAS_UNCLEAN_REGISTRATION]):
        return False
    held = {
        TopicPartition(topic.name, index): broker_id in state.isr
        for topic in governed.stored.topics.values()
        if topic.name not in governed.deleting
        for index, state in enumerate(topic.partitions)
        if broker_id in state.replicas
    }
    unclean = logs.find_truncated(held)
    if unclean:
        count = len(logs.truncated_logs.partitions)
        log.warning("Unclean shutdown detected: %d logs may be truncated", count)
    return unclean


def _log_strays(found: Mapping[TopicPartition, PartitionLog], image: MetadataImage) -> None:
    """Name the topics on disk that the cluster does not have; their files are left alone."""
    strays = sorted({tp.topic for tp in found if image.partition(tp) is None})
    if strays:
        log.warning("Stray logs kept on disk: %s", ", ".join(strays))


def _quotas(controller: ControllerThread) -> ClientQuotas:
    configs = controller.image.quota_configs
    return ClientQuotas(controller.settings, configs, clock_ms=monotonic_ms)


def _session_cache(settings: BrokerSettings) -> SessionCache:
    return SessionCache(
        slots=settings[keys.MAX_INCREMENTAL_FETCH_SESSION_CACHE_SLOTS],
        eviction_ms=SESSION_EVICTION_MS,
    )
