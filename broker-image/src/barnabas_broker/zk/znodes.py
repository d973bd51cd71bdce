"""Kafka's znodes: for each one its path, what is written there, and how that is read.

Paths and JSON are those of Apache Kafka 2.8 to 3.9 in ZooKeeper mode (`kafka.zk.ZkData`), so that
Apache brokers and tools can read what is written here, and the other way round. Readers accept
everything those releases wrote; writers write what 3.9 writes.
`docs/concepts/zookeeper-layout.md` shows one example of each.
"""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple
from urllib.parse import quote, unquote
from uuid import UUID

from barnabas_broker.cluster.image import DEFAULT_BROKER, BrokerRegistration, Endpoint
from barnabas_kafka.ids import TopicPartition, uuid_from_base64, uuid_to_base64

# The entity name of cluster-wide defaults.
DEFAULT_ENTITY = "<default>"
CONFIG_TOPICS = "topics"
CONFIG_BROKERS = "brokers"
CONFIG_USERS = "users"
CONFIG_TYPES = (CONFIG_TOPICS, "clients", CONFIG_USERS, CONFIG_BROKERS, "ips")

# Until an advertised listener names its protocol, its own name does.
_SECURITY_PROTOCOLS = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")


class MalformedZnodeError(ValueError):
    """What a znode holds is not what Kafka writes there."""

    def __init__(self, path: str, reason: str) -> None:
        super().__init__(f"znode {path}: {reason}")


def encode_object(value: Mapping[str, Any]) -> bytes:
    """A JSON object as Kafka writes it, without spaces."""
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False).encode()


def decode_object(path: str, data: bytes | None) -> dict[str, Any]:
    """The JSON object in a znode. Raises MalformedZnodeError."""
    try:
        value = json.loads(data or b"")
        if data is not None and b"\\u" in data:
            encode_object(value)  # Halves of surrogate pairs are text that cannot be encoded.
    except (ValueError, RecursionError) as error:
        raise MalformedZnodeError(path, f"not JSON ({error})") from error
    if not isinstance(value, dict):
        raise MalformedZnodeError(path, "not a JSON object")
    return value


class ReplicaAssignment(NamedTuple):
    """The brokers a partition lies on, and those that a reassignment adds and removes."""

    replicas: tuple[int, ...]
    adding: tuple[int, ...] = ()
    removing: tuple[int, ...] = ()


class TopicAssignment(NamedTuple):
    """What the znode of a topic says; `id` is None for topics from before topic ids (KIP-516)."""

    id: UUID | None
    partitions: Mapping[int, ReplicaAssignment]


@dataclass(frozen=True, slots=True)
class LeaderAndIsr:
    """What the state znode of a partition says. `recovering` is KIP-704's unclean leadership."""

    leader: int
    leader_epoch: int
    isr: tuple[int, ...]
    controller_epoch: int
    recovering: bool = False


@dataclass(frozen=True, slots=True)
class ProducerIdBlock:
    """Producer ids from `first` to `last`, both included, that a broker may hand out."""

    broker: int
    first: int
    last: int


