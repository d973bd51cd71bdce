"""KafkaTopic: a topic of a cluster; the resource says how it should be, Kafka never does."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Annotated, ClassVar, Final

from barnabas_operator.api import GROUP
from barnabas_operator.api.conditions import Condition
from barnabas_operator.api.facts import Between, Doc, Fewest, Keyed, Longest, Pattern, Rule
from barnabas_operator.api.references import (
    SAME_CLUSTER,
    ClusterName,
    ClusterNamespace,
    unchangeable,
)
from barnabas_operator.api.storage import DeletionPolicy

TOPIC_NAME = Pattern(r"^[a-zA-Z0-9._-]+$", "letters, digits, dots, dashes and underscores")
# The bound of CreateTopics and CreatePartitions in brokers, which is that of KRaft's controller.
PARTITIONS_PER_REQUEST: Final = 10_000
# The annotation that says which side wins where a topic exists already and differs.
ADOPT: Final = f"{GROUP}/adopt"


class Adopt(StrEnum):
    """Values of the annotation: apply the spec to the topic, or keep the topic as it is."""

    RESOURCE = "resource"
    TOPIC = "topic"


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicSpec:
    """The topic that is wanted."""

    RULES: ClassVar = (
        SAME_CLUSTER,
        unchangeable("clusterNamespace"),
        unchangeable("topicName", "Kafka cannot rename a topic"),
        Rule(
            "self.partitions >= oldSelf.partitions",
            "partitions may not shrink: Kafka would lose the records of those removed",
        ),
        Rule(
            "self.replicas == oldSelf.replicas",
            "replicas may not change: this version does not move replicas",
        ),
    )

    cluster: ClusterName
    cluster_namespace: ClusterNamespace = None
    topic_name: Annotated[
        str | None,
        Doc("Name in Kafka, if it is not the name of the resource."),
        TOPIC_NAME,
        Fewest(1),
        Longest(249),
        Rule("self != '.' && self != '..'", "topicName cannot be . or .."),
    ] = None
    partitions: Annotated[
        int,
        Doc("How many partitions; they only grow. Brokers create at most 10000 by one request."),
        Between(1, PARTITIONS_PER_REQUEST),
    ] = 1
    replicas: Annotated[int, Doc("Copies of each partition."), Between(1, 9)] = 1
    config: Annotated[
        Mapping[str, str],
        Doc("Topic settings, such as retention.ms; values are strings."),
        Longest(100),
    ] = field(default_factory=dict)
    deletion_policy: Annotated[
        DeletionPolicy, Doc("Whether the topic outlives the resource (Retain) or goes with it.")
    ] = DeletionPolicy.RETAIN


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicStatus:
    """The topic as it was last seen."""

    observed_generation: Annotated[int, Doc("The generation that this status is about.")] = 0
    conditions: Annotated[
        tuple[Condition, ...], Doc("Ready, Reconciling, Stalled, Warning."), Keyed(("type",))
    ] = ()
    topic_name: Annotated[str, Doc("Name in Kafka.")] = ""
    topic_id: Annotated[str, Doc("Kafka's id of the topic, once it was created or adopted.")] = ""
    partitions: Annotated[int, Doc("Partitions that there are.")] = 0
    replicas: Annotated[int, Doc("Copies of each partition that there are.")] = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class KafkaTopic:
    """A topic of a Kafka cluster."""

    spec: Annotated[TopicSpec, Doc("The topic that is wanted.")]
    status: Annotated[TopicStatus, Doc("The topic as it was last seen.")] = TopicStatus()
