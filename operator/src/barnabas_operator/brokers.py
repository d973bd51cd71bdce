"""A Kafka cluster as the operator needs it: a port, and its adaptor on the admin client.

Only this module imports the Kafka client. It is used by the operator and by `barnabas local`.
"""

from __future__ import annotations

import os
import ssl
from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any, Final, Protocol, Self, TypeVar

from barnabas_kafka.client import Acl as KafkaAcl
from barnabas_kafka.client import (
    AclFilter,
    AclOperation,
    AclPermission,
    AclResourceType,
    Admin,
    AlterConfigOp,
    ClientConfig,
    ClientError,
    ClientThread,
    ConfigChange,
    ConfigEntry,
    ConfigSource,
    NewTopic,
    Operation,
    PatternType,
    QuotaEntity,
    Results,
    ScramCredential,
    TopicDescription,
    UnsupportedVersionError,
    alter_configs,
    alter_quotas,
    alter_scram_credentials,
    broker_resource,
    create_acls,
    create_partitions,
    create_topics,
    delete_acls,
    delete_topics,
    describe_acls,
    describe_cluster,
    describe_configs,
    describe_quotas,
    describe_scram_credentials,
    describe_topics,
    elect_leaders,
    list_topics,
    topic_resource,
)
from barnabas_kafka.client.sasl import ScramMechanism
from barnabas_kafka.errors import ErrorCode
from barnabas_kafka.ids import ZERO_UUID, uuid_to_base64
from barnabas_operator.api import users as user_words
from barnabas_operator.api.authentication import AuthenticationType
from barnabas_operator.plan.observed import ClusterView
from barnabas_operator.plan.topics import (
    INTERNAL_TOPICS,
    AlterConfig,
    CreateTopic,
    GrowPartitions,
    TopicView,
)
from barnabas_operator.plan.user_acls import Acl
from barnabas_operator.plan.users import AclChange, CredentialChange, QuotaChange, UserView

TIMEOUT_S: Final = 10.0
CONNECT_TIMEOUT_S: Final = 2.0
PROBE_AFTER_S: Final = 1.0
"""The node of a broker may be gone: both together leave time for the next broker."""
IDLE_S: Final = 60.0
"""Connections to clusters that were deleted are closed after this time."""
ABSENT: Final = frozenset({ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.UNKNOWN_TOPIC_ID})

MECHANISMS: Final[Mapping[str, ScramMechanism]] = {
    AuthenticationType.SHA_256.mechanism: "SCRAM-SHA-256",
    AuthenticationType.SHA_512.mechanism: "SCRAM-SHA-512",
}
ALL_BROKERS: Final = broker_resource(None)
# The first one that is set.
ADVERTISED: Final = ("advertised.listeners", "listeners")

T = TypeVar("T")