@dataclass(frozen=True, slots=True)
class BrokerZnode:
    """`/brokers/ids/N`: a live broker; ephemeral."""

    id: int

    ROOT = "/brokers/ids"

    @property
    def path(self) -> str:
        """Where this broker registers."""
        return f"{self.ROOT}/{self.id}"

    @staticmethod
    def encode(broker: BrokerRegistration, *, now_ms: int, jmx_port: int = -1) -> bytes:
        """Version 5. `host` and `port` are the first plaintext endpoint, for very old readers.

        `software` and `unclean` are fields of our own: every release of Kafka skips fields that it
        does not know.
        """
        plain = next((e for e in broker.endpoints if e.security_protocol == "PLAINTEXT"), None)
        value: dict[str, Any] = {
            "features": {},
            "listener_security_protocol_map": {
                e.listener: e.security_protocol for e in broker.endpoints
            },
            "endpoints": [_connection_string(endpoint) for endpoint in broker.endpoints],
            "jmx_port": jmx_port,
            "port": -1 if plain is None else plain.port,
            "host": None if plain is None else plain.host,
            "version": 5,
            "timestamp": str(now_ms),
        }
        if broker.rack is not None:
            value["rack"] = broker.rack
        if broker.software is not None:
            value["software"] = broker.software
        if broker.unclean:
            value["unclean"] = True
        return encode_object(value)

    def decode(self, data: bytes | None, *, epoch: int = -1) -> BrokerRegistration:
        """Versions 1 to 5; `epoch` is the znode's czxid. Raises MalformedZnodeError."""
        value = decode_object(self.path, data)
        try:
            if value["version"] == 1:
                endpoints: tuple[Endpoint, ...] = (
                    Endpoint("PLAINTEXT", str(value["host"]), int(value["port"])),
                )
            else:
                protocols = value.get("listener_security_protocol_map")
                if protocols is None:
                    protocols = {name: name for name in _SECURITY_PROTOCOLS}
                endpoints = tuple(_endpoint(text, protocols) for text in value["endpoints"])
        except (KeyError, OverflowError, TypeError, ValueError) as error:
            raise MalformedZnodeError(
                self.path, f"not a broker registration ({error!r})"
            ) from error
        software = value.get("software")
        named = software if isinstance(software, str) else None
        return BrokerRegistration(
            self.id,
            endpoints,
            value.get("rack"),
            epoch,
            named,
            unclean=value.get("unclean") is True,
        )


def _connection_string(endpoint: Endpoint) -> str:
    host = f"[{endpoint.host}]" if ":" in endpoint.host else endpoint.host
    return f"{endpoint.listener}://{host}:{endpoint.port}"


def _endpoint(text: str, protocols: Mapping[str, str]) -> Endpoint:
    listener, _, address = text.partition("://")
    host, _, port = address.rpartition(":")
    return Endpoint(listener, host.strip("[]"), int(port), protocols[listener])


@dataclass(frozen=True, slots=True)
class TopicZnode:
    """`/brokers/topics/T`: that a topic exists, its id, and which brokers hold its partitions."""

    topic: str

    ROOT = "/brokers/topics"

    @property
    def path(self) -> str:
        """Where this topic is described."""
        return f"{self.ROOT}/{self.topic}"

    @property
    def partitions_path(self) -> str:
        """The parent of the topic's partitions."""
        return f"{self.path}/partitions"

    @staticmethod
    def encode(assignment: TopicAssignment) -> bytes:
        """Version 3."""
        partitions = assignment.partitions.items()
        value: dict[str, Any] = {
            "removing_replicas": {str(p): list(a.removing) for p, a in partitions if a.removing},
            "partitions": {str(p): list(a.replicas) for p, a in partitions},
            "adding_replicas": {str(p): list(a.adding) for p, a in partitions if a.adding},
            "version": 3,
        }
        if assignment.id is not None:
            value["topic_id"] = uuid_to_base64(assignment.id)
        return encode_object(value)

    def decode(self, data: bytes | None) -> TopicAssignment:
        """Versions 1 to 3. Raises MalformedZnodeError."""
        value = decode_object(self.path, data)
        adding, removing = value.get("adding_replicas", {}), value.get("removing_replicas", {})
        try:
            partitions = {
                int(p): ReplicaAssignment(
                    tuple(replicas), tuple(adding.get(p, ())), tuple(removing.get(p, ()))
                )
                for p, replicas in value["partitions"].items()
            }
            text = value.get("topic_id")
            topic_id = None if text is None else uuid_from_base64(text)
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            raise MalformedZnodeError(self.path, f"not a topic ({error!r})") from error
        return TopicAssignment(topic_id, dict(sorted(partitions.items())))


