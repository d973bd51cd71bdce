"""Answers to the parts of a request."""

from uuid import UUID

from barnabas_broker.controller.requests import CreatedTopic, Outcome
from barnabas_broker.controller.topics import TopicPlan
from barnabas_kafka.errors import ErrorCode, KafkaError
from barnabas_kafka.ids import ZERO_UUID


def test_a_failure_to_write_spares_what_was_refused_before() -> None:
    """The client learns the first reason of each."""
    failure = KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR, "disk")
    refused = Outcome.refused("a", KafkaError(ErrorCode.INVALID_CONFIG, "why"))
    assert (refused.granted, refused.message) == (False, "why")
    assert refused.unless_failed(failure) is refused
    assert Outcome("b").granted
    assert Outcome("b").unless_failed(failure) == Outcome.refused("b", failure)


def test_a_plan_is_answered_with_its_counts() -> None:
    """Without an id where it was only validated."""
    plan = TopicPlan(name="a", replicas=((1, 2), (2, 1), (1, 2)), config={"k": "v"})
    made, validated = CreatedTopic.planned(plan, UUID(int=4)), CreatedTopic.planned(plan, None)
    assert (made.num_partitions, made.replication_factor, made.config) == (3, 2, {"k": "v"})
    assert (made.id, validated.id) == (UUID(int=4), ZERO_UUID)
