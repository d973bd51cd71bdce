"""What others write to the coordination store, and what a broker makes of it.

Kafka's tools up to 2.8 do their work by writing znodes: a topic is created or grown by its
assignment alone, deleted by a mark, configured by its settings and a notification. Each broker
watches the notifications; the controller watches the other places and does the rest, as Apache's
does. A connection that was lost takes all watches with it, so after it everything is read again.

Each step reads what is there now, whatever the notification says, so one that is repeated, late, or
of an own write costs a read and changes nothing. What cannot be read is logged and left as it was.
"""

import logging
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field, replace

from barnabas_broker.cluster.image import TopicImage
from barnabas_broker.cluster.quota_entity import QuotaConfigs, QuotaEntity
from barnabas_broker.controller import events
from barnabas_broker.controller.config_manager import ConfigManager
from barnabas_broker.controller.events import Event
from barnabas_broker.controller.loading import (
    load_broker_configs,
    load_configs,
    load_quota_configs,
    load_user_configs,
)
from barnabas_broker.controller.metadata_store import MetadataStore
from barnabas_broker.zk.quota_znodes import quota_entity
from barnabas_broker.zk.store import CoordinationStore, Delete, Watch
from barnabas_broker.zk.znodes import (
    CONFIG_BROKERS,
    CONFIG_TOPICS,
    CONFIG_USERS,
    BrokerZnode,
    ConfigChangeZnode,
    ConfigZnode,
    DeleteTopicZnode,
    LogDirEventZnode,
    MalformedZnodeError,
    PreferredElectionZnode,
    ReassignPartitionsZnode,
    TopicZnode,
)

_log = logging.getLogger(__name__)


@dataclass(slots=True)
class ZnodeChanges:
    """The changed paths; None where anything may have changed."""

    paths: Collection[str] | None

    def of(self, path: str) -> bool:
        """Whether this znode may have changed."""
        return self.paths is None or path in self.paths

    def topics(self) -> set[str]:
        """The topics whose own znodes changed."""
        prefix = f"{TopicZnode.ROOT}/"
        return {path.removeprefix(prefix) for path in self.paths or () if path.startswith(prefix)}


def events_of(changes: ZnodeChanges) -> Iterator[tuple[str, Event]]:
    """The events for the active controller, in order, each with its name in the log."""
    if changes.of(BrokerZnode.ROOT):
        yield "brokers", events.BrokerChange()
    if changes.of(LogDirEventZnode.ROOT):
        yield "log directories", events.LogDirEventNotification()
    if changes.of(ConfigChangeZnode.ROOT):
        yield "unclean elections", events.UncleanLeaderElectionEnable()
    yield "deletions", events.TopicDeletionRetried()
    if changes.of(PreferredElectionZnode.PATH):
        yield "elections asked for", events.ZkReplicaLeaderElection()
    if changes.of(ReassignPartitionsZnode.PATH):
        yield "moves asked for", events.ZkPartitionReassignment()