@dataclass(frozen=True, slots=True)
class PartitionStateZnode:
    """`/brokers/topics/T/partitions/P/state`: leader, epochs and in-sync replicas."""

    topic: str
    partition: int

    @property
    def parent(self) -> str:
        """The znode of the partition itself, which holds nothing."""
        return f"{TopicZnode(self.topic).partitions_path}/{self.partition}"

    @property
    def path(self) -> str:
        """Where this partition's state is kept."""
        return f"{self.parent}/state"

    @staticmethod
    def encode(state: LeaderAndIsr) -> bytes:
        """Version 1; the recovery state is written only where it is not the normal one."""
        value: dict[str, Any] = {
            "controller_epoch": state.controller_epoch,
            "leader": state.leader,
            "version": 1,
            "leader_epoch": state.leader_epoch,
            "isr": list(state.isr),
        }
        if state.recovering:
            value["leader_recovery_state"] = 1
        return encode_object(value)

    def decode(self, data: bytes | None) -> LeaderAndIsr:
        """Raises MalformedZnodeError."""
        value = decode_object(self.path, data)
        try:
            return LeaderAndIsr(
                leader=int(value["leader"]),
                leader_epoch=int(value["leader_epoch"]),
                isr=tuple(value["isr"]),
                controller_epoch=int(value["controller_epoch"]),
                recovering=value.get("leader_recovery_state", 0) != 0,
            )
        except (KeyError, OverflowError, TypeError, ValueError) as error:
            raise MalformedZnodeError(self.path, f"not a partition state ({error!r})") from error


@dataclass(frozen=True, slots=True)
class ConfigZnode:
    """`/config/<type>/<name>`: what was set for a topic, a broker, or for all brokers."""

    entity_type: str
    name: str

    @classmethod
    def for_broker(cls, key: str) -> "ConfigZnode":
        """The znode of a broker id in decimal, or of the image's `DEFAULT_BROKER`."""
        return cls(CONFIG_BROKERS, DEFAULT_ENTITY if key == DEFAULT_BROKER else key)

    @classmethod
    def for_user(cls, user: str) -> "ConfigZnode":
        """The znode of a user, whose name is written as Kafka's Sanitizer does."""
        return cls(CONFIG_USERS, quote(user, safe="").replace("~", "%7E"))

    @property
    def user(self) -> str:
        """The user whose znode this is."""
        return unquote(self.name)

    @classmethod
    def for_topic(cls, topic: str) -> "ConfigZnode":
        """The znode of a topic's own settings."""
        return cls(CONFIG_TOPICS, topic)

    @property
    def entity_path(self) -> str:
        """The name by which change notifications call this entity."""
        return f"{self.entity_type}/{self.name}"

    @property
    def path(self) -> str:
        """Where this configuration is kept."""
        return f"/config/{self.entity_path}"

    @staticmethod
    def encode(config: Mapping[str, str]) -> bytes:
        """Version 1."""
        return encode_object({"version": 1, "config": dict(config)})

    def decode(self, data: bytes | None) -> dict[str, str]:
        """Empty where the znode holds no data. Raises MalformedZnodeError."""
        if data is None:
            return {}
        config = decode_object(self.path, data).get("config", {})
        if not isinstance(config, dict):
            raise MalformedZnodeError(self.path, "its config is not an object")
        return {str(key): str(value) for key, value in config.items()}


class ConfigChangeZnode:
    """`/config/changes/config_change_NNNNNNNNNN`: names the entity that brokers read again."""

    ROOT = "/config/changes"
    PREFIX = f"{ROOT}/config_change_"

    @staticmethod
    def encode(znode: ConfigZnode) -> bytes:
        """Version 2."""
        return encode_object({"version": 2, "entity_path": znode.entity_path})

    @staticmethod
    def decode(path: str, data: bytes | None) -> str:
        """The entity to read again, as `topics/T`; versions 1 (before 0.10.1) and 2.

        Raises MalformedZnodeError.
        """
        value = decode_object(path, data)
        entity = value.get("entity_path")
        if entity is None and value.get("version") == 1:
            entity = f"{value.get('entity_type')}/{value.get('entity_name')}"
        if not isinstance(entity, str):
            raise MalformedZnodeError(path, "it names no entity")
        return entity


@dataclass(frozen=True, slots=True)
class DeleteTopicZnode:
    """`/admin/delete_topics/T`: the topic is marked for deletion. Holds nothing."""

    topic: str

    ROOT = "/admin/delete_topics"

    @property
    def path(self) -> str:
        """Where the wish is noted."""
        return f"{self.ROOT}/{self.topic}"