class BrokersError(Exception):
    """The cluster refused or cannot be reached; `code` is the protocol's name of the error.

    `reachable` is False where it is worth trying again: no broker has answered, or with an error
    that passes by itself.
    """

    def __init__(self, code: str, message: str, *, reachable: bool) -> None:
        self.code = code
        self.message = message
        self.reachable = reachable
        super().__init__(f"{code}: {message}")


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientTls:
    """The operator's certificate and the CAs that it trusts; all PEM."""

    certificate: str
    key: str = field(repr=False)
    trusted: str

    def context(self) -> ssl.SSLContext:
        """For connections; raises ValueError where key, certificate or trust cannot be used."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        # By way of memory: a private key is never written to a disk.
        descriptor = os.memfd_create("certificate", os.MFD_CLOEXEC)
        try:
            with open(descriptor, "w", encoding="ascii", closefd=False) as file:
                file.write(self.key + self.certificate)
            # Without a password OpenSSL would ask the terminal for one.
            context.load_cert_chain(f"/proc/self/fd/{descriptor}", password="")
            context.load_verify_locations(cadata=self.trusted)
        except OSError as error:
            reason = getattr(error, "reason", None) or error.strerror
            raise ValueError(f"certificate or key cannot be used: {reason}") from None
        finally:
            os.close(descriptor)
        return context


@dataclass(frozen=True, slots=True)
class Endpoint:
    """The address of a cluster, and the credentials for it."""

    servers: str
    tls: ClientTls | None = None
    """None for a listener without TLS."""


class Brokers(Protocol):
    """What the operator asks of a Kafka cluster. All raise BrokersError."""

    def describe(self) -> ClusterView:
        """Brokers, controller, replicas and leaderless partitions."""
        ...

    def elect_preferred_leaders(self) -> None:
        """Have each partition led by its preferred replica, where that is in sync."""
        ...

    def advertised(self, brokers: Collection[int]) -> Mapping[int, str]:
        """The advertised.listeners of these brokers, without those that do not answer."""
        ...

    def dynamic_config(self) -> Mapping[str, str]:
        """The dynamic settings of all brokers, without those whose value they do not show."""
        ...

    def alter_dynamic_config(self, change: AlterConfig) -> None:
        """Set and delete dynamic settings of all brokers, all or nothing."""
        ...

    def topic_names(self) -> frozenset[str]:
        """All topics, internal ones too."""
        ...

    def topics(self, names: Collection[str]) -> Mapping[str, TopicView | BrokersError]:
        """These topics, or why one cannot be described; those that do not exist are left out."""
        ...

    def create_topics(self, topics: Mapping[str, CreateTopic]) -> Mapping[str, BrokersError]:
        """Create topics; returns the errors, by topic."""
        ...

    def grow_partitions(self, topics: Mapping[str, GrowPartitions]) -> Mapping[str, BrokersError]:
        """Add partitions to topics; returns the errors, by topic."""
        ...

    def alter_configs(self, topics: Mapping[str, AlterConfig]) -> Mapping[str, BrokersError]:
        """Set and remove settings, of one topic all or nothing; returns the errors, by topic."""
        ...

    def delete_topics(self, names: Collection[str]) -> Mapping[str, BrokersError]:
        """Delete topics, of which one that is gone is no error; returns the errors, by topic."""
        ...

    def users(self, names: Collection[str]) -> Mapping[str, UserView]:
        """Credentials, ACLs and quotas of these users; one without any has an empty view."""
        ...

    def alter_credentials(
        self, users: Mapping[str, CredentialChange]
    ) -> Mapping[str, BrokersError]:
        """Set and remove SCRAM credentials; returns the errors, by user."""
        ...

    def alter_acls(self, users: Mapping[str, AclChange]) -> Mapping[str, BrokersError]:
        """Create and then delete ACLs; returns the errors, by user."""
        ...

    def alter_quotas(self, users: Mapping[str, QuotaChange]) -> Mapping[str, BrokersError]:
        """Set and remove quotas; returns the errors, by user."""
        ...


class AdminBrokers:
    """The port on a real cluster. All instances of a process share one thread."""

    _thread: Final = ClientThread()

    def __init__(self, bootstrap_servers: str, tls: ClientTls | None = None) -> None:
        """Raises ValueError where `tls` cannot be used."""
        config = ClientConfig(
            bootstrap_servers=bootstrap_servers,
            tls=None if tls is None else tls.context(),
            client_id="barnabas-operator",
            timeout_s=TIMEOUT_S,
            request_timeout_s=TIMEOUT_S,
            connect_timeout_s=CONNECT_TIMEOUT_S,
            probe_after_s=PROBE_AFTER_S,
            idle_s=IDLE_S,
        )
        self._admin = Admin(config, self._thread)

    def close(self) -> None:
        """Close the connections."""
        self._admin.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def describe(self) -> ClusterView:
        """See Brokers."""
        cluster, topics = self._call(describe_cluster()), self._call(list_topics())
        partitions = [
            (f"{topic.name}-{each.partition}", each)
            for topic in topics.values()
            for each in topic.partitions
        ]
        replicas = Counter(broker for _, each in partitions for broker in each.replicas)
        return ClusterView(
            cluster_id=cluster.cluster_id or "",
            broker_ids=tuple(sorted(cluster.brokers)),
            controller_id=cluster.controller_id if cluster.controller_id >= 0 else None,
            replicas=dict(replicas),
            internal={
                name: min(len(each.replicas) for each in topics[name].partitions)
                for name in INTERNAL_TOPICS
                if name in topics and topics[name].partitions
            },
            out_of_sync=frozenset(
                broker
                for _, each in partitions
                for broker in each.replicas
                if broker not in each.isr
            ),
            replica_sets=frozenset(frozenset(each.replicas) for _, each in partitions),
            leaderless=tuple(sorted(name for name, each in partitions if each.leader < 0)),
        )

    def elect_preferred_leaders(self) -> None:
        """See Brokers; a partition whose preferred replica cannot lead stays where it is."""
        self._call(elect_leaders(None))

    def advertised(self, brokers: Collection[int]) -> Mapping[int, str]:
        """See Brokers."""
        resources = {broker: broker_resource(broker) for broker in sorted(brokers)}
        described = self._call(describe_configs(resources.values()))
        values = {}
        for broker, resource in resources.items():
            found = described.values.get(resource, {})
            entries = (found[name] for name in ADVERTISED if name in found)
            values[broker] = next((each.value for each in entries if each.value), "")
        return {broker: text for broker, text in values.items() if text}

    def dynamic_config(self) -> Mapping[str, str]:
        """See Brokers."""
        found = self._call(describe_configs([ALL_BROKERS]))
        if ALL_BROKERS in found.errors:
            raise _raised(found.errors[ALL_BROKERS])
        own = ConfigSource.DYNAMIC_DEFAULT_BROKER_CONFIG
        entries = found.values[ALL_BROKERS].values()
        return {
            each.name: each.value
            for each in entries
            if each.source is own and each.value is not None
        }

    def alter_dynamic_config(self, change: AlterConfig) -> None:
        """See Brokers."""
        for error in self._call(alter_configs({ALL_BROKERS: _changes(change)})).errors.values():
            raise _raised(error)

    def topic_names(self) -> frozenset[str]:
        """See Brokers."""
        topics = self._call(list_topics())
        return frozenset(topics)

    def topics(self, names: Collection[str]) -> Mapping[str, TopicView | BrokersError]:
        """See Brokers."""
        resources = {name: topic_resource(name) for name in sorted(names)}
        described = self._call(describe_topics(resources))
        configs = self._call(describe_configs(resources.values()))
        found: dict[str, TopicView | BrokersError] = {}
        for name, resource in resources.items():
            error = described.errors.get(name) or configs.errors.get(resource)
            if error is None:
                found[name] = _view(described.values[name], configs.values[resource])
            elif not (trouble := _raised(error)).reachable:
                raise trouble from error
            elif error.code not in ABSENT:
                found[name] = trouble
        return found

    def create_topics(self, topics: Mapping[str, CreateTopic]) -> Mapping[str, BrokersError]:
        """See Brokers."""
        wanted = [
            NewTopic(name, topic.partitions, topic.replicas, topic.config)
            for name, topic in topics.items()
        ]
        return _failed(self._call(create_topics(wanted)))

    def grow_partitions(self, topics: Mapping[str, GrowPartitions]) -> Mapping[str, BrokersError]:
        """See Brokers."""
        counts = {name: topic.partitions for name, topic in topics.items()}
        return _failed(self._call(create_partitions(counts)))

    def alter_configs(self, topics: Mapping[str, AlterConfig]) -> Mapping[str, BrokersError]:
        """See Brokers."""
        changes = {topic_resource(name): _changes(topic) for name, topic in topics.items()}
        failed = self._call(alter_configs(changes)).errors
        return {resource.name: _raised(error) for resource, error in failed.items()}

    def delete_topics(self, names: Collection[str]) -> Mapping[str, BrokersError]:
        """See Brokers."""
        failed = self._call(delete_topics(sorted(names))).errors
        return {name: _raised(error) for name, error in failed.items() if error.code not in ABSENT}

    def users(self, names: Collection[str]) -> Mapping[str, UserView]:
        """See Brokers."""
        if not names:
            return {}
        described = self._call(describe_scram_credentials(sorted(names)))
        credentials: dict[str, dict[str, int]] = {
            name: {str(mechanism): count for mechanism, count in each.items()}
            for name, each in described.items()
        }
        acls, quotas = self._acls(names), self._quotas()
        return {
            name: UserView(
                credentials=credentials.get(name, {}),
                acls=None if acls is None else frozenset(acls[_principal(name)]),
                quotas=None if quotas is None else quotas.get(_entity(name), {}),
            )
            for name in names
        }

    def _acls(self, names: Collection[str]) -> Mapping[str, set[Acl]] | None:
        """The ACLs of these users by principal; None where the brokers check none."""
        try:
            listed = self._call(describe_acls(AclFilter()))
        except BrokersError as error:
            if error.code != ErrorCode.SECURITY_DISABLED.name:
                raise
            return None
        acls: dict[str, set[Acl]] = {_principal(name): set() for name in names}
        for each in listed:
            if each.principal in acls and (acl := _acl(each)) is not None:
                acls[each.principal].add(acl)
        return acls

    def _quotas(self) -> Mapping[QuotaEntity, Mapping[str, float]] | None:
        """The quotas of all entities; None where the brokers, of an earlier version, have none."""
        try:
            return self._admin.call(describe_quotas())
        except UnsupportedVersionError:
            return None
        except ClientError as error:
            raise _raised(error) from error

    def alter_credentials(
        self, users: Mapping[str, CredentialChange]
    ) -> Mapping[str, BrokersError]:
        """See Brokers."""
        upsertions = [
            ScramCredential(name, each.password, MECHANISMS[each.mechanism], each.iterations)
            for name, each in users.items()
            if each.mechanism
        ]
        deletions = [
            (name, MECHANISMS[mechanism])
            for name, each in users.items()
            for mechanism in sorted(each.remove)
        ]
        return _failed(self._call(alter_scram_credentials(upsertions, deletions)))

    def alter_acls(self, users: Mapping[str, AclChange]) -> Mapping[str, BrokersError]:
        """See Brokers."""
        wanted = {_binding(name, acl): name for name, each in users.items() for acl in each.create}
        failed: dict[str, BrokersError] = {}
        if wanted:
            errors = self._call(create_acls(wanted)).errors
            failed = {wanted[acl]: _raised(error) for acl, error in errors.items()}
        # What replaces a rule is there before the rule goes.
        unwanted = {
            _binding(name, acl).filter(): name
            for name, each in users.items()
            if name not in failed
            for acl in each.delete
        }
        if unwanted:
            refused = self._call(delete_acls(unwanted)).errors
            failed |= {unwanted[rule]: _raised(error) for rule, error in refused.items()}
        return failed

    def alter_quotas(self, users: Mapping[str, QuotaChange]) -> Mapping[str, BrokersError]:
        """See Brokers."""
        changes = {
            _entity(name): {**each.put, **dict.fromkeys(sorted(each.drop))}
            for name, each in users.items()
        }
        failed = self._call(alter_quotas(changes)).errors
        return {
            name: _raised(failed[entity]) for name in users if (entity := _entity(name)) in failed
        }

    def _call(self, operation: Operation[T]) -> T:
        try:
            return self._admin.call(operation)
        except ClientError as error:
            raise _raised(error) from error


def _view(topic: TopicDescription, config: Mapping[str, ConfigEntry]) -> TopicView:
    """The topic with what was set on itself; the rest are the broker's settings and defaults."""
    own = ConfigSource.DYNAMIC_TOPIC_CONFIG
    return TopicView(
        name=topic.name,
        topic_id=uuid_to_base64(topic.topic_id) if topic.topic_id != ZERO_UUID else "",
        partitions=len(topic.partitions),
        replicas=max((len(each.replicas) for each in topic.partitions), default=0),
        config={name: each.value or "" for name, each in config.items() if each.source is own},
    )