@dataclass(slots=True)
class Follower:
    """Keeps the image in step with writes by others."""

    metadata: MetadataStore
    settings: ConfigManager
    #: topics that are being deleted, and whose znodes are left alone
    ignored: frozenset[str] = frozenset()
    _last_change: str = ""
    _missing: set[str] = field(default_factory=set)
    #: topics whose assignments are watched, those that this controller has created among them
    _watched: set[str] = field(default_factory=set)

    @property
    def _store(self) -> CoordinationStore:
        return self.metadata.store

    def marked_topics(self, changes: ZnodeChanges) -> tuple[list[str], list[str]]:
        """Topics marked for deletion, and marks for topics that do not exist."""
        if not changes.of(DeleteTopicZnode.ROOT):
            return [], []
        self._store.watch(DeleteTopicZnode.ROOT, Watch.CHILDREN)
        marks = self._store.children(DeleteTopicZnode.ROOT)
        present = set(self._store.children(TopicZnode.ROOT)) if marks else set()
        return (
            [name for name in marks if name in present],
            [name for name in marks if name not in present],
        )

    def remove_marks(self, names: Collection[str], *, now_ms: int) -> None:
        """Take away wishes that are not granted, or were for nothing."""
        marks = [DeleteTopicZnode(name).path for name in names]
        found = self._store.get_many(marks)
        gone = [Delete(path) for path, mark in zip(marks, found, strict=True) if mark is not None]
        if gone:
            self.metadata.write(gone, now_ms=now_ms)

    def changed_topics(self, changes: ZnodeChanges) -> list[str]:
        """The topics that others may have created or grown; reading them watches them."""
        known = self.metadata.image.topics
        wanted = changes.topics() & known.keys()
        if not changes.of(TopicZnode.ROOT):
            return sorted(wanted)
        self._store.watch(TopicZnode.ROOT, Watch.CHILDREN)
        present = set(self._store.children(TopicZnode.ROOT)) - self.ignored
        gone = known.keys() - present
        for name in sorted(gone - self._missing):
            # Apache's brokers, too, go on serving it until they are restarted; deleting records
            # because of a slip with the ensemble is nothing to be done at once.
            _log.error("Topic znode missing: topic=%s; serving the topic until a restart", name)
        self._missing = gone
        unread = present - known.keys() | present - self._watched
        self._watched = present
        return sorted(present if changes.paths is None else wanted | unread)

    def read_settings(self, changes: ZnodeChanges) -> None:
        """Bring settings of topics and brokers up to date that others have changed."""
        names, broker_configs, users, quotas = self._config_changes(changes)
        known = self.metadata.image.topics
        if changes.paths is None:
            names = set(known)
        znodes = [ConfigZnode.for_topic(name) for name in sorted(names & known.keys())]
        found = load_configs(self._store, znodes, on_malformed=_stays)
        put = [
            replace(known[name], config=config)
            for name, config in found.items()
            if config != known[name].config
        ]
        configs = load_broker_configs(self._store) if broker_configs else None
        if configs is not None:
            if configs == self.metadata.image.broker_configs:
                configs = None
            else:
                self.settings.load(configs)
        if changes.paths is None:
            user_configs: Mapping[str, Mapping[str, str]] | None = load_user_configs(self._store)
            quota_configs: QuotaConfigs | None = load_quota_configs(self._store)
        else:
            user_configs = self.metadata.read_users(users)
            quota_configs = self.metadata.read_quotas(quotas)
        if user_configs == self.metadata.image.user_configs:
            user_configs = None
        if quota_configs == self.metadata.image.quota_configs:
            quota_configs = None
        self._publish(put, configs, user_configs, quota_configs)

    def _publish(
        self,
        put: list[TopicImage],
        configs: Mapping[str, Mapping[str, str]] | None,
        users: Mapping[str, Mapping[str, str]] | None,
        quotas: QuotaConfigs | None,
    ) -> None:
        if not put and configs is None and users is None and quotas is None:
            return
        image = self.metadata.image.with_changes(
            put=tuple(put), broker_configs=configs, user_configs=users, quota_configs=quotas
        )
        for name, error in self.metadata.publish(image).items():
            _log.error("Topic rejected: topic=%s %s", name, error.message)

    def _config_changes(
        self, changes: ZnodeChanges
    ) -> tuple[set[str], bool, set[str], set[QuotaEntity]]:
        """Topics whose settings may have changed, whether those of brokers may have, and users.

        Users are named as their znodes are. The last are those whose quotas may have changed.
        """
        if not changes.of(ConfigChangeZnode.ROOT):
            return set(), False, set(), set()
        self._store.watch(ConfigChangeZnode.ROOT, Watch.CHILDREN)
        names = self._store.children(ConfigChangeZnode.ROOT)
        new = [name for name in names if name > self._last_change]
        self._last_change = max(names, default=self._last_change)
        if changes.paths is None:
            return set(), True, set(), set()
        topics: set[str] = set()
        users: set[str] = set()
        quotas: set[QuotaEntity] = set()
        brokers = False
        paths = [f"{ConfigChangeZnode.ROOT}/{name}" for name in new]
        for path, found in zip(paths, self._store.get_many(paths), strict=True):
            if found is None:
                continue
            try:
                entity_type, _, name = ConfigChangeZnode.decode(path, found[0]).partition("/")
            except MalformedZnodeError as error:
                _log.error("Change notification ignored: %s", error)
                continue
            brokers |= entity_type == CONFIG_BROKERS
            entity = quota_entity(entity_type, name)
            if entity is not None:
                quotas.add(entity)
            if entity_type == CONFIG_USERS and name and "/" not in name:
                users.add(name)
            if entity_type == CONFIG_TOPICS and name in self.metadata.image.topics:
                topics.add(name)
        return topics, brokers, users, quotas


def _stays(error: MalformedZnodeError) -> None:
    _log.error("Malformed znode: %s; keeping the previous state of the topic", error)