class IsrChangeZnode:
    """`/isr_change_notification/isr_change_NNNNNNNNNN`: partitions whose states leaders wrote.

    Brokers before `inter.broker.protocol.version` 2.7-IV2 change the in-sync replicas themselves;
    the controller reads these states again, and takes the notification away.
    """

    ROOT = "/isr_change_notification"
    PREFIX = f"{ROOT}/isr_change_"

    @staticmethod
    def encode(partitions: Iterable[TopicPartition]) -> bytes:
        """Version 1."""
        named = [{"topic": tp.topic, "partition": tp.partition} for tp in partitions]
        return encode_object({"version": 1, "partitions": named})

    @staticmethod
    def decode(path: str, data: bytes | None) -> tuple[TopicPartition, ...]:
        """The partitions. Raises MalformedZnodeError."""
        value = decode_object(path, data)
        try:
            return tuple(
                TopicPartition(str(each["topic"]), int(each["partition"]))
                for each in value["partitions"]
            )
        except (KeyError, OverflowError, TypeError, ValueError) as error:
            raise MalformedZnodeError(path, f"not a change of replicas ({error!r})") from error


class ReassignPartitionsZnode:
    """`/admin/reassign_partitions`: the moves that a tool up to 2.8 wants, until they are done."""

    PATH = "/admin/reassign_partitions"

    @staticmethod
    def encode(wanted: Mapping[TopicPartition, tuple[int, ...]]) -> bytes:
        """Version 1."""
        partitions = [
            {"topic": tp.topic, "partition": tp.partition, "replicas": list(replicas)}
            for tp, replicas in wanted.items()
        ]
        return encode_object({"version": 1, "partitions": partitions})

    @classmethod
    def decode(cls, data: bytes | None) -> dict[TopicPartition, tuple[int, ...]]:
        """Replicas by partition. Raises MalformedZnodeError."""
        value = decode_object(cls.PATH, data)
        try:
            return {
                TopicPartition(str(each["topic"]), int(each["partition"])): tuple(
                    int(replica) for replica in each["replicas"]
                )
                for each in value["partitions"]
            }
        except (KeyError, OverflowError, TypeError, ValueError) as error:
            raise MalformedZnodeError(cls.PATH, f"not a reassignment ({error!r})") from error


class PreferredElectionZnode:
    """`/admin/preferred_replica_election`: what a tool up to 2.8 wants led as preferred."""

    PATH = "/admin/preferred_replica_election"

    @classmethod
    def decode(cls, data: bytes | None) -> tuple[TopicPartition, ...]:
        """The partitions. Raises MalformedZnodeError."""
        value = decode_object(cls.PATH, data)
        try:
            return tuple(
                TopicPartition(str(each["topic"]), int(each["partition"]))
                for each in value["partitions"]
            )
        except (KeyError, OverflowError, TypeError, ValueError) as error:
            raise MalformedZnodeError(cls.PATH, f"not an election ({error!r})") from error


@dataclass(frozen=True, slots=True)
class ConsumerOffsetZnode:
    """`/consumers/G/offsets/T/0`: how far a group that keeps its offsets in ZooKeeper has read."""

    group_id: str
    partition: TopicPartition

    @property
    def path(self) -> str:
        """Where the offset is."""
        topic, number = self.partition
        return f"/consumers/{self.group_id}/offsets/{topic}/{number}"

    @staticmethod
    def encode(offset: int) -> bytes:
        """A decimal number."""
        return b"%d" % offset

    def decode(self, data: bytes | None) -> int:
        """The offset; raises MalformedZnodeError."""
        try:
            return int(data or b"")
        except ValueError as error:
            raise MalformedZnodeError(self.path, "not a number") from error


class BrokerSequenceZnode:
    """`/brokers/seqid`: its version counts the ids that were given to brokers without one."""

    PATH = "/brokers/seqid"


class ClusterIdZnode:
    """`/cluster/id`: the identity of the cluster, 22 characters of URL-safe base64."""

    PATH = "/cluster/id"

    @staticmethod
    def encode(cluster_id: str) -> bytes:
        """Its version is, in Kafka too, a string."""
        return encode_object({"version": "1", "id": cluster_id})

    @classmethod
    def decode(cls, data: bytes | None) -> str:
        """Raises MalformedZnodeError."""
        value = decode_object(cls.PATH, data).get("id")
        if not isinstance(value, str) or not value:
            raise MalformedZnodeError(cls.PATH, "it has no id")
        return value


