"""Settings that Apache Kafka does not have; all begin with `barnabas.`."""

from __future__ import annotations

import re
from typing import Final

from ..declare import at_least, boolean, integer, long, one_of, password, string
from ..definitions import Importance, Rule

REPLICATED: Final = "replicated"
FSYNC: Final = "fsync"

TEXT: Final = "text"
JSON: Final = "json"

_ADDRESS: Final = re.compile(r"(|(\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9._-]*):([0-9]{1,5}))")


def _is_address_or_empty(text: str) -> bool:
    found = _ADDRESS.fullmatch(text)
    return found is not None and int(found.group(3) or 0) <= 65535


BARNABAS_DURABILITY = string(
    "barnabas.durability",
    REPLICATED,
    (
        "When a record counts, so that producers are answered and consumers see it: with "
        "replicated when every in-sync replica has it in memory, as in Kafka; with fsync when "
        "each of them has also forced it to disk."
    ),
    rule=one_of(REPLICATED, FSYNC),
    importance=Importance.HIGH,
)
BARNABAS_ISR_SHRINK_FLUSH = boolean(
    "barnabas.isr.shrink.flush",
    True,
    (
        "Whether a leader forces a partition's log to disk before it asks that replicas leave the "
        "ISR: what the remaining ones alone have then outlives their power. Apache Kafka never "
        "does; it waits for one sync each time a follower falls behind."
    ),
    importance=Importance.MEDIUM,
)
BARNABAS_UNCLEAN_REGISTRATION = boolean(
    "barnabas.unclean.registration",
    True,
    (
        "Whether a broker that was not stopped in order says so when it registers: a controller of "
        "this software then takes it out of every ISR with other members until it has caught up, "
        "for its log may lack its end. Apache brokers never say it, and their controllers skip it."
    ),
    importance=Importance.MEDIUM,
)
BARNABAS_LEADER_RECOVERY_ELECTION_ENABLE = boolean(
    "barnabas.leader.recovery.election.enable",
    True,
    (
        "Whether a controller, before it elects a sole in-sync replica whose broker has said that "
        "it was not stopped in order, asks all replicas how far their logs go (ListOffsets as a "
        "debugging replica) and elects the longest. It waits for all of them, however long; an "
        "unclean election that is ordered does not, nor does a topic that allows such. With an "
        "Apache broker among the replicas none is asked."
    ),
    importance=Importance.MEDIUM,
)
BARNABAS_FAST_PATH_ENABLE = boolean(
    "barnabas.fast.path.enable",
    True,
    (
        "Whether common requests are served without message objects. For tests: responses are the "
        "same without, and the broker is slower."
    ),
    importance=Importance.LOW,
)
BARNABAS_ADMIN_LISTENER = string(
    "barnabas.admin.listener",
    "",
    (
        "Where metrics for Prometheus and answers for probes are served over HTTP, as host:port; "
        "nowhere if empty. Without barnabas.admin.token.file and "
        "barnabas.admin.ssl.truststore.location every client that reaches the port may read all."
    ),
    rule=Rule("empty, or host:port with a port from 0 to 65535", _is_address_or_empty),
    importance=Importance.MEDIUM,
)
BARNABAS_ADMIN_TOKEN_FILE = string(
    "barnabas.admin.token.file",
    None,
    (
        "File of bearer tokens, one in a line, of at least 16 characters each. The admin port then "
        "answers requests with one of them, or with a trusted certificate; of others only /live "
        "and /ready. A changed file counts within seconds."
    ),
    importance=Importance.MEDIUM,
)
BARNABAS_ADMIN_SSL_KEYSTORE_LOCATION = string(
    "barnabas.admin.ssl.keystore.location",
    None,
    (
        "Key store with the private key and certificate chain of the admin port, which then speaks "
        "HTTPS (TLS 1.2 and 1.3). A changed file counts within seconds."
    ),
    importance=Importance.MEDIUM,
)
BARNABAS_ADMIN_SSL_KEYSTORE_TYPE = string(
    "barnabas.admin.ssl.keystore.type",
    None,
    "PEM or PKCS12; where it is not given, the end of the file's name decides.",
    importance=Importance.LOW,
)
BARNABAS_ADMIN_SSL_KEYSTORE_PASSWORD = password(
    "barnabas.admin.ssl.keystore.password",
    None,
    "The password of the PKCS12 store, or of the private key in a PEM file.",
    importance=Importance.MEDIUM,
)
BARNABAS_ADMIN_SSL_TRUSTSTORE_LOCATION = string(
    "barnabas.admin.ssl.truststore.location",
    None,
    (
        "Trust store of the authorities whose client certificates the admin port accepts in place "
        "of a token. Every certificate that they sign counts, so let them sign no others."
    ),
    importance=Importance.MEDIUM,
)
BARNABAS_ADMIN_SSL_TRUSTSTORE_TYPE = string(
    "barnabas.admin.ssl.truststore.type",
    None,
    "PEM or PKCS12; where it is not given, the end of the file's name decides.",
    importance=Importance.LOW,
)
BARNABAS_ADMIN_SSL_TRUSTSTORE_PASSWORD = password(
    "barnabas.admin.ssl.truststore.password",
    None,
    "The password of a PKCS12 trust store.",
    importance=Importance.MEDIUM,
)
BARNABAS_LOG_FORMAT = string(
    "barnabas.log.format",
    TEXT,
    "Whether each line of the broker's own log is text or a JSON object.",
    rule=one_of(TEXT, JSON),
    importance=Importance.LOW,
)
BARNABAS_LOG_DIRS_MIN_FREE_BYTES = long(
    "barnabas.log.dirs.min.free.bytes",
    32 * 1024 * 1024,
    (
        "Room that producers leave in each log directory. With less free, their records are "
        "refused with KAFKA_STORAGE_ERROR while reading, deleting and committing offsets go on; "
        "0 leaves none. Apache Kafka ends its process when a disk is full."
    ),
    rule=at_least(0),
    importance=Importance.MEDIUM,
)
BARNABAS_LOG_DIRS_RESUME_BYTES = long(
    "barnabas.log.dirs.resume.bytes",
    64 * 1024 * 1024,
    (
        "Free room with which a log directory that was full takes records again; at least the "
        "reserve."
    ),
    rule=at_least(0),
    importance=Importance.MEDIUM,
)
BARNABAS_GROUPS_MEMORY_MAX_BYTES = long(
    "barnabas.groups.memory.max.bytes",
    0,
    (
        "Memory that all groups of a broker may take with their members and the metadata of "
        "these, committed offsets aside. Beyond it new groups and members, and those that "
        "need more, are answered COORDINATOR_NOT_AVAILABLE, which clients try again; the last "
        "quarter is for members of up to 64 KiB. 0 is a sixteenth of the container's or machine's "
        "memory, from 32 to 128 MiB. Apache Kafka has no limit."
    ),
    rule=at_least(0),
    importance=Importance.MEDIUM,
)
BARNABAS_TRANSACTIONS_MEMORY_MAX_BYTES = long(
    "barnabas.transactions.memory.max.bytes",
    0,
    (
        "Memory that all transactional ids of a broker may take, with the partitions of their open "
        "transactions. Beyond it new ids and partitions are answered COORDINATOR_NOT_AVAILABLE, "
        "which producers try again, until others expire (transactional.id.expiration.ms). 0 is a "
        "sixteenth of the container's or machine's memory, from 32 to 128 MiB, which is 40,000 to "
        "160,000 ids. Apache Kafka has no limit."
    ),
    rule=at_least(0),
    importance=Importance.MEDIUM,
)
BARNABAS_PRODUCER_IDS_MAX = integer(
    "barnabas.producer.ids.max",
    0,
    (
        "Idempotent producers that a broker remembers in all its partitions together, at up to "
        "1 kB each. Of more, those are forgotten that wrote longest ago to the partitions that "
        "have most of them. 0 is one for each kilobyte of an eighth of the container's or "
        "machine's memory, at least 100,000. Apache Kafka has no limit."
    ),
    rule=at_least(0),
    importance=Importance.LOW,
)
BARNABAS_ZOOKEEPER_OFFSETS_MAX = integer(
    "barnabas.zookeeper.offsets.max",
    100_000,
    (
        "Offsets in ZooKeeper, one for each group and partition, with which a broker makes no more "
        "for OffsetCommit version 0, which only consumers older than 0.8.2 use: nothing deletes "
        "these znodes. Offsets that are there can be written for ever. Apache Kafka has no limit."
    ),
    rule=at_least(0),
    importance=Importance.LOW,
)
BARNABAS_PRODUCER_IDS_PER_PARTITION_MAX = integer(
    "barnabas.producer.ids.per.partition.max",
    10_000,
    (
        "Idempotent producers that a broker remembers for each partition, at up to 1 kB each. Of "
        "more, those that wrote longest ago and have no open transaction are forgotten, as after "
        "producer.id.expiration.ms: what they send again may be stored twice. Apache Kafka has no "
        "limit."
    ),
    rule=at_least(1),
    importance=Importance.LOW,
)
BARNABAS_ZOOKEEPER_JAAS_FILE = string(
    "barnabas.zookeeper.jaas.file",
    None,
    (
        "JAAS file whose section Client has the user and password that ZooKeeper is shown by SASL; "
        "where it is not given, the file that KAFKA_OPTS names, as for Apache Kafka."
    ),
    importance=Importance.MEDIUM,
)
BARNABAS_ZOOKEEPER_DIGEST = password(
    "barnabas.zookeeper.digest",
    None,
    (
        "user:password that ZooKeeper is shown by its own scheme digest, for ensembles without "
        "SASL; Apache Kafka does not have it."
    ),
    importance=Importance.MEDIUM,
)
