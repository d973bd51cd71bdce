"""Kafka's tools that have no counterpart here, each with the reason and what to use instead."""

from __future__ import annotations

from typing import Final

from barnabas_broker.cli.kafka.tool import absent

storage: Final = absent(
    "kafka-storage",
    "a log directory needs no formatting here: start the broker with kafka-server-start,"
    " which creates it",
)
features: Final = absent(
    "kafka-features",
    "it changes the feature levels of a KRaft cluster; in ZooKeeper mode brokers agree on"
    " inter.broker.protocol.version, which `kafka-configs` shows",
)
metadata_quorum: Final = absent(
    "kafka-metadata-quorum",
    "it describes the quorum of KRaft controllers, and this cluster has its metadata in ZooKeeper;"
    " `barnabas zk status -z HOST:PORT` shows the members of the ensemble",
)
replica_verification: Final = absent(
    "kafka-replica-verification",
    "it fetched from every replica for as long as it ran, and Kafka 4.0 removed it;"
    " `barnabas brokers caught-up` asks whether all replicas are in sync,"
    " and `barnabas dump-log` compares their files",
)
zookeeper_shell: Final = absent(
    "zookeeper-shell",
    "`barnabas zk ls PATH -z HOST:PORT` and `barnabas zk get PATH -z HOST:PORT` read znodes;"
    " to write them, run Apache's zookeeper-shell or ZooKeeper's zkCli.sh",
)
zookeeper_security_migration: Final = absent(
    "zookeeper-security-migration",
    "it changes the ACLs of znodes that exist, which are Kafka's own: run Apache's tool; brokers"
    " with zookeeper.set.acl=true create znodes with ACLs",
)
