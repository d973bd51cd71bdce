"""Plans of topics: steps, refusals and owners."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from barnabas_operator.api.reading import read_topic
from barnabas_operator.plan.topics import (
    Kept,
    Refusal,
    Topic,
    TopicView,
    owners,
    plan_topic,
    validate_and_keep,
)
from tests.operator import examples

OBSERVED = TopicView(
    name="packages", topic_id="id", partitions=3, replicas=1, config={"retention.ms": "1000"}
)


def _topic(name: str = "packages", *, created: str = "", **spec: Any) -> Topic:
    document = examples.topic(name, **spec)
    document["metadata"]["creationTimestamp"] = created
    return read_topic(document)


def _created(**spec: Any) -> Topic:
    """The resource for which the topic was created."""
    return read_topic({**examples.topic(**spec), "status": {"topicId": "id"}})


def _existing(*, annotation: str = "", **spec: Any) -> Topic:
    """A resource for a topic that another client has created."""
    document = examples.topic(**spec)
    if annotation:
        document["metadata"]["annotations"] = {"barnabas.io/adopt": annotation}
    return read_topic(document)


def _lines(**spec: Any) -> list[str]:
    steps = plan_topic(_created(**spec), OBSERVED)
    assert isinstance(steps, list)
    return [str(step) for step in steps]


def test_an_absent_topic_is_created() -> None:
    """With all that the resource says."""
    steps = plan_topic(_topic(config={"retention.ms": "5"}), None)
    assert isinstance(steps, list)
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
    refusal = plan_topic(_created(**spec), OBSERVED)
    assert isinstance(refusal, Refusal)
    assert refusal.reason == reason
    assert words in refusal.message


def test_the_older_of_two_resources_owns_the_topic() -> None:
    """Who came first stays the owner, whatever the order of the list."""
    first = _topic("b", created="2026-01-01T00:00:00Z", topicName="t")
    second = _topic("a", created="2026-01-02T00:00:00Z", topicName="t")
    assert owners([second, first]) == {"t": first}


def test_an_existing_topic_that_equals_the_resource_is_adopted() -> None:
    """Nothing about it would change."""
    assert plan_topic(_existing(config={"retention.ms": "1000"}), OBSERVED) == []


def test_an_existing_topic_that_differs_is_left_alone() -> None:
    """Removing retention.ms=-1 from somebody's topic would delete their records."""
    kept_for_ever = replace(OBSERVED, config={"retention.ms": "-1"})
    refusal = plan_topic(
        _existing(partitions=5, config={"cleanup.policy": "compact"}), kept_for_ever
    )
    assert isinstance(refusal, Refusal)
    assert refusal.reason == "AlreadyExists"
    assert (
        "partitions is 3, spec has 5; cleanup.policy is not set, spec.config has compact;"
        " retention.ms is -1, spec.config does not have it" in refusal.message
    )
    assert "barnabas.io/adopt=topic" in refusal.message


def test_an_annotation_says_which_side_wins() -> None:
    """The resource is applied, or the topic kept; another value is neither."""
    resource = _existing(annotation="resource", config={"cleanup.policy": "compact"})
    (step,) = plan_topic(resource, OBSERVED)  # type: ignore[misc]
    assert str(step) == "set cleanup.policy=compact, remove retention.ms"
    topic = plan_topic(_existing(annotation="topic", partitions=9), OBSERVED)
    assert isinstance(topic, Kept)
    assert topic.verdict.ready
    assert "partitions is 3, spec has 9" in topic.verdict.warnings[0]
    refusal = plan_topic(_existing(annotation="both", partitions=9), OBSERVED)
    assert isinstance(refusal, Refusal)
    assert refusal.reason == "InvalidAnnotation"


def test_a_topic_that_was_deleted_and_created_by_others_is_not_ours() -> None:
    """The name is the same, the id is not: its settings are somebody else's."""
    refusal = plan_topic(_created(config={}), replace(OBSERVED, topic_id="another"))
    assert isinstance(refusal, Refusal)
    assert "is another one than id, which was deleted" in refusal.message


def test_a_topic_that_the_cluster_has_accepted_is_ours() -> None:
    """Its id was not known yet when the status was written, and the spec has changed since."""
    ready = {"type": "Ready", "status": "False", "reason": "Creating"}
    topic = read_topic({**examples.topic(partitions=5), "status": {"conditions": [ready]}})
    assert isinstance(plan_topic(topic, OBSERVED), list)


@pytest.mark.parametrize("name", ["__consumer_offsets", "__transaction_state"])
@pytest.mark.parametrize("annotation", ["", "resource"])
@pytest.mark.parametrize("observed", [None, OBSERVED])
def test_internal_topics_are_refused(
    name: str, annotation: str, observed: TopicView | None
) -> None:
    """__consumer_offsets without compaction grows without end, and loses offsets by retention."""
    refusal = plan_topic(_existing(annotation=annotation, topicName=name), observed)
    assert isinstance(refusal, Refusal)
    assert refusal.reason == "InternalTopic"


def test_long_values_of_settings_are_not_kept() -> None:
    """A topic whose setting changes for ever would fill the operator's memory."""
    entries = ",".join(f"{number}:0" for number in range(200))
    topic = read_topic(examples.topic(config={"leader.replication.throttled.replicas": entries}))
    before = validate_and_keep.cache_info().currsize
    assert isinstance(plan_topic(topic, None), list)
    assert validate_and_keep.cache_info().currsize == before
