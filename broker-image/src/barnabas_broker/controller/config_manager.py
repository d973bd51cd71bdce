"""Changes of settings at run time: of topics, of this broker, of all brokers.

Holds the broker settings in effect, which are those given at start under those changed since.
"""

import logging
from collections.abc import Callable, Collection, Mapping, Sequence

from barnabas_broker.cluster.failures import refusal
from barnabas_broker.cluster.image import DEFAULT_BROKER
from barnabas_broker.controller import configs, writes
from barnabas_broker.controller.configs import ConfigResource
from barnabas_broker.controller.metadata_store import MetadataStore
from barnabas_broker.controller.requests import ConfigRequest, Outcome
from barnabas_broker.controller.stored_passwords import StoredPasswords
from barnabas_broker.controller.topics import TopicDefaults, check_cleanup_policy, validate_name
from barnabas_broker.security.principals import Principal
from barnabas_broker.zk.znodes import ConfigZnode
from barnabas_kafka.errors import ErrorCode, KafkaError
from barnabas_kafka.settings import broker as keys
from barnabas_kafka.settings import dynamic, topic
from barnabas_kafka.settings.broker import BrokerSettings
from barnabas_kafka.settings.definitions import SettingError

_log = logging.getLogger(__name__)

Validate = Callable[[BrokerSettings, Collection[str]], None]
"""Raises KafkaError where a part of the broker cannot use settings of which these have changed."""


