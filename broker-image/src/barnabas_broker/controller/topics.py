"""Whether a topic may be created, grown or deleted, and what it is then made of.

Pure decisions in the order in which Kafka takes them (`ZkAdminManager`, `AdminZkClient`,
`Topic.validate`), so that a request with several faults is refused for the same one. They know
the cluster from an image and say no by raising KafkaError; they know nothing of znodes, logs or
principals.
"""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from barnabas_broker.cluster.image import MetadataImage, TopicImage
from barnabas_broker.controller.placement import Assignment, assign_replicas, growth_start
from barnabas_kafka.errors import ErrorCode, KafkaError

# "Use the broker's default" in CreateTopics, from version 4 on (KIP-464).
DEFAULT_COUNT = -1
MAX_NAME_LENGTH = 249
GROUP_METADATA_TOPIC = "__consumer_offsets"
TRANSACTION_STATE_TOPIC = "__transaction_state"
INTERNAL_TOPICS = frozenset({GROUP_METADATA_TOPIC, TRANSACTION_STATE_TOPIC, "__share_group_state"})
# Retention would delete what their coordinators know; Apache's brokers let clients set it.
COMPACTED_TOPICS = frozenset({GROUP_METADATA_TOPIC, TRANSACTION_STATE_TOPIC})
COMPACT = "compact"
# The name of KRaft's own log; a topic called so could not be moved to such a cluster.
CLUSTER_METADATA_TOPIC = "__cluster_metadata"
# Of all topics in a request: bounds its work, during which the controller does nothing else.
# KRaft's controller has the same bound.
MAX_PARTITIONS_PER_REQUEST = 10_000

_LEGAL_NAME = re.compile(r"[a-zA-Z0-9._-]+", re.ASCII)


@dataclass(frozen=True, slots=True, kw_only=True)
class NewTopic:
    """A topic as a request describes it.

    `assignments` are (partition, brokers) where the caller places replicas himself; the counts
    must then both be DEFAULT_COUNT. `configs` are (name, value) as sent, null values included.
    """

    name: str
    num_partitions: int = DEFAULT_COUNT
    replication_factor: int = DEFAULT_COUNT
    assignments: Sequence[tuple[int, tuple[int, ...]]] = ()
    configs: Sequence[tuple[str, str | None]] = ()

    def partitions(self, defaults: "TopicDefaults") -> int:
        """How many partitions are asked for."""
        if self.assignments:
            return len(self.assignments)
        asked = self.num_partitions
        return defaults.num_partitions if asked == DEFAULT_COUNT else asked


class TopicDefaults(NamedTuple):
    """What the broker's settings say about topics that do not: num.partitions and so on."""

    num_partitions: int
    replication_factor: int


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicPlan:
    """A topic that may be created: replicas of partition 0, 1, …, and its own settings."""

    name: str
    replicas: tuple[tuple[int, ...], ...]
    config: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Start:
    """Where placement starts in the ring of brokers, and the distance of the followers."""

    index: int
    shift: int


class TakenNames:
    """The names that a new topic may not have, and those that it would collide with.

    Metric names turn dots into underscores, so `a.b` and `a_b` cannot both exist (KAFKA-2145).
    """

    def __init__(self, names: Iterable[str] = (), *, beside: "TakenNames | None" = None) -> None:
        """Those of `beside` are taken, too."""
        self._by_metric_name: dict[str, set[str]] = {}
        self._beside = beside
        for name in names:
            self.add(name)

    def add(self, name: str) -> None:
        """Take another name."""
        self._by_metric_name.setdefault(_metric_name(name), set()).add(name)

    def remove(self, name: str) -> None:
        """Free a name that was added."""
        colliding = self._by_metric_name[_metric_name(name)]
        colliding.remove(name)
        if not colliding:
            del self._by_metric_name[_metric_name(name)]

    def collision(self, name: str) -> str | None:
        """The existing name that `name` would collide with, or equal; None where it is free."""
        found = self._by_metric_name.get(_metric_name(name))
        if found is None:
            return None if self._beside is None else self._beside.collision(name)
        return name if name in found else min(found)


def _metric_name(name: str) -> str:
    return name.replace(".", "_")


def is_internal(name: str) -> bool:
    """Whether a topic is one that brokers keep for themselves."""
    return name in INTERNAL_TOPICS


