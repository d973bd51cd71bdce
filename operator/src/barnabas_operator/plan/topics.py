"""The plan for the topics of a cluster: their managing resources, and their changes.

What the resources say goes, in one direction. A topic that no resource names is left alone, unless
the ledger (`plan.ledger`) says that it goes with its resource.

Settings that a resource does not name are removed from its topic, so a topic that exists already is
adopted only if it equals the resource, or by an annotation that says which side wins. The id of the
topic in the status is the memory of that: another id is a topic that another client has created.
Of two resources for one topic the older one has it.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Final, Protocol

from barnabas_kafka.settings.definitions import SettingError
from barnabas_kafka.settings.topic import validate_override
from barnabas_operator.api.conditions import READY, Verdict
from barnabas_operator.api.reading import Resource
from barnabas_operator.api.topics import ADOPT, Adopt, KafkaTopic, TopicSpec
from barnabas_operator.plan.namespaces import Held, objection_to, origin_of, precedence

Topic = Resource[KafkaTopic]
# Of a setting's value that is checked once for all topics that have it.
LONGEST_KEPT: Final = 256
NOTHING: Final[Mapping[str, Any]] = MappingProxyType({})

# The brokers keep their own state in these: org.apache.kafka.common.internals.Topic.
INTERNAL_TOPICS: Final = frozenset(
    {"__consumer_offsets", "__transaction_state", "__share_group_state", "__cluster_metadata"}
)
# The Ready reason of a topic that the cluster has accepted and does not show yet.
CREATING: Final = "Creating"
# Of one whose changes do not show yet, and of one that is as specified.
UPDATING: Final = "Updating"
AS_SPECIFIED: Final = "Ready"


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicView:
    """What the cluster says of a topic; `config` is what was set on the topic itself."""

    name: str
    topic_id: str
    partitions: int
    replicas: int
    config: Mapping[str, str]


class HeldTopic(Held, Protocol):
    """What the ledger says of a topic."""

    @property
    def topic_id(self) -> str:
        """Its id, empty while that is not known."""
        ...


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


def new_partitions(step: TopicStep) -> int:
    """How many partitions a step has brokers create."""
    if isinstance(step, CreateTopic):
        return step.partitions
    return step.partitions - step.before if isinstance(step, GrowPartitions) else 0


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why a resource cannot be made true as it is: one word, and what to do."""

    reason: str
    message: str


def topic_name(topic: Topic) -> str:
    """The topic's name in Kafka."""
    return topic.body.spec.topic_name or topic.meta.name


def owners(topics: Iterable[Topic], ledger: Mapping[str, Held] = NOTHING) -> dict[str, Topic]:
    """Which resource manages which topic: the oldest; of equally old ones the first by name.

    Between namespaces `plan.namespaces` decides.
    """
    found: dict[str, Topic] = {}
    for topic in sorted(topics, key=lambda each: precedence(each, ledger.get(topic_name(each)))):
        found.setdefault(topic_name(topic), topic)
    return found


@dataclass(frozen=True, slots=True)
class Kept:
    """A topic that is left as it is because an annotation says so, and how it differs."""

    differences: tuple[str, ...]

    @property
    def verdict(self) -> Verdict:
        """Ready, since that is what the annotation asks for, with the differences as a warning."""
        text = f"not applied, as the annotation keeps the topic: {'; '.join(self.differences)}"
        message = "the topic exists and is kept as it is"
        return Verdict(ready=True, reason="Kept", message=message, warnings=(text,))


TopicPlan = list[TopicStep] | Refusal | Kept


def plan_topic(
    topic: Topic, observed: TopicView | None, entry: HeldTopic | None = None
) -> TopicPlan:
    """The steps that make a topic as its resource says, or why nothing is changed."""
    spec, name = topic.body.spec, topic_name(topic)
    if name in INTERNAL_TOPICS:
        text = f"{name} is an internal topic of Kafka; brokers manage it themselves"
        return Refusal("InternalTopic", text)
    for key, value in spec.config.items():
        try:
            _validate(key, value)
        except SettingError as error:
            return Refusal("InvalidConfig", f"spec.config.{error}")
    if objection := objection_to(topic, entry):
        return Refusal("Conflict", f"topic {name} is left as it is: {objection}")
    if observed is None:
        create = CreateTopic(
            partitions=spec.partitions, replicas=spec.replicas, config=dict(spec.config)
        )
        return [create]
    return _not_taken_over(topic, observed, entry) or _changes(spec, observed)


