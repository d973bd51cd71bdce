"""What to do for the topics of a cluster: who manages which, and what is to be changed.

What the resources say goes, in one direction. A topic that no resource names is nobody's business,
with one exception: the ledger remembers topics whose resource said `deletionPolicy: Delete` and is
gone; those are deleted. That needs no finalizer, so nothing can hang when the operator is gone.

Settings that a resource does not name are removed from its topic. Of two resources for one topic
the older one has it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from barnabas_kafka.settings.definitions import SettingError
from barnabas_kafka.settings.topic import validate_override
from barnabas_operator.api.reading import Resource
from barnabas_operator.api.storage import DeletionPolicy
from barnabas_operator.api.topics import KafkaTopic, TopicSpec

Topic = Resource[KafkaTopic]


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicView:
    """What the cluster says of a topic; `config` is what was set on the topic itself."""

    name: str
    topic_id: str
    partitions: int
    replicas: int
    config: Mapping[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class CreateTopic:
    """Make the topic."""

    partitions: int
    replicas: int
    config: Mapping[str, str]

    def __str__(self) -> str:
        return f"create with {self.partitions} partitions of {self.replicas} replicas"


@dataclass(frozen=True, slots=True, kw_only=True)
class GrowPartitions:
    """Add partitions."""

    before: int
    partitions: int

    def __str__(self) -> str:
        return f"grow from {self.before} to {self.partitions} partitions"


@dataclass(frozen=True, slots=True, kw_only=True)
class AlterConfig:
    """Set and remove settings."""

    put: Mapping[str, str]
    drop: frozenset[str] = field(default_factory=frozenset)

    def __str__(self) -> str:
        changes = [f"set {name}={value}" for name, value in sorted(self.put.items())]
        changes += [f"remove {name}" for name in sorted(self.drop)]
        return ", ".join(changes)


TopicStep = CreateTopic | GrowPartitions | AlterConfig


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why a resource cannot be made true as it is: one word, and what to do."""

    reason: str
    message: str


@dataclass(frozen=True, slots=True, kw_only=True)
class LedgerEntry:
    """What is remembered of a managed topic: the resource's name and what becomes of the topic."""

    resource: str
    policy: DeletionPolicy


Ledger = Mapping[str, LedgerEntry]


def topic_name(topic: Topic) -> str:
    """The topic's name in Kafka."""
    return topic.body.spec.topic_name or topic.meta.name


def owners(topics: Iterable[Topic]) -> dict[str, Topic]:
    """Which resource manages which topic: the oldest; of equally old ones the first by name."""
    found: dict[str, Topic] = {}
    for topic in sorted(topics, key=lambda each: (each.meta.created, each.meta.name)):
        found.setdefault(topic_name(topic), topic)
    return found


def plan_topic(spec: TopicSpec, seen: TopicView | None) -> list[TopicStep] | Refusal:
    """The steps that make a topic as its resource says, or why that cannot be."""
    for name, value in spec.config.items():
        try:
            validate_override(name, value)
        except SettingError as error:
            return Refusal("InvalidConfig", f"spec.config.{error}")
    if seen is None:
        create = CreateTopic(
            partitions=spec.partitions, replicas=spec.replicas, config=dict(spec.config)
        )
        return [create]
    if spec.partitions < seen.partitions:
        text = f"the topic has {seen.partitions} partitions; set spec.partitions to that or more"
        return Refusal("PartitionsMayNotShrink", text)
    if spec.replicas != seen.replicas:
        text = f"the topic has {seen.replicas} replicas; set spec.replicas to that"
        return Refusal("ReplicasMayNotChange", text)
    steps: list[TopicStep] = []
    if spec.partitions > seen.partitions:
        steps.append(GrowPartitions(before=seen.partitions, partitions=spec.partitions))
    put = {name: value for name, value in spec.config.items() if seen.config.get(name) != value}
    drop = frozenset(seen.config) - frozenset(spec.config)
    if put or drop:
        steps.append(AlterConfig(put=put, drop=drop))
    return steps


def next_ledger(ledger: Ledger, managed: Mapping[str, Topic]) -> dict[str, LedgerEntry]:
    """What is to be remembered from now on: the managed topics, and those still to be deleted."""
    kept = {name: entry for name, entry in ledger.items() if name in orphans(ledger, managed)}
    for name, topic in managed.items():
        policy = topic.body.spec.deletion_policy
        kept[name] = LedgerEntry(resource=topic.meta.name, policy=policy)
    return dict(sorted(kept.items()))


def orphans(ledger: Ledger, managed: Mapping[str, Topic]) -> Sequence[str]:
    """The topics to delete: no resource names them any more, and the last one said Delete."""
    return sorted(
        name
        for name, entry in ledger.items()
        if name not in managed and entry.policy is DeletionPolicy.DELETE
    )
