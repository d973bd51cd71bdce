"""Listeners, sockets, requests and the threads that serve them."""

from __future__ import annotations

from ..declare import ELSEWHERE, INT_MAX, at_least, boolean, integer, long, one_of, string
from ..definitions import Importance, Served, UpdateMode

LISTENERS = string(
    "listeners",
    "PLAINTEXT://:9092",
    (
        "Addresses to listen on, as NAME://host:port, separated by commas; no host means every "
        "interface."
    ),
    importance=Importance.HIGH,
    update=UpdateMode.PER_BROKER,
)
ADVERTISED_LISTENERS = string(
    "advertised.listeners",
    ELSEWHERE,
    "Addresses that clients and brokers are to use; those of listeners where it is not given.",
    importance=Importance.HIGH,
    update=UpdateMode.PER_BROKER,
)
LISTENER_SECURITY_PROTOCOL_MAP = string(
    "listener.security.protocol.map",
    "SASL_SSL:SASL_SSL,PLAINTEXT:PLAINTEXT,SSL:SSL,SASL_PLAINTEXT:SASL_PLAINTEXT",
    "Security protocol of each listener name, as NAME:PROTOCOL, separated by commas.",
    importance=Importance.LOW,
    update=UpdateMode.PER_BROKER,
)
INTER_BROKER_LISTENER_NAME = string(
    "inter.broker.listener.name",
    ELSEWHERE,
    "Listener that brokers use among themselves; else the one for security.inter.broker.protocol.",
)
SECURITY_INTER_BROKER_PROTOCOL = string(
    "security.inter.broker.protocol",
    "PLAINTEXT",
    "Security protocol among brokers, if inter.broker.listener.name does not say it.",
    rule=one_of("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL"),
)
CONTROL_PLANE_LISTENER_NAME = string(
    "control.plane.listener.name",
    None,
    (
        "Listener on which the controller and the brokers talk to each other about the cluster; "
        "else the one among brokers. It is for nothing else, and must not be that one."
    ),
    importance=Importance.HIGH,
)
EARLY_START_LISTENERS = string(
    "early.start.listeners",
    None,
    "Listeners opened before authorisation is ready.",
    importance=Importance.HIGH,
    served=Served.NEVER,
    note="Listeners open together, when the broker can answer.",
)
SOCKET_SEND_BUFFER_BYTES = integer(
    "socket.send.buffer.bytes",
    102_400,
    (
        "Size of a socket's send buffer; -1 leaves it to the operating system. It is 256 KiB where "
        "it is not set, for the default is empty before more is sent to a client that reads fast."
    ),
    importance=Importance.HIGH,
)
SOCKET_RECEIVE_BUFFER_BYTES = integer(
    "socket.receive.buffer.bytes",
    102_400,
    (
        "Size of a socket's receive buffer; -1 leaves it to the operating system. So does not "
        "setting it, for the default has large batches arrive in many pieces."
    ),
    importance=Importance.HIGH,
)
SOCKET_REQUEST_MAX_BYTES = integer(
    "socket.request.max.bytes",
    104_857_600,
    "Largest request accepted; a connection that announces more is closed.",
    rule=at_least(1),
    importance=Importance.HIGH,
)
SOCKET_LISTEN_BACKLOG_SIZE = integer(
    "socket.listen.backlog.size",
    50,
    "Connections the operating system may hold until they are accepted.",
    rule=at_least(1),
)
SOCKET_CONNECTION_SETUP_TIMEOUT_MS = long(
    "socket.connection.setup.timeout.ms",
    10_000,
    "First wait for a connection to another broker; it doubles with each failure.",
    served=Served.LATER,
)
SOCKET_CONNECTION_SETUP_TIMEOUT_MAX_MS = long(
    "socket.connection.setup.timeout.max.ms",
    30_000,
    "Longest wait for a connection to another broker.",
    served=Served.LATER,
)
MAX_CONNECTIONS = integer(
    "max.connections",
    INT_MAX,
    "Connections allowed in all; unless given, 10000 or half the process's descriptors.",
    rule=at_least(0),
    update=UpdateMode.CLUSTER_WIDE,
)
MAX_CONNECTIONS_PER_IP = integer(
    "max.connections.per.ip",
    INT_MAX,
    "Connections allowed from one address; unless given, 5000.",
    rule=at_least(0),
    update=UpdateMode.CLUSTER_WIDE,
)
MAX_CONNECTIONS_PER_IP_OVERRIDES = string(
    "max.connections.per.ip.overrides",
    "",
    "Other limits for named hosts, as host:count, separated by commas.",
    update=UpdateMode.CLUSTER_WIDE,
)
MAX_CONNECTION_CREATION_RATE = integer(
    "max.connection.creation.rate",
    INT_MAX,
    "New connections accepted per second.",
    rule=at_least(0),
    update=UpdateMode.CLUSTER_WIDE,
)
CONNECTIONS_MAX_IDLE_MS = long(
    "connections.max.idle.ms",
    600_000,
    "A connection on which nothing happened for so long is closed.",
)
CONNECTION_FAILED_AUTHENTICATION_DELAY_MS = integer(
    "connection.failed.authentication.delay.ms",
    100,
    "How long a failed authentication is left unanswered.",
    rule=at_least(0),
    importance=Importance.LOW,
)
CONNECTIONS_MAX_REAUTH_MS = long(
    "connections.max.reauth.ms",
    0,
    "How long an authenticated session lasts until it must authenticate again; 0 means for ever.",
)
REQUEST_TIMEOUT_MS = integer(
    "request.timeout.ms",
    30_000,
    "How long a request to another broker may take.",
    importance=Importance.HIGH,
)
QUEUED_MAX_REQUESTS = integer(
    "queued.max.requests",
    500,
    "Requests that wait for their answer before reading from sockets pauses.",
    rule=at_least(1),
    importance=Importance.HIGH,
    served=Served.OTHERWISE,
    note="A connection has one request in work, so max.connections bounds them.",
)
QUEUED_MAX_REQUEST_BYTES = long(
    "queued.max.request.bytes",
    -1,
    (
        "Memory for requests that have not arrived whole; without more, reading pauses. -1 means a "
        "quarter of the memory there is, from 32 to 256 MiB."
    ),
)
NUM_NETWORK_THREADS = integer(
    "num.network.threads",
    3,
    "Threads that read requests from sockets and write answers.",
    rule=at_least(1),
    importance=Importance.HIGH,
    update=UpdateMode.CLUSTER_WIDE,
    served=Served.OTHERWISE,
    note="One event loop serves every connection; more brokers on a machine use more cores.",
)
NUM_IO_THREADS = integer(
    "num.io.threads",
    8,
    "Threads that work on requests, disk included.",
    rule=at_least(1),
    importance=Importance.HIGH,
    update=UpdateMode.CLUSTER_WIDE,
    served=Served.OTHERWISE,
    note="Requests are worked on by the event loop, slow disk work by background.threads.",
)
BACKGROUND_THREADS = integer(
    "background.threads",
    10,
    "Threads for housekeeping such as deleting old files.",
    rule=at_least(1),
    importance=Importance.HIGH,
    update=UpdateMode.CLUSTER_WIDE,
)
FETCH_MAX_BYTES = integer(
    "fetch.max.bytes",
    57_671_680,
    "Most bytes one fetch answer holds, whatever the client allows.",
    rule=at_least(1024),
)
MAX_INCREMENTAL_FETCH_SESSION_CACHE_SLOTS = integer(
    "max.incremental.fetch.session.cache.slots",
    1000,
    "Fetch sessions remembered; further clients send whole requests each time.",
    rule=at_least(0),
)
MAX_REQUEST_PARTITION_SIZE_LIMIT = integer(
    "max.request.partition.size.limit",
    2000,
    "Most partitions that one DescribeTopicPartitions answer lists.",
    rule=at_least(1),
)
MESSAGE_MAX_BYTES = integer(
    "message.max.bytes",
    1_048_588,
    "Largest record batch accepted, after compression; topics say max.message.bytes.",
    rule=at_least(0),
    importance=Importance.HIGH,
    update=UpdateMode.CLUSTER_WIDE,
)
FETCH_PURGATORY_PURGE_INTERVAL_REQUESTS = integer(
    "fetch.purgatory.purge.interval.requests",
    1000,
    "Finished fetches kept before a sweep.",
    served=Served.NEVER,
    note="Finished requests are dropped at once.",
)
PRODUCER_PURGATORY_PURGE_INTERVAL_REQUESTS = integer(
    "producer.purgatory.purge.interval.requests",
    1000,
    "Finished produce requests kept before a sweep.",
    served=Served.NEVER,
    note="Finished requests are dropped at once.",
)
DELETE_RECORDS_PURGATORY_PURGE_INTERVAL_REQUESTS = integer(
    "delete.records.purgatory.purge.interval.requests",
    1,
    "Finished DeleteRecords requests kept before a sweep.",
    served=Served.NEVER,
    note="Finished requests are dropped at once.",
)
UNSTABLE_API_VERSIONS_ENABLE = boolean(
    "unstable.api.versions.enable",
    False,
    "Whether versions of requests still in development are offered.",
    importance=Importance.HIGH,
    served=Served.NEVER,
    note="Only finished versions are offered.",
    internal=True,
)
UNSTABLE_FEATURE_VERSIONS_ENABLE = boolean(
    "unstable.feature.versions.enable",
    False,
    "Whether features still in development are offered.",
    importance=Importance.HIGH,
    served=Served.NEVER,
    note="Only finished versions are offered.",
    internal=True,
)
