"""A broker's id, its ZooKeeper and its controlled shutdown."""

from __future__ import annotations

from ..declare import (
    ELSEWHERE,
    at_least,
    boolean,
    integer,
    java_class,
    long,
    password,
    string,
    words,
)
from ..definitions import Importance, Served
from ..rules import KNOWN_VERSION
from .notes import NO_JAVA, ZOOKEEPER_ONLY

BROKER_ID = integer(
    "broker.id",
    -1,
    (
        "Number that names this broker in its cluster; -1 lets the broker pick the next free one "
        "above reserved.broker.max.id."
    ),
    importance=Importance.HIGH,
)
BROKER_ID_GENERATION_ENABLE = boolean(
    "broker.id.generation.enable",
    True,
    "Whether a broker without broker.id may be given one.",
)
RESERVED_BROKER_MAX_ID = integer(
    "reserved.broker.max.id",
    1000,
    "Largest number that may be given by hand; generated ids start above it.",
    rule=at_least(0),
)
BROKER_RACK = string(
    "broker.rack",
    None,
    "Name of the rack or zone the broker stands in; replicas are spread over racks.",
)
NODE_ID = integer(
    "node.id",
    -1,
    "Another name of broker.id.",
    importance=Importance.HIGH,
)
INTER_BROKER_PROTOCOL_VERSION = string(
    "inter.broker.protocol.version",
    "3.9-IV0",
    "Version that brokers speak among themselves while a cluster is upgraded.",
    rule=KNOWN_VERSION,
)
CONTROLLED_SHUTDOWN_ENABLE = boolean(
    "controlled.shutdown.enable",
    True,
    "Whether a stopping broker hands its partitions over first.",
)
CONTROLLED_SHUTDOWN_MAX_RETRIES = integer(
    "controlled.shutdown.max.retries",
    3,
    "How often a stopping broker asks again to hand over its partitions.",
)
CONTROLLED_SHUTDOWN_RETRY_BACKOFF_MS = long(
    "controlled.shutdown.retry.backoff.ms",
    5000,
    "Pause between two requests to hand over partitions.",
)
DELETE_TOPIC_ENABLE = boolean(
    "delete.topic.enable",
    True,
    "Whether topics can be deleted; otherwise a request to delete is refused.",
    importance=Importance.HIGH,
)
AUTO_CREATE_TOPICS_ENABLE = boolean(
    "auto.create.topics.enable",
    True,
    "Whether asking for the metadata of an unknown topic creates it.",
    importance=Importance.HIGH,
)
NUM_PARTITIONS = integer(
    "num.partitions",
    1,
    "Partitions of a topic that is created without saying how many.",
    rule=at_least(1),
)
DEFAULT_REPLICATION_FACTOR = integer(
    "default.replication.factor",
    1,
    "Replicas of a topic that is created without saying how many.",
)
CREATE_TOPIC_POLICY_CLASS_NAME = java_class(
    "create.topic.policy.class.name",
    None,
    "Java class that may veto the creation of a topic.",
    importance=Importance.LOW,
    served=Served.NEVER,
    note=NO_JAVA,
)
ALTER_CONFIG_POLICY_CLASS_NAME = java_class(
    "alter.config.policy.class.name",
    None,
    "Java class that may veto a change of settings.",
    importance=Importance.LOW,
    served=Served.NEVER,
    note=NO_JAVA,
)
ZOOKEEPER_CONNECT = string(
    "zookeeper.connect",
    None,
    (
        "ZooKeeper hosts as host:port,host:port with an optional /chroot at the end. Without it "
        "coordination data is kept in a file in the first log directory."
    ),
    importance=Importance.HIGH,
)
ZOOKEEPER_SESSION_TIMEOUT_MS = integer(
    "zookeeper.session.timeout.ms",
    18_000,
    "How long ZooKeeper waits for a silent broker before it takes it for dead.",
    importance=Importance.HIGH,
)
ZOOKEEPER_CONNECTION_TIMEOUT_MS = integer(
    "zookeeper.connection.timeout.ms",
    ELSEWHERE,
    (
        "How long a broker waits for its first connection to ZooKeeper; "
        "zookeeper.session.timeout.ms where it is not given."
    ),
    importance=Importance.HIGH,
)
ZOOKEEPER_SET_ACL = boolean(
    "zookeeper.set.acl",
    False,
    "Whether znodes are written with ACLs that only brokers pass.",
    importance=Importance.HIGH,
)
ZOOKEEPER_MAX_IN_FLIGHT_REQUESTS = integer(
    "zookeeper.max.in.flight.requests",
    10,
    "Requests a broker sends to ZooKeeper before it waits for an answer.",
    rule=at_least(1),
    importance=Importance.HIGH,
)
ZOOKEEPER_SSL_CLIENT_ENABLE = boolean(
    "zookeeper.ssl.client.enable",
    False,
    "Whether the connection to ZooKeeper uses TLS.",
)
ZOOKEEPER_CLIENT_CNXN_SOCKET = string(
    "zookeeper.clientCnxnSocket",
    None,
    "Java class of ZooKeeper's client socket; with TLS it may only be Netty's.",
)
ZOOKEEPER_SSL_KEYSTORE_LOCATION = string(
    "zookeeper.ssl.keystore.location",
    None,
    "File with the key and certificate shown to ZooKeeper.",
)
ZOOKEEPER_SSL_KEYSTORE_PASSWORD = password(
    "zookeeper.ssl.keystore.password",
    None,
    "Password of that key store.",
)
ZOOKEEPER_SSL_KEYSTORE_TYPE = string(
    "zookeeper.ssl.keystore.type",
    None,
    (
        "Format of that key store: JKS, PEM or PKCS12; seen from the file's name where it is not "
        "given."
    ),
)
ZOOKEEPER_SSL_TRUSTSTORE_LOCATION = string(
    "zookeeper.ssl.truststore.location",
    None,
    "File with the certificates trusted for ZooKeeper.",
)
ZOOKEEPER_SSL_TRUSTSTORE_PASSWORD = password(
    "zookeeper.ssl.truststore.password",
    None,
    "Password of that trust store.",
)
ZOOKEEPER_SSL_TRUSTSTORE_TYPE = string(
    "zookeeper.ssl.truststore.type",
    None,
    "Format of that trust store.",
)
ZOOKEEPER_SSL_PROTOCOL = string(
    "zookeeper.ssl.protocol",
    "TLSv1.2",
    "TLS version offered to ZooKeeper.",
    importance=Importance.LOW,
)
ZOOKEEPER_SSL_ENABLED_PROTOCOLS = words(
    "zookeeper.ssl.enabled.protocols",
    None,
    "TLS versions allowed towards ZooKeeper.",
    importance=Importance.LOW,
)
ZOOKEEPER_SSL_CIPHER_SUITES = words(
    "zookeeper.ssl.cipher.suites",
    None,
    "Cipher suites allowed towards ZooKeeper.",
    importance=Importance.LOW,
)
ZOOKEEPER_SSL_ENDPOINT_IDENTIFICATION_ALGORITHM = string(
    "zookeeper.ssl.endpoint.identification.algorithm",
    "HTTPS",
    "Whether ZooKeeper's certificate must carry its host name (HTTPS) or not (empty).",
    importance=Importance.LOW,
)
ZOOKEEPER_SSL_CRL_ENABLE = boolean(
    "zookeeper.ssl.crl.enable",
    False,
    "Whether revocation lists are asked about ZooKeeper's certificate.",
    importance=Importance.LOW,
)
ZOOKEEPER_SSL_OCSP_ENABLE = boolean(
    "zookeeper.ssl.ocsp.enable",
    False,
    "Whether OCSP is asked about ZooKeeper's certificate.",
    importance=Importance.LOW,
)
ZOOKEEPER_METADATA_MIGRATION_ENABLE = boolean(
    "zookeeper.metadata.migration.enable",
    False,
    "Whether a cluster is being moved from ZooKeeper to KRaft.",
    importance=Importance.HIGH,
    served=Served.NEVER,
    note=ZOOKEEPER_ONLY,
)
ZOOKEEPER_METADATA_MIGRATION_MIN_BATCH_SIZE = integer(
    "zookeeper.metadata.migration.min.batch.size",
    200,
    "Records written together while a cluster is moved to KRaft.",
    rule=at_least(1),
    served=Served.NEVER,
    note=ZOOKEEPER_ONLY,
    internal=True,
)
