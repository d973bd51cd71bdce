"""One broker put together: its parts in the order they need each other."""

import asyncio
import logging
import random
import time
import uuid
from collections.abc import Mapping
from importlib.metadata import version

from barnabas_broker.cluster.image import BrokerRegistration, MetadataImage, TopicImage
from barnabas_broker.controller.shell import Controller
from barnabas_broker.controller.startup import make_parents
from barnabas_broker.coordinator.group.shell import GroupCoordinator
from barnabas_broker.log.config import LogConfig
from barnabas_broker.log.directories import LogDirectories
from barnabas_broker.log.partition_log import PartitionLog
from barnabas_broker.replica.fetch_session import SessionCache
from barnabas_broker.replica.manager import ReplicaManager
from barnabas_broker.replica.topic_rules import TopicRules
from barnabas_broker.security.authorizer import AllowAll
from barnabas_broker.server.addresses import advertised_endpoints
from barnabas_broker.server.broker import Broker
from barnabas_broker.server.buffers import BufferPool
from barnabas_broker.server.call import Unlimited
from barnabas_broker.server.controller_thread import ControllerThread
from barnabas_broker.server.coordination import Coordination
from barnabas_broker.server.dispatch import Dispatcher, collect_handlers
from barnabas_broker.server.listener import Listener
from barnabas_broker.server.producer_ids import ProducerIds, largest_id
from barnabas_broker.server.session import Session
from barnabas_broker.server.upkeep import Upkeep
from barnabas_broker.zk.store import CoordinationError, CoordinationStore
from barnabas_kafka.errors import KafkaError
from barnabas_kafka.ids import TopicPartition
from barnabas_kafka.settings import broker as keys
from barnabas_kafka.settings.broker import BrokerSettings
from barnabas_kafka.settings.definitions import SettingError
from barnabas_kafka.settings.topic import TopicSettings

log = logging.getLogger(__name__)

CONTROLLER_PATIENCE_S = 3
"""How long a stop lets the controller finish what it was asked for."""

SESSION_EVICTION_MS = 120_000
"""Kafka's MIN_INCREMENTAL_FETCH_SESSION_EVICTION_MS, which no setting changes."""


def clock_ms() -> int:
    """The wall clock, milliseconds since the epoch: the only one in the broker."""
    return time.time_ns() // 1_000_000


class Node:
    """A broker. `start` once, then `stop` once."""

    def __init__(self, settings: BrokerSettings) -> None:
        self._given = settings
        self._logs: LogDirectories | None = None
        self._coordination: Coordination | None = None
        self._controller: ControllerThread | None = None
        self.listeners: list[Listener] = []
        self._upkeep: Upkeep | None = None
        self._groups: GroupCoordinator | None = None
        self.broker: Broker

    async def start(self) -> None:
        """Come up; on return clients are served.

        Raises StartupError, LogDirectoryError, CoordinationError or MalformedZnodeError, each with
        one line for the operator; call `stop` then too.
        """
        began = time.monotonic()
        self._logs = logs = LogDirectories.take(self._given[keys.LOG_DIRS])
        self._coordination = coordination = Coordination(self._given, logs.first)
        now_ms = clock_ms()
        store, governed, broker_id = await asyncio.to_thread(
            _govern, self._given, coordination, logs
        )
        _announce(governed.settings, governed.image, broker_id)
        logs.claim(broker_id=broker_id, cluster_id=governed.image.cluster_id)
        logs.load(
            lambda topic: _log_config(governed.settings, governed.image, topic), now_ms=now_ms
        )
        self.listeners = [
            Listener.bind(address, governed.settings) for address in governed.settings.listeners
        ]
        self._controller = controller = ControllerThread(
            governed, loop=asyncio.get_running_loop(), clock_ms=clock_ms
        )
        replicas = ReplicaManager(
            broker_id,
            logs,
            rules_for=lambda topic: _rules(controller.settings, topic),
            clock_ms=clock_ms,
            flush_soon=self._flush_soon,
        )
        self._groups = GroupCoordinator(
            leader=replicas.leader,
            settings=lambda: controller.settings,
            new_id=lambda: str(uuid.uuid4()),
            clock_ms=clock_ms,
        )
        self.broker = Broker(
            id=broker_id,
            logs=logs,
            controller=controller,
            replicas=replicas,
            groups=self._groups,
            producer_ids=ProducerIds(
                store, broker_id, controller=controller, above=largest_id(logs.logs.values())
            ),
            fetch_sessions=_session_cache(controller.settings),
            handlers=collect_handlers(),
        )
        await self._lead(store, shared=coordination.shared, now_ms=now_ms)
        self._upkeep = Upkeep(
            logs, self.listeners, settings=lambda: controller.settings, clock_ms=clock_ms
        )
        self._upkeep.start()
        self._groups.start()
        await self._serve()
        took_ms = (time.monotonic() - began) * 1000
        log.info("broker %d is ready after %.0f ms", broker_id, took_ms)

    async def deposed(self) -> CoordinationError:
        """Wait until this broker may not go on; returns why."""
        return await asyncio.shield(self.broker.controller.deposed)

    async def stop(self) -> None:
        """Go down cleanly; safe after a start that failed half way, or was cancelled."""
        if self._groups is not None:
            self._groups.stop()
        if self._upkeep is not None:
            await self._upkeep.stop()
        for listener in self.listeners:
            await listener.close()
        if self._controller is not None:
            await self._stop_controller(self._controller)
        if self._logs is not None:
            self._logs.close(clean=self._upkeep is not None, now_ms=clock_ms())
        if self._coordination is not None:
            await asyncio.to_thread(self._coordination.close)

    async def _stop_controller(self, controller: ControllerThread) -> None:
        stopping = asyncio.ensure_future(controller.stop())
        _, late = await asyncio.wait({stopping}, timeout=CONTROLLER_PATIENCE_S)
        if late and self._coordination is not None:
            # It waits for an ensemble that is away; without a session it waits no longer.
            await asyncio.to_thread(self._coordination.close)
        await stopping

    async def _lead(self, store: CoordinationStore, *, shared: bool, now_ms: int) -> None:
        """Register, take leadership, and account for everything that lies on disk."""
        broker, controller = self.broker, self.broker.controller
        ports = {listener.name: listener.port for listener in self.listeners}
        registration = BrokerRegistration(
            broker.id,
            advertised_endpoints(controller.settings, ports),
            controller.settings[keys.BROKER_RACK],
        )
        await controller.run(lambda governed: governed.register(registration, now_ms=now_ms))
        found = broker.logs.logs
        if shared:
            _tell_strays(found, controller.image)
        else:
            ids = {tp: partition_log.topic_id for tp, partition_log in found.items()}
            epochs = {tp: partition_log.latest_epoch for tp, partition_log in found.items()}
            await controller.run(lambda it: it.adopt(ids, epochs=epochs, now_ms=now_ms))
        deleting = await controller.run(lambda governed: governed.deleting)
        for tp in [tp for tp in found if tp.topic in deleting]:
            broker.logs.delete(tp, now_ms)
        await controller.run(lambda governed: governed.finish_deletions(now_ms=now_ms))
        self._take_image(MetadataImage(cluster_id=""), controller.image)
        controller.attach(self._take_image)
        if shared:
            store.subscribe(controller.hear)
            # What was written since the controller read everything, and all watches.
            controller.hear(None)

    def _take_image(self, old: MetadataImage, new: MetadataImage) -> dict[str, KafkaError]:
        """Do what an image says: first the replicas, then the coordinator that lives in some."""
        failures = self.broker.replicas.on_image(old, new)
        self.broker.groups.on_image(old, new)
        return failures

    async def _serve(self) -> None:
        dispatcher = Dispatcher(
            self.broker,
            self.broker.handlers,
            authorizer=AllowAll(),
            quotas=Unlimited(),
            clock_ms=clock_ms,
        )
        pool = BufferPool()
        for listener in self.listeners:
            await listener.serve(lambda to: Session(to, dispatcher, pool))
            log.info("listening on %s", listener.address)

    def _flush_soon(self, partition_log: PartitionLog) -> None:
        if self._upkeep is not None:
            self._upkeep.flush_soon(partition_log)


