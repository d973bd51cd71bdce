"""What handlers ask of the controller, and what it answers: one value per topic or resource."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import IntEnum
from uuid import UUID

from barnabas_broker.controller.configs import ConfigChange, ConfigResource
from barnabas_broker.controller.topics import TopicPlan
from barnabas_kafka.errors import ErrorCode, KafkaError
from barnabas_kafka.ids import ZERO_UUID, TopicPartition

Wanted = Mapping[TopicPartition, Sequence[int] | None]
"""Replicas by partition; None ends the move that is under way."""

Answers = dict[TopicPartition, KafkaError | None]
"""Why something was not done for a partition, None where it was."""


class ElectionType(IntEnum):
    """What ElectLeaders asks for."""

    PREFERRED = 0
    UNCLEAN = 1


Admit = Callable[[int], object]
"""Takes a number of partitions from a quota; raises KafkaError where that is exceeded."""


def admit_all(_partitions: int) -> None:
    """Without a quota."""


def not_admitted(admit: Admit, partitions: Mapping[str, int]) -> dict[str, KafkaError]:
    """The topics, of so many partitions each, for which a quota does not suffice."""
    refused = {}
    for name, count in partitions.items():
        try:
            admit(count)
        except KafkaError as error:
            refused[name] = error
    return refused


@dataclass(frozen=True, slots=True)
class Growth:
    """More partitions for a topic; `assignments` are the replicas of the added ones, if given."""

    name: str
    count: int
    assignments: Sequence[tuple[int, ...]] | None = None


@dataclass(frozen=True, slots=True)
class ConfigRequest:
    """Changes of the settings of one topic, of this broker, or (empty name) of all brokers."""

    resource: ConfigResource
    name: str
    changes: Sequence[ConfigChange]


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of one part of a request; `message` says why where it was refused."""

    name: str
    error: ErrorCode = ErrorCode.NONE
    message: str | None = None

    @classmethod
    def refused(cls, name: str, error: KafkaError) -> "Outcome":
        """The answer that carries an error."""
        return cls(name, error.code, error.message)

    @property
    def granted(self) -> bool:
        """Whether this part of the request was, or will be, done."""
        return self.error == ErrorCode.NONE

    def unless_failed(self, error: KafkaError) -> "Outcome":
        """This answer if it was a refusal; else, since nothing could be written, the error."""
        return Outcome.refused(self.name, error) if self.granted else self

    def unless_among(self, failures: Mapping[str, KafkaError]) -> "Outcome":
        """This answer, or the error where what was granted could not be carried out."""
        error = failures.get(self.name)
        return self if error is None else self.unless_failed(error)


@dataclass(frozen=True, slots=True, kw_only=True)
class CreatedTopic:
    """What became of a topic to be created.

    Counts and `config` (the topic's own settings) are those it has or, if only validated, would
    have; the id is then ZERO_UUID.
    """

    outcome: Outcome
    id: UUID = ZERO_UUID
    num_partitions: int = -1
    replication_factor: int = -1
    config: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def planned(cls, plan: TopicPlan, topic_id: UUID | None) -> "CreatedTopic":
        """The answer to a topic that may be created; without an id it is only validated."""
        return cls(
            outcome=Outcome(plan.name),
            id=topic_id or ZERO_UUID,
            num_partitions=len(plan.replicas),
            replication_factor=len(plan.replicas[0]),
            config=plan.config,
        )

    def unless_among(self, failures: Mapping[str, KafkaError]) -> "CreatedTopic":
        """This answer, or the error where what was granted could not be carried out."""
        outcome = self.outcome.unless_among(failures)
        return self if outcome is self.outcome else CreatedTopic(outcome=outcome)