def _not_taken_over(
    topic: Topic, observed: TopicView, entry: HeldTopic | None
) -> Refusal | Kept | None:
    """Why a topic that exists is left as it is; None if it is the resource's."""
    spec = topic.body.spec
    if origin_of(topic):
        if is_of_namespace(entry, observed, spec):
            return None
        text = (
            f"topic {topic_name(topic)} exists and was not created for this namespace; it is left"
            " as it is. Only a KafkaTopic in the namespace of the cluster may adopt it"
        )
        return Refusal("AlreadyExists", text)
    found = differences(spec, observed)
    if is_managed(topic, observed) or not found:
        return None
    answer = topic.meta.annotations.get(ADOPT)
    if answer == Adopt.TOPIC:
        return Kept(found)
    return None if answer == Adopt.RESOURCE else _not_adopted(topic, found, answer)


def _validate(name: str, value: str) -> None:
    """Raises SettingError. Long values are of single topics, and are not kept."""
    check = validate_and_keep if len(value) <= LONGEST_KEPT else validate_override
    check(name, value)


@functools.lru_cache(4096)
def validate_and_keep(name: str, value: str) -> None:
    """Thousands of topics have the same few settings; one that is wrong is checked each time."""
    validate_override(name, value)


def is_managed(topic: Topic, observed: TopicView) -> bool:
    """Whether the topic is the one that was created or adopted for this resource."""
    status = topic.body.status
    if status.topic_id:
        return status.topic_id == observed.topic_id
    # An earlier definition drops topicId from the status: what was said of the topic is left, and a
    # topic that only equals its resource is Ready from the first pass on.
    own = {CREATING, UPDATING, AS_SPECIFIED}
    return any(each.type == READY and each.reason in own for each in status.conditions)


def is_of_namespace(entry: HeldTopic | None, observed: TopicView, spec: TopicSpec) -> bool:
    """Whether a topic is the one that was created for a resource of another namespace.

    Its id is not known yet where a pass ended before it saw the topic; then it equals the spec.
    """
    if entry is None:
        return False
    if entry.topic_id:
        return entry.topic_id == observed.topic_id
    return not differences(spec, observed)


def differences(spec: TopicSpec, observed: TopicView) -> tuple[str, ...]:
    """How a topic differs from a spec, a text each; none if they are equal."""
    found = []
    if spec.partitions != observed.partitions:
        found.append(f"partitions is {observed.partitions}, spec has {spec.partitions}")
    if spec.replicas != observed.replicas:
        found.append(f"replicas is {observed.replicas}, spec has {spec.replicas}")
    for key in sorted(spec.config.keys() | observed.config.keys()):
        wanted, value = spec.config.get(key), observed.config.get(key)
        if wanted != value:
            here = "is not set" if value is None else f"is {value}"
            there = "does not have it" if wanted is None else f"has {wanted}"
            found.append(f"{key} {here}, spec.config {there}")
    return tuple(found)


def _not_adopted(topic: Topic, found: Iterable[str], answer: str | None) -> Refusal:
    if answer is not None:
        text = f"annotation {ADOPT} is {answer}, must be {' or '.join(Adopt)}"
        return Refusal("InvalidAnnotation", text)
    how = "was not created by this resource"
    if topic.body.status.topic_id:
        how = f"is another one than {topic.body.status.topic_id}, which was deleted"
    return Refusal(
        "AlreadyExists",
        f"topic {topic_name(topic)} exists and {how}; it is left as it is. It differs:"
        f" {'; '.join(found)}. Change the spec to be equal, or annotate the resource with"
        f" {ADOPT}=resource to apply the spec, {ADOPT}=topic to keep the topic",
    )


def _changes(spec: TopicSpec, observed: TopicView) -> list[TopicStep] | Refusal:
    if spec.partitions < observed.partitions:
        text = (
            f"the topic has {observed.partitions} partitions; set spec.partitions to that or more"
        )
        return Refusal("PartitionsMayNotShrink", text)
    if spec.replicas != observed.replicas:
        text = f"the topic has {observed.replicas} replicas; set spec.replicas to that"
        return Refusal("ReplicasMayNotChange", text)
    steps: list[TopicStep] = []
    if spec.partitions > observed.partitions:
        steps.append(GrowPartitions(before=observed.partitions, partitions=spec.partitions))
    own = observed.config
    put = {name: value for name, value in spec.config.items() if own.get(name) != value}
    drop = frozenset(own) - frozenset(spec.config)
    if put or drop:
        steps.append(AlterConfig(put=put, drop=drop))
    return steps