def check_cleanup_policy(name: str, policy: Sequence[str]) -> None:
    """Raise KafkaError INVALID_CONFIG where records of a coordinator would be deleted by age."""
    if name in COMPACTED_TOPICS and set(policy) != {COMPACT}:
        raise KafkaError(
            ErrorCode.INVALID_CONFIG,
            f"cleanup.policy of internal topic {name} must be compact, not "
            f"'{','.join(policy)}': retention would delete the coordinator's records",
        )


def name_fault(name: str) -> str | None:
    """Why a topic cannot be called so, None if it can (Kafka's `Topic.validate`)."""
    if name == "":
        return "Topic name is invalid: the empty string is not allowed"
    if name in (".", ".."):
        return f"Topic name is invalid: '{name}' is not allowed"
    if len(name) > MAX_NAME_LENGTH:
        return (
            f"Topic name is invalid: the length of '{name}' is longer than the max allowed "
            f"length {MAX_NAME_LENGTH}"
        )
    if _LEGAL_NAME.fullmatch(name) is None:
        return (
            f"Topic name is invalid: '{name}' contains one or more characters other than "
            "ASCII alphanumerics, '.', '_' and '-'"
        )
    return None


def validate_name(name: str) -> None:
    """Raise KafkaError INVALID_TOPIC_EXCEPTION where a topic cannot be called so."""
    fault = name_fault(name)
    if fault is not None:
        raise KafkaError(ErrorCode.INVALID_TOPIC_EXCEPTION, fault)


def plan_topic(
    new: NewTopic,
    image: MetadataImage,
    *,
    taken: TakenNames,
    defaults: TopicDefaults,
    start: Start,
    check_config: Callable[[Mapping[str, str]], None],
) -> TopicPlan:
    """What the topic would be made of.

    `check_config` raises KafkaError INVALID_CONFIG for settings that a topic cannot have. Raises
    KafkaError: TOPIC_ALREADY_EXISTS, INVALID_CONFIG, INVALID_REQUEST, INVALID_PARTITIONS,
    INVALID_REPLICATION_FACTOR, INVALID_TOPIC_EXCEPTION, INVALID_REPLICA_ASSIGNMENT or
    POLICY_VIOLATION.
    """
    existing = taken.collision(new.name)
    if existing == new.name:
        raise KafkaError(ErrorCode.TOPIC_ALREADY_EXISTS, f"Topic '{new.name}' already exists.")
    config = _given_config(new)
    counts = (new.num_partitions, new.replication_factor)
    if new.assignments and counts != (DEFAULT_COUNT, DEFAULT_COUNT):
        raise KafkaError(
            ErrorCode.INVALID_REQUEST,
            "Both numPartitions or replicationFactor and replicasAssignments were set. "
            "Both cannot be used at the same time.",
        )
    assignment = None if new.assignments else _placed(new, image, defaults, start)
    validate_name(new.name)
    if existing is not None:
        raise KafkaError(
            ErrorCode.INVALID_TOPIC_EXCEPTION,
            f"Topic '{new.name}' collides with existing topics: {existing}",
        )
    if assignment is None:
        assignment = _manual(new.assignments, image)
    check_config(config)
    replicas = tuple(assignment[partition] for partition in range(len(assignment)))
    return TopicPlan(name=new.name, replicas=replicas, config=config)


def _given_config(new: NewTopic) -> dict[str, str]:
    empty = [name for name, value in new.configs if value is None]
    if empty:
        raise KafkaError(
            ErrorCode.INVALID_CONFIG,
            f"Null value not supported for topic configs: {','.join(empty)}",
        )
    return {name: value for name, value in new.configs if value is not None}


def _placed(
    new: NewTopic, image: MetadataImage, defaults: TopicDefaults, start: Start
) -> Assignment:
    partitions = new.partitions(defaults)
    factor = new.replication_factor
    if factor == DEFAULT_COUNT:
        factor = defaults.replication_factor
    check_request_size(partitions)
    return assign_replicas(
        image.brokers.values(),
        partitions=partitions,
        replication_factor=factor,
        start_index=start.index,
        shift=start.shift,
    )


