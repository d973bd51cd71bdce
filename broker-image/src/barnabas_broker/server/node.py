"""One broker put together: its parts in the order they need each other."""

import logging
import random
import time
from collections.abc import Mapping
from importlib.metadata import version

from barnabas_broker.cluster.image import BrokerRegistration, MetadataImage, TopicImage
from barnabas_broker.controller.shell import Controller
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
from barnabas_broker.server.dispatch import Dispatcher, collect_handlers
from barnabas_broker.server.listener import Listener
from barnabas_broker.server.producer_ids import ProducerIds
from barnabas_broker.server.session import Session
from barnabas_broker.server.upkeep import Upkeep
from barnabas_broker.zk.embedded import EmbeddedStore
from barnabas_kafka.settings import broker as keys
from barnabas_kafka.settings.broker import BrokerSettings
from barnabas_kafka.settings.topic import TopicSettings

log = logging.getLogger(__name__)

FIRST_GENERATED_ID = 1
"""What is added to `reserved.broker.max.id` for a broker that was given no id: it is alone."""


SESSION_EVICTION_MS = 120_000
"""Kafka's MIN_INCREMENTAL_FETCH_SESSION_EVICTION_MS, which no setting changes."""


def clock_ms() -> int:
    """The wall clock, milliseconds since the epoch: the only one in the broker."""
    return time.time_ns() // 1_000_000


class Node:
    """A broker with embedded coordination data. `start` once, then `stop` once."""

    def __init__(self, settings: BrokerSettings) -> None:
        self._given = settings
        self._logs: LogDirectories | None = None
        self._store: EmbeddedStore | None = None
        self.listeners: list[Listener] = []
        self._upkeep: Upkeep | None = None
        self.broker: Broker

    async def start(self) -> None:
        """Come up; on return clients are served.

        Raises StartupError, LogDirectoryError, CoordinationError or MalformedZnodeError, each with
        one line for the operator; call `stop` then too.
        """
        began = time.monotonic()
        self._logs = logs = LogDirectories.take(self._given[keys.LOG_DIRS])
        broker_id = self._broker_id(logs)
        now_ms = clock_ms()
        self._store = store = EmbeddedStore.open(logs.first, now_ms=now_ms)
        controller = Controller(
            store, broker_id=broker_id, settings=self._given, random=random.SystemRandom()
        )
        image = controller.start(cluster_id=logs.stored_cluster_id, now_ms=now_ms)
        _announce(controller.settings, image, broker_id)
        logs.claim(broker_id=broker_id, cluster_id=image.cluster_id)
        logs.load(lambda topic: _log_config(controller, topic), now_ms=now_ms)
        self.listeners = [
            Listener.bind(address, controller.settings) for address in controller.settings.listeners
        ]
        replicas = ReplicaManager(
            broker_id,
            logs,
            rules_for=lambda topic: _rules(controller, topic),
            clock_ms=clock_ms,
            flush_soon=self._flush_soon,
        )
        self.broker = Broker(
            id=broker_id,
            logs=logs,
            controller=controller,
            replicas=replicas,
            producer_ids=ProducerIds(store, broker_id),
            fetch_sessions=_session_cache(controller.settings),
            handlers=collect_handlers(),
        )
        self._lead(now_ms)
        self._upkeep = Upkeep(
            logs, self.listeners, settings=lambda: controller.settings, clock_ms=clock_ms
        )
        self._upkeep.start()
        await self._serve()
        took_ms = (time.monotonic() - began) * 1000
        log.info("broker %d is ready after %.0f ms", broker_id, took_ms)

    async def stop(self) -> None:
        """Go down cleanly; safe after a start that failed half way."""
        if self._upkeep is not None:
            await self._upkeep.stop()
        for listener in self.listeners:
            await listener.close()
        if self._logs is not None:
            self._logs.close(clean=self._upkeep is not None, now_ms=clock_ms())
        if self._store is not None:
            self._store.close()

    def _broker_id(self, logs: LogDirectories) -> int:
        """`broker.id`, or the id the directories were written with, or the first free one."""
        given = self._given[keys.BROKER_ID]
        if given >= 0:
            return given
        if logs.stored_broker_id is not None:
            return logs.stored_broker_id
        return self._given[keys.RESERVED_BROKER_MAX_ID] + FIRST_GENERATED_ID

    def _lead(self, now_ms: int) -> None:
        """Register, adopt what lies on disk and belongs to nobody, and take leadership."""
        broker, controller = self.broker, self.broker.controller
        ports = {listener.name: listener.port for listener in self.listeners}
        controller.register(
            BrokerRegistration(
                broker.id,
                advertised_endpoints(controller.settings, ports),
                controller.settings[keys.BROKER_RACK],
            ),
            now_ms=now_ms,
        )
        found = broker.logs.logs
        controller.adopt(
            {tp: partition_log.topic_id for tp, partition_log in found.items()},
            epochs={tp: partition_log.latest_epoch for tp, partition_log in found.items()},
            now_ms=now_ms,
        )
        for tp in [tp for tp in found if tp.topic in controller.deleting]:
            broker.logs.delete(tp, now_ms)
        controller.finish_deletions(now_ms=now_ms)
        broker.replicas.on_image(MetadataImage(cluster_id=""), controller.image)
        controller.add_listener(broker.replicas.on_image)

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


def _rules(controller: Controller, topic: TopicImage) -> TopicRules:
    settings = controller.settings
    return TopicRules(
        TopicSettings.resolve(settings, topic.config),
        producer_id_expiration_ms=settings[keys.PRODUCER_ID_EXPIRATION_MS],
    )


def _log_config(controller: Controller, topic: str) -> LogConfig:
    image = controller.image.topic(topic)
    overrides: Mapping[str, str] = {} if image is None else image.config
    settings = controller.settings
    return LogConfig.from_settings(
        TopicSettings.resolve(settings, overrides),
        producer_id_expiration_ms=settings[keys.PRODUCER_ID_EXPIRATION_MS],
    )


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
