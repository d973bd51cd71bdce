"""A Kafka cluster as the operator needs it: a port, and its adaptor on librdkafka's admin client.

Only this module imports the Kafka client. It is used by the operator and by `barnabas local`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final, Protocol

from confluent_kafka import KafkaError, KafkaException, TopicCollection
from confluent_kafka.admin import (
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    ConfigSource,
    NewPartitions,
    NewTopic,
    ResourceType,
)

from barnabas_kafka.ids import id_as_shown
from barnabas_operator.plan.topics import TopicView

TIMEOUT_S: Final = 10.0


class BrokersError(Exception):
    """The cluster refused or cannot be reached; `code` is the protocol's name of the error.

    `reachable` is False where it is worth trying again: no broker, or no controller, has answered.
    """

    def __init__(self, code: str, message: str, *, reachable: bool) -> None:
        self.code = code
        self.message = message
        self.reachable = reachable
        super().__init__(f"{code}: {message}")


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterView:
    """What the cluster says of itself."""

    cluster_id: str
    broker_ids: tuple[int, ...]


class Brokers(Protocol):
    """What the operator asks of a Kafka cluster. All raise BrokersError."""

    def describe(self) -> ClusterView:
        """Who is in the cluster."""
        ...

    def topic_names(self) -> frozenset[str]:
        """All topics, internal ones too."""
        ...

    def topics(self, names: frozenset[str]) -> Mapping[str, TopicView]:
        """These topics, which exist."""
        ...

    def create_topic(
        self, name: str, *, partitions: int, replicas: int, config: Mapping[str, str]
    ) -> None:
        """Make a topic."""
        ...

    def grow_partitions(self, name: str, partitions: int) -> None:
        """Bring a topic to so many partitions."""
        ...

    def alter_config(self, name: str, *, put: Mapping[str, str], drop: frozenset[str]) -> None:
        """Set some settings of a topic and remove others, all or nothing."""
        ...

    def delete_topic(self, name: str) -> None:
        """Delete a topic; one that is gone is no error."""
        ...


class AdminBrokers:
    """The port on a real cluster."""

    def __init__(self, bootstrap_servers: str) -> None:
        self._admin = AdminClient(
            {
                "bootstrap.servers": bootstrap_servers,
                "client.id": "barnabas-operator",
                "socket.timeout.ms": int(TIMEOUT_S * 1000),
                # What is wrong is raised; the log would say it again for every attempt.
                "log_level": 0,
                # Pods get new addresses; an old one must not be tried for long.
                "reconnect.backoff.max.ms": 2000,
                "broker.address.ttl": 1000,
                "log.connection.close": False,
            }
        )

    def describe(self) -> ClusterView:
        """See Brokers."""
        with _errors():
            found = self._admin.describe_cluster(request_timeout=TIMEOUT_S).result()
            ids = tuple(sorted(node.id for node in found.nodes))
            return ClusterView(cluster_id=found.cluster_id or "", broker_ids=ids)

    def topic_names(self) -> frozenset[str]:
        """See Brokers."""
        with _errors():
            return frozenset(self._admin.list_topics(timeout=TIMEOUT_S).topics)

    def topics(self, names: frozenset[str]) -> Mapping[str, TopicView]:
        """See Brokers."""
        if not names:
            return {}
        ordered = sorted(names)
        with _errors():
            futures = self._admin.describe_topics(
                TopicCollection(ordered), request_timeout=TIMEOUT_S
            )
            resources = [ConfigResource(ResourceType.TOPIC, name) for name in ordered]
            configs = self._admin.describe_configs(resources, request_timeout=TIMEOUT_S)
            own = {
                resource.name: _own_settings(future.result())
                for resource, future in configs.items()
            }
            described = {name: future.result() for name, future in futures.items()}
        return {
            name: TopicView(
                name=name,
                topic_id=id_as_shown(str(found.topic_id)) if found.topic_id else "",
                partitions=len(found.partitions),
                replicas=max((len(each.replicas) for each in found.partitions), default=0),
                config=own[name],
            )
            for name, found in described.items()
        }

    def create_topic(
        self, name: str, *, partitions: int, replicas: int, config: Mapping[str, str]
    ) -> None:
        """See Brokers."""
        topic = NewTopic(
            name, num_partitions=partitions, replication_factor=replicas, config=dict(config)
        )
        with _errors():
            self._admin.create_topics([topic], request_timeout=TIMEOUT_S)[name].result()

    def grow_partitions(self, name: str, partitions: int) -> None:
        """See Brokers."""
        wanted = [NewPartitions(name, partitions)]
        with _errors():
            self._admin.create_partitions(wanted, request_timeout=TIMEOUT_S)[name].result()

    def alter_config(self, name: str, *, put: Mapping[str, str], drop: frozenset[str]) -> None:
        """See Brokers."""
        resource = ConfigResource(ResourceType.TOPIC, name)
        for key, value in put.items():
            resource.add_incremental_config(
                ConfigEntry(key, value, incremental_operation=AlterConfigOpType.SET)
            )
        for key in sorted(drop):
            resource.add_incremental_config(
                ConfigEntry(key, None, incremental_operation=AlterConfigOpType.DELETE)
            )
        with _errors():
            futures = self._admin.incremental_alter_configs([resource], request_timeout=TIMEOUT_S)
            futures[resource].result()

    def delete_topic(self, name: str) -> None:
        """See Brokers."""
        try:
            with _errors():
                self._admin.delete_topics([name], request_timeout=TIMEOUT_S)[name].result()
        except BrokersError as error:
            if error.code != "UNKNOWN_TOPIC_OR_PART":
                raise


def _own_settings(entries: Mapping[str, ConfigEntry]) -> Mapping[str, str]:
    """What was set on the topic; the rest are the broker's settings and Kafka's defaults."""
    own = ConfigSource.DYNAMIC_TOPIC_CONFIG
    return {
        name: entry.value or ""
        for name, entry in entries.items()
        # The client gives the number where it promises the enumeration.
        if ConfigSource(entry.source) is own
    }


# librdkafka's own errors, as opposed to a broker's answer, have negative codes. Who says that it is
# not the controller has refused nothing: the next attempt looks for the controller anew.
@contextmanager
def _errors() -> Iterator[None]:
    try:
        yield
    except KafkaException as raised:
        error = raised.args[0]
        reachable = error.code() >= 0 and error.code() != KafkaError.NOT_CONTROLLER
        raise BrokersError(error.name(), error.str(), reachable=reachable) from raised