def _principal(user: str) -> str:
    return f"User:{user}"


def _entity(user: str) -> QuotaEntity:
    return frozenset({("user", user)})


def _binding(user: str, acl: Acl) -> KafkaAcl:
    return KafkaAcl(
        resource_type=AclResourceType[acl.resource.name],
        resource_name=acl.name,
        pattern_type=PatternType[acl.pattern.name],
        principal=_principal(user),
        host=acl.host,
        operation=AclOperation[acl.operation.name],
        permission=AclPermission[acl.permission.name],
    )


def _acl(found: KafkaAcl) -> Acl | None:
    """In the words of the resource; None for one that no KafkaUser can have."""
    try:
        return Acl(
            resource=user_words.AclResourceType[found.resource_type.name],
            name=found.resource_name,
            pattern=user_words.PatternType[found.pattern_type.name],
            host=found.host,
            operation=user_words.AclOperation[found.operation.name],
            permission=user_words.AclPermission[found.permission.name],
        )
    except KeyError:
        return None


def _changes(change: AlterConfig) -> list[ConfigChange]:
    put = [ConfigChange(key, AlterConfigOp.SET, value) for key, value in change.put.items()]
    return put + [ConfigChange(key, AlterConfigOp.DELETE) for key in sorted(change.drop)]


def _failed(results: Results[str, Any]) -> Mapping[str, BrokersError]:
    return {name: _raised(error) for name, error in results.errors.items()}


def _raised(error: ClientError) -> BrokersError:
    """As the port has it. An error that Kafka calls retriable is no refusal: NOT_CONTROLLER, or
    REQUEST_TIMED_OUT, after which the request may have been carried out all the same."""
    code = error.code
    if code is None:
        name = type(error).__name__.removesuffix("Error")
        return BrokersError(name, str(error), reachable=False)
    message = str(error).removeprefix(f"{code.name}: ")
    return BrokersError(code.name, message, reachable=code in ABSENT or not code.retriable)
