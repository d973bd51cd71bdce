"""Plans of topics: steps, refusals, owners and the ledger."""

from __future__ import annotations

from typing import Any

import pytest

from barnabas_operator.api.reading import read_topic
from barnabas_operator.api.storage import DeletionPolicy
from barnabas_operator.plan.topics import (
    LedgerEntry,
    Refusal,
    Topic,
    TopicView,
    next_ledger,
    orphans,
    owners,
    plan_topic,
)
from tests.operator import examples

SEEN = TopicView(
    name="packages", topic_id="id", partitions=3, replicas=1, config={"retention.ms": "1000"}
)


def _topic(name: str = "packages", *, created: str = "", **spec: Any) -> Topic:
    document = examples.topic(name, **spec)
    document["metadata"]["creationTimestamp"] = created
    return read_topic(document)


def _lines(**spec: Any) -> list[str]:
    steps = plan_topic(_topic(**spec).body.spec, SEEN)
    assert not isinstance(steps, Refusal)
    return [str(step) for step in steps]


def test_an_absent_topic_is_created() -> None:
    """With all that the resource says."""
    steps = plan_topic(_topic(config={"retention.ms": "5"}).body.spec, None)
    assert not isinstance(steps, Refusal)
    assert [str(step) for step in steps] == ["create with 3 partitions of 1 replicas"]


def test_a_topic_as_it_should_be_is_left_alone() -> None:
    """Nothing to do is no step."""
    assert _lines(config={"retention.ms": "1000"}) == []


def test_partitions_grow_and_settings_follow() -> None:
    """Settings that the resource does not name are removed."""
    assert _lines(partitions=5, config={"cleanup.policy": "compact"}) == [
        "grow from 3 to 5 partitions",
        "set cleanup.policy=compact, remove retention.ms",
    ]


@pytest.mark.parametrize(
    ("spec", "reason", "words"),
    [
        ({"partitions": 2}, "PartitionsMayNotShrink", "has 3 partitions"),
        ({"replicas": 2}, "ReplicasMayNotChange", "has 1 replicas"),
        ({"config": {"retention.ns": "1"}}, "InvalidConfig", "retention.ns"),
        ({"config": {"retention.ms": "soon"}}, "InvalidConfig", "retention.ms=soon"),
    ],
)
def test_refusals_say_what_to_do(spec: dict[str, Any], reason: str, words: str) -> None:
    """What cannot be made true is refused before anything is tried."""
    refusal = plan_topic(_topic(**spec).body.spec, SEEN)
    assert isinstance(refusal, Refusal)
    assert refusal.reason == reason
    assert words in refusal.message


def test_the_older_of_two_resources_owns_the_topic() -> None:
    """Who came first stays the owner, whatever the order of the list."""
    first = _topic("b", created="2026-01-01T00:00:00Z", topicName="t")
    second = _topic("a", created="2026-01-02T00:00:00Z", topicName="t")
    assert owners([second, first]) == {"t": first}


def test_ledger_remembers_what_is_to_be_deleted() -> None:
    """A topic is an orphan when no resource names it any more and the last one said Delete."""
    ledger = {
        "kept": LedgerEntry(resource="kept", policy=DeletionPolicy.RETAIN),
        "gone": LedgerEntry(resource="gone", policy=DeletionPolicy.DELETE),
        "packages": LedgerEntry(resource="packages", policy=DeletionPolicy.DELETE),
    }
    managed = owners([_topic()])
    assert orphans(ledger, managed) == ["gone"]
    remembered = next_ledger(ledger, managed)
    assert remembered == {
        "gone": ledger["gone"],
        "packages": LedgerEntry(resource="packages", policy=DeletionPolicy.RETAIN),
    }