def _govern(
    settings: BrokerSettings, coordination: Coordination, logs: LogDirectories
) -> tuple[CoordinationStore, Controller, int]:
    """Open the coordination data and become the controller; blocks."""
    now_ms = clock_ms()
    store = coordination.open(now_ms=now_ms)
    make_parents(store, now_ms=now_ms)
    broker_id = coordination.broker_id(store, logs.stored_broker_id, now_ms=now_ms)
    controller = Controller(
        store, broker_id=broker_id, settings=settings, random=random.SystemRandom()
    )
    controller.start(
        cluster_id=logs.stored_cluster_id, now_ms=now_ms, found_new=not coordination.shared
    )
    return store, controller, broker_id


def _tell_strays(found: Mapping[TopicPartition, PartitionLog], image: MetadataImage) -> None:
    """Name the topics on disk that the cluster does not have; their files are left alone."""
    strays = sorted({tp.topic for tp in found if image.partition(tp) is None})
    if strays:
        log.warning("on disk but not in the cluster, and left alone: %s", ", ".join(strays))


def _rules(settings: BrokerSettings, topic: TopicImage) -> TopicRules:
    return TopicRules(
        _topic_settings(settings, topic.name, topic.config),
        producer_id_expiration_ms=settings[keys.PRODUCER_ID_EXPIRATION_MS],
    )


def _log_config(settings: BrokerSettings, image: MetadataImage, topic: str) -> LogConfig:
    known = image.topic(topic)
    return LogConfig.from_settings(
        _topic_settings(settings, topic, {} if known is None else known.config),
        producer_id_expiration_ms=settings[keys.PRODUCER_ID_EXPIRATION_MS],
    )


def _topic_settings(
    settings: BrokerSettings, topic: str, overrides: Mapping[str, str]
) -> TopicSettings:
    """The settings of a topic; what a tool wrote that nobody accepts is left out, and logged."""
    remaining = dict(overrides)
    while True:
        try:
            return TopicSettings.resolve(settings, remaining)
        except SettingError as error:
            if remaining.pop(error.key, None) is None:
                raise
            log.error("topic %s: a stored setting is ignored: %s", topic, error)


def _session_cache(settings: BrokerSettings) -> SessionCache:
    return SessionCache(
        slots=settings[keys.MAX_INCREMENTAL_FETCH_SESSION_CACHE_SLOTS],
        eviction_ms=SESSION_EVICTION_MS,
    )


def _announce(settings: BrokerSettings, image: MetadataImage, broker_id: int) -> None:
    """Say what this broker is and which settings it goes by."""
    log.info(
        "Barnabas %s, broker %d of cluster %s",
        version("barnabas-broker"),
        broker_id,
        image.cluster_id,
    )
    for name, value in sorted(settings.changed.items()):
        log.info("setting %s = %s", name, value)
    for name, key in sorted(settings.without_effect.items()):
        log.warning("setting %s has no effect here: %s", name, key.note or "not acted on yet")
    for name, near in sorted(settings.unknown.items()):
        hint = f"; did you mean {near}?" if near else ""
        log.warning("setting %s is unknown and kept as given%s", name, hint)
