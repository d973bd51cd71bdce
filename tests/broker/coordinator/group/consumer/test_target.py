"""The target assignment: which assignor, and what is written of its result."""

from uuid import UUID

from barnabas_broker.coordinator.group.consumer.group import SeenTopic
from barnabas_broker.coordinator.group.consumer.member import ConsumerMember
from barnabas_broker.coordinator.group.consumer.target import (
    elected_assignor,
    target,
    target_records,
)


def test_most_votes_decide_and_else_the_first_offered() -> None:
    """A vote for what is not offered any more does not count."""
    members = [ConsumerMember(id=str(i), assignor=name) for i, name in enumerate(["range", "old"])]
    assert elected_assignor(members, ("uniform", "range")) == "range"
    assert elected_assignor(members[1:], ("uniform", "range")) == "uniform"


def test_topics_that_are_missing_count_for_nothing() -> None:
    """And only what changed is written, before the epoch."""
    topics = {"t": SeenTopic(UUID(int=1), 2)}
    wanted = {"a": frozenset({"t"}), "b": frozenset({"t", "gone"})}
    found = target(wanted, topics, {}, assignor="range")
    assert found == {"a": {(UUID(int=1), 0)}, "b": {(UUID(int=1), 1)}}
    records = target_records("g", {"a": found["a"]}, found, 3)
    assert [(record.kind.name, record.part) for record in records] == [
        ("TARGET", "b"),
        ("TARGET_EPOCH", ""),
    ]