def check_request_size(partitions: int) -> None:
    """Raise KafkaError POLICY_VIOLATION where one request asks for too many partitions."""
    if partitions > MAX_PARTITIONS_PER_REQUEST:
        raise KafkaError(
            ErrorCode.POLICY_VIOLATION,
            f"Excessively large number of partitions per request: {partitions}, at most "
            f"{MAX_PARTITIONS_PER_REQUEST} are allowed.",
        )


def _manual(assignments: Sequence[tuple[int, tuple[int, ...]]], image: MetadataImage) -> Assignment:
    check_request_size(len(assignments))
    if sorted(partition for partition, _ in assignments) != list(range(len(assignments))):
        raise _bad_assignment("partitions should be a consecutive 0-based integer sequence")
    if len({len(replicas) for _, replicas in assignments}) != 1:
        raise _bad_assignment("All partitions should have the same number of replicas")
    for partition, replicas in assignments:
        _check_replicas(partition, replicas, image)
    return dict(assignments)


def _check_replicas(partition: int, replicas: Sequence[int], image: MetadataImage) -> None:
    listed = ", ".join(map(str, replicas))
    if not replicas:
        raise _bad_assignment(f"Cannot have replication factor of 0 for partition id {partition}.")
    if len(set(replicas)) != len(replicas):
        raise _bad_assignment(
            f"Duplicate brokers not allowed in replica assignment: {listed} "
            f"for partition id {partition}."
        )
    unknown = [str(broker) for broker in replicas if broker not in image.brokers]
    if unknown:
        raise _bad_assignment(f"Unknown broker(s) in replica assignment: {', '.join(unknown)}.")


def _bad_assignment(message: str) -> KafkaError:
    return KafkaError(ErrorCode.INVALID_REPLICA_ASSIGNMENT, message)


def plan_growth(
    topic: TopicImage,
    image: MetadataImage,
    *,
    count: int,
    assignments: Sequence[tuple[int, ...]] | None,
) -> tuple[tuple[int, ...], ...]:
    """The replicas of the partitions that bring a topic to `count`, in order.

    Raises KafkaError: REASSIGNMENT_IN_PROGRESS, INVALID_PARTITIONS, INVALID_REPLICA_ASSIGNMENT,
    INVALID_REPLICATION_FACTOR or POLICY_VIOLATION.
    """
    if any(partition.adding or partition.removing for partition in topic.partitions):
        raise KafkaError(
            ErrorCode.REASSIGNMENT_IN_PROGRESS,
            f"A partition reassignment is in progress for the topic '{topic.name}'.",
        )
    present = len(topic.partitions)
    if count < present:
        raise KafkaError(
            ErrorCode.INVALID_PARTITIONS,
            f"Topic currently has {present} partitions, which is higher than the requested "
            f"{count}.",
        )
    if count == present:
        raise KafkaError(ErrorCode.INVALID_PARTITIONS, f"Topic already has {present} partitions.")
    check_request_size(count - present)
    first = topic.partitions[0].replicas
    if assignments is not None:
        return _manual_growth(assignments, image, present=present, count=count, factor=len(first))
    start = growth_start(sorted(image.brokers), first[0])
    placed = assign_replicas(
        image.brokers.values(),
        partitions=count - present,
        replication_factor=len(first),
        start_index=start,
        shift=start,
        first_partition=present,
    )
    return tuple(placed[partition] for partition in range(present, count))


def _manual_growth(
    assignments: Sequence[tuple[int, ...]],
    image: MetadataImage,
    *,
    present: int,
    count: int,
    factor: int,
) -> tuple[tuple[int, ...], ...]:
    if len(assignments) != count - present:
        raise _bad_assignment(
            f"Increasing the number of partitions by {count - present} but "
            f"{len(assignments)} assignments provided."
        )
    for partition, replicas in enumerate(assignments, start=present):
        _check_replicas(partition, replicas, image)
    sizes = {partition: len(replicas) for partition, replicas in enumerate(assignments, present)}
    others = {partition: size for partition, size in sizes.items() if size != factor}
    if others:
        raise _bad_assignment(
            f"Inconsistent replication factor between partitions, partition 0 has {factor} "
            f"while partitions {list(others)} have replication factors {list(others.values())}, "
            "respectively."
        )
    return tuple(tuple(replicas) for replicas in assignments)
