"""Questions that both brokers are asked: leaders elected, and replicas moved, on one broker."""

from __future__ import annotations

from typing import Final

from barnabas_kafka.protocol.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    ReassignablePartition,
    ReassignableTopic,
)
from barnabas_kafka.protocol.messages.alter_replica_log_dirs import (
    AlterReplicaLogDir,
    AlterReplicaLogDirsRequest,
    AlterReplicaLogDirTopic,
)
from barnabas_kafka.protocol.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
)
from barnabas_kafka.protocol.messages.elect_leaders import ElectLeadersRequest, TopicPartitions
from barnabas_kafka.protocol.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from barnabas_kafka.protocol.messages.list_partition_reassignments import (
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsTopics,
)
from barnabas_kafka.protocol.messages.update_features import (
    FeatureUpdateKey,
    UpdateFeaturesRequest,
)
from tests.oracle.sides import Side

PREFERRED, UNCLEAN = 0, 1
BROKER = 4
SET, DELETE = 0, 1
RUN_TIME: Final = (2, 3)
RATES: Final = (
    "leader.replication.throttled.rate",
    "follower.replication.throttled.rate",
    "replica.alter.log.dirs.io.max.bytes.per.second",
)


def elections(side: Side) -> None:
    """Of leaders that lead already, of what is not there, and of all."""
    topic = side.topic("elections", partitions=2)
    wanted = {
        "led": [TopicPartitions(topic=topic, partitions=[0, 1])],
        "no such partition": [TopicPartitions(topic=topic, partitions=[0, 9])],
        "no such topic": [TopicPartitions(topic="elections-nowhere", partitions=[0])],
        "no partitions": [TopicPartitions(topic=topic)],
        "none": [],
        "all": None,
    }
    for what, topics in wanted.items():
        for kind in (PREFERRED, UNCLEAN):
            request = ElectLeadersRequest(election_type=kind, topic_partitions=topics)
            side.ask_all(f"{what}, type {kind}", request, range(int(kind > 0), 3))
    odd = ElectLeadersRequest(election_type=9, topic_partitions=wanted["led"])
    side.ask_all("no type of election", odd, (1, 2), trap=True)


def reassignments(side: Side) -> None:
    """To where partitions are, to where nobody is, and what is under way."""
    topic = side.topic("reassignments", partitions=2)

    def move(label: str, name: str, partition: int, replicas: list[int] | None) -> None:
        moved = ReassignablePartition(partition_index=partition, replicas=replicas)
        topics = [ReassignableTopic(name=name, partitions=[moved])]
        side.ask(label, AlterPartitionReassignmentsRequest(topics=topics), 0)

    move("to where it is", topic, 0, [0])
    move("to a broker that is not there", topic, 0, [7])
    move("to another one, too", topic, 0, [0, 7])
    move("to no broker", topic, 0, [])
    move("twice to one broker", topic, 0, [0, 0])
    move("to a negative broker", topic, 0, [-1])
    move("nothing to end", topic, 0, None)
    move("no such partition", topic, 9, [0])
    move("no such topic", "reassignments-nowhere", 0, [0])
    side.ask("nothing moved", AlterPartitionReassignmentsRequest(), 0)
    wanted = {
        "one": [ListPartitionReassignmentsTopics(name=topic, partition_indexes=[0])],
        "no such partition": [ListPartitionReassignmentsTopics(name=topic, partition_indexes=[9])],
        "no such topic": [
            ListPartitionReassignmentsTopics(name="reassignments-nowhere", partition_indexes=[0])
        ],
        "none": [],
        "all": None,
    }
    for what, topics in wanted.items():
        side.ask(f"under way, {what}", ListPartitionReassignmentsRequest(topics=topics), 0)


def log_directories(side: Side) -> None:
    """Replicas told to lie where no directory is."""
    topic = side.topic("log-directories")
    for path in ("/nowhere", "relative", ""):
        for name, partition in ((topic, 0), (topic, 9), ("log-directories-nowhere", 0)):
            moved = AlterReplicaLogDirTopic(name=name, partitions=[partition])
            request = AlterReplicaLogDirsRequest(
                dirs=[AlterReplicaLogDir(path=path, topics=[moved])]
            )
            side.ask_all(f"{name} {partition} to {path!r}", request, range(3))
    side.ask_all("nothing", AlterReplicaLogDirsRequest(), range(3))


def throttles(side: Side) -> None:
    """The rates at which replicas are copied and moved, which are set at run time only."""

    def change(label: str, name: str, operation: int, rate: str | None) -> None:
        settings = [
            AlterableConfig(name=key, config_operation=operation, value=rate) for key in RATES
        ]
        resource = AlterConfigsResource(resource_type=BROKER, resource_name=name, configs=settings)
        side.ask(f"{label}, {name!r}", IncrementalAlterConfigsRequest(resources=[resource]), 1)

    def look(label: str, name: str, count: int) -> None:
        resource = DescribeConfigsResource(
            resource_type=BROKER, resource_name=name, configuration_keys=list(RATES)
        )
        request = DescribeConfigsRequest(
            resources=[resource], include_synonyms=True, include_documentation=True
        )
        side.ask_until(
            f"{label}, {name!r} shown",
            request,
            4,
            settled=lambda answer: (
                sum(each.config_source in RUN_TIME for each in answer.results[0].configs) == count
            ),
        )

    for name in ("0", ""):
        look("before", name, 0)
        change("set", name, SET, "5000")
        look("set", name, len(RATES))
        look("set for another scope", "" if name else "0", 0 if name else len(RATES))
        change("deleted", name, DELETE, None)
        if not name:  # A broker of Apache's may go on showing its own value after that.
            look("deleted", name, 0)


def features(side: Side) -> None:
    """Features that nobody knows, and one without a name."""
    wanted = {
        "none": [],
        "unknown": [FeatureUpdateKey(feature="no.such.feature", max_version_level=1)],
        "unknown to version 0": [FeatureUpdateKey(feature="no.such.feature", max_version_level=0)],
        "no name": [FeatureUpdateKey(feature="", max_version_level=1)],
    }
    for what, updates in wanted.items():
        request = UpdateFeaturesRequest(feature_updates=updates)
        side.ask_all(f"{what}", request, (0, 1), trap=True)


QUESTIONS: Final = (elections, reassignments, log_directories, throttles, features)