class ControllerZnode:
    """`/controller`: which broker is the controller; ephemeral."""

    PATH = "/controller"

    @staticmethod
    def encode(broker_id: int, *, now_ms: int) -> bytes:
        """Version 2; -1 says that the controller is not a KRaft one."""
        return encode_object(
            {
                "version": 2,
                "brokerid": broker_id,
                "timestamp": str(now_ms),
                "kraftControllerEpoch": -1,
            }
        )

    @classmethod
    def decode(cls, data: bytes | None) -> int:
        """The id of the broker that is the controller. Raises MalformedZnodeError."""
        broker_id = decode_object(cls.PATH, data).get("brokerid")
        if not isinstance(broker_id, int):
            raise MalformedZnodeError(cls.PATH, "it names no broker")
        return broker_id


class ControllerEpochZnode:
    """`/controller_epoch`: how often a controller has been elected, as decimal text."""

    PATH = "/controller_epoch"

    @staticmethod
    def encode(epoch: int) -> bytes:
        """Plain text, not JSON."""
        return str(epoch).encode()

    @classmethod
    def decode(cls, data: bytes | None) -> int:
        """Raises MalformedZnodeError."""
        try:
            return int((data or b"").decode())
        except ValueError as error:
            raise MalformedZnodeError(cls.PATH, "not a number") from error


class ProducerIdBlockZnode:
    """`/latest_producer_id_block`: the last range of producer ids that a broker has taken."""

    PATH = "/latest_producer_id_block"

    @staticmethod
    def encode(block: ProducerIdBlock) -> bytes:
        """Version 1; 64-bit numbers are strings."""
        return encode_object(
            {
                "version": 1,
                "broker": block.broker,
                "block_start": str(block.first),
                "block_end": str(block.last),
            }
        )

    @classmethod
    def decode(cls, data: bytes | None) -> ProducerIdBlock:
        """Without data (as the znode is first made) an empty block before the first id.

        Raises MalformedZnodeError.
        """
        if data is None:
            return ProducerIdBlock(broker=-1, first=0, last=-1)
        value = decode_object(cls.PATH, data)
        try:
            return ProducerIdBlock(
                int(value["broker"]), int(value["block_start"]), int(value["block_end"])
            )
        except (KeyError, OverflowError, TypeError, ValueError) as error:
            raise MalformedZnodeError(cls.PATH, f"not a block of ids ({error!r})") from error


@dataclass(frozen=True, slots=True)
class FeatureZnode:
    """`/feature`: finalised features (KIP-584). Kafka in ZooKeeper mode has none to finalise."""

    features: Mapping[str, int] = field(default_factory=dict)

    PATH = "/feature"
    ENABLED = 1

    def encode(self) -> bytes:
        """Version 2, which 3.3 and later write."""
        levels = {name: {"max_version_level": level} for name, level in self.features.items()}
        return encode_object({"version": 2, "status": self.ENABLED, "features": levels})


class LogDirEventZnode:
    """`/log_dir_event_notification/log_dir_event_NNNNNNNNNN`: a broker's log directories changed.

    It says which broker, not what: the controller asks that broker about all its replicas.
    """

    ROOT = "/log_dir_event_notification"
    PREFIX = f"{ROOT}/log_dir_event_"
    FAILURE = 1

    @classmethod
    def encode(cls, broker_id: int) -> bytes:
        """Version 1; Kafka knows the one event."""
        return encode_object({"version": 1, "broker": broker_id, "event": cls.FAILURE})

    @staticmethod
    def decode(path: str, data: bytes | None) -> int:
        """The broker to ask. Raises MalformedZnodeError."""
        broker_id = decode_object(path, data).get("broker")
        if not isinstance(broker_id, int):
            raise MalformedZnodeError(path, "it names no broker")
        return broker_id


# The znodes that a broker finds or makes before it does anything else.
PERSISTENT_PATHS = (
    "/consumers",
    BrokerZnode.ROOT,
    TopicZnode.ROOT,
    ConfigChangeZnode.ROOT,
    DeleteTopicZnode.ROOT,
    BrokerSequenceZnode.PATH,
    IsrChangeZnode.ROOT,
    ProducerIdBlockZnode.PATH,
    LogDirEventZnode.ROOT,
    *(f"/config/{entity_type}" for entity_type in CONFIG_TYPES),
)