class ConfigManager:
    """Judges and stores changes of settings. `settings` are the broker's, as they are now."""

    def __init__(
        self, metadata: MetadataStore, *, broker_id: int, settings: BrokerSettings
    ) -> None:
        self.settings = settings
        self._metadata = metadata
        self._broker_id = broker_id
        self._passwords = StoredPasswords(settings)
        #: Kafka's `Reconfigurable.validateReconfiguration`; called where settings are changed
        self.validators: list[Validate] = []

    def load(self, stored: Mapping[str, Mapping[str, str]]) -> None:
        """Take over the changes of `stored`, which are by broker as in an image.

        A stored value that this release does not accept is left out and logged, as Kafka does:
        a broker must start, so that the value can be corrected.
        """
        per_broker = self._passwords.decoded(stored.get(str(self._broker_id), {}))
        cluster_wide = dict(stored.get(DEFAULT_BROKER, {}))
        while True:
            try:
                self.settings = self.settings.with_dynamic(per_broker, cluster_wide)
            except SettingError as error:
                layer = per_broker if error.key in per_broker else cluster_wide
                if error.key not in layer:
                    # Two changes contradict each other under the name of a third setting.
                    _log.error("Stored broker configs ignored: %s", error)
                    return
                _log.error("Stored broker config ignored: %s", error)
                del layer[error.key]
            else:
                return

    @property
    def deletion_enabled(self) -> bool:
        """Whether topics may be deleted."""
        return self.settings[keys.DELETE_TOPIC_ENABLE]

    @property
    def elects_carefully(self) -> bool:
        """Whether replicas are asked before one is elected that may have lost its end."""
        return self.settings[keys.BARNABAS_LEADER_RECOVERY_ELECTION_ENABLE]

    @property
    def topic_defaults(self) -> TopicDefaults:
        """What topics have that say nothing else."""
        return TopicDefaults(
            num_partitions=self.settings[keys.NUM_PARTITIONS],
            replication_factor=self.settings[keys.DEFAULT_REPLICATION_FACTOR],
        )

    def elects_uncleanly(self, overrides: Mapping[str, str]) -> bool:
        """Whether a topic with these settings may have a leader that was not in sync."""
        try:
            resolved = topic.TopicSettings.resolve(self.settings, overrides)
        except SettingError as error:
            _log.error("Stored config ignored, unclean leader election stays off: %s", error)
            return False
        return resolved[topic.UNCLEAN_LEADER_ELECTION_ENABLE]

    def check_topic(self, name: str, overrides: Mapping[str, str]) -> None:
        """Raise KafkaError INVALID_CONFIG unless a topic can have these settings."""
        try:
            resolved = topic.validate_overrides(self.settings, overrides)
        except SettingError as error:
            raise KafkaError(ErrorCode.INVALID_CONFIG, str(error)) from error
        check_cleanup_policy(name, resolved[topic.CLEANUP_POLICY])

    def alter_all(
        self,
        requests: Sequence[ConfigRequest],
        incremental: bool,
        validate_only: bool,
        principal: Principal,
        *,
        now_ms: int,
    ) -> list[Outcome]:
        """`alter` each resource; one answer for each, in order."""
        answers = []
        for request in requests:
            answer = self.alter(
                request, incremental=incremental, validate_only=validate_only, now_ms=now_ms
            )
            answers.append(answer)
            if answer.granted and not validate_only:
                names = ", ".join(change.name for change in request.changes)
                kind = request.resource.name.lower()
                _log.info(
                    "Altered configs: configs=%s %s=%r principal=%s",
                    names,
                    kind,
                    request.name,
                    principal,
                )
        return answers

    def alter(
        self, request: ConfigRequest, *, incremental: bool, validate_only: bool, now_ms: int
    ) -> Outcome:
        """Replace or change the settings of one resource, or only say whether that could be."""
        try:
            configs.check_changes(request.changes)
            match request.resource:
                case ConfigResource.TOPIC:
                    self._alter_topic(request, incremental, validate_only, now_ms)
                case ConfigResource.BROKER:
                    self._alter_broker(request, incremental, validate_only, now_ms)
                case _:
                    raise KafkaError(
                        ErrorCode.INVALID_REQUEST,
                        "AlterConfigs is only supported for topics and brokers, "
                        f"but resource type is {request.resource.name}",
                    )
        except Exception as error:  # The boundary between one resource and the others.
            return Outcome.refused(request.name, refusal(error, "AlterConfigs", request.name))
        return Outcome(request.name)

    def _alter_topic(
        self, request: ConfigRequest, incremental: bool, validate_only: bool, now_ms: int
    ) -> None:
        name = request.name
        if name == "":
            raise KafkaError(ErrorCode.INVALID_REQUEST, "Default topic resources are not allowed.")
        validate_name(name)
        known = self._metadata.image.topic(name)
        if known is None:
            raise KafkaError(
                ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"The topic '{name}' does not exist."
            )
        changed = _changed(known.config, request, incremental, topic.KEYS.get)
        try:
            self.check_topic(name, changed)
        except KafkaError as error:
            # In the words of Kafka's `ZkAdminManager`: programs look for them.
            where = f"ConfigResource(type=TOPIC, name='{name}')"
            message = f"Invalid config value for resource {where}: {error.message}"
            raise KafkaError(error.code, message) from error
        if validate_only:
            return
        znode = ConfigZnode.for_topic(name)
        with self._metadata.reading():
            operations = writes.change_config(self._metadata.store, znode, changed, now_ms=now_ms)
        self._metadata.commit(operations, configured=[name], now_ms=now_ms)

    def _alter_broker(
        self, request: ConfigRequest, incremental: bool, validate_only: bool, now_ms: int
    ) -> None:
        key = configs.broker_key(request.name, broker_id=self._broker_id)
        stored = self._stored(key)
        before = self._passwords.decoded(stored)
        changed = _changed(before, request, incremental, dynamic.find_setting)
        scope = dynamic.Scope.CLUSTER if key == DEFAULT_BROKER else dynamic.Scope.BROKER
        try:
            settings = dynamic.validate_changes(self.settings, changed, scope=scope)
        except SettingError as error:
            # Kafka answers so for brokers, and INVALID_CONFIG for topics.
            raise KafkaError(ErrorCode.INVALID_REQUEST, error.to_clients) from error
        touched = {change.name for change in request.changes}
        for validate in self.validators:
            validate(settings, touched | (before.keys() - changed.keys()))
        encoded = self._passwords.encoded(changed, before, stored)
        if incremental:
            unread = stored.keys() - before.keys() - touched
            encoded |= {name: stored[name] for name in unread}
        if validate_only:
            return
        znode = ConfigZnode.for_broker(key)
        with self._metadata.reading():
            operations = writes.change_config(self._metadata.store, znode, encoded, now_ms=now_ms)
        # Listeners read the settings when the image changes, so these come first; a store that
        # fails takes no more writes, and the settings go back with it.
        settings_before, self.settings = self.settings, settings
        try:
            self._metadata.commit(operations, broker_configs=True, now_ms=now_ms)
        except KafkaError:
            self.settings = settings_before
            raise

    def _stored(self, key: str) -> Mapping[str, str]:
        return self._metadata.image.broker_configs.get(key, {})


def _changed(
    current: Mapping[str, str], request: ConfigRequest, incremental: bool, lookup: configs.KeyLookup
) -> dict[str, str]:
    if incremental:
        return configs.incremented(current, request.changes, lookup)
    return configs.replaced(request.changes)
