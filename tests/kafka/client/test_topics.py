"""What operations on topics send and read, in old and new versions."""

from __future__ import annotations

from uuid import UUID

import pytest

from barnabas_kafka.client.operation import Ask
from barnabas_kafka.client.topics import (
    NewTopic,
    create_partitions,
    create_topics,
    delete_topics,
    describe_topics,
    list_topics,
)
from barnabas_kafka.protocol import codec
from barnabas_kafka.protocol.messages.create_topics import (
    CreatableTopicResult,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from barnabas_kafka.protocol.messages.delete_topics import DeleteTopicsRequest
from barnabas_kafka.protocol.messages.metadata import MetadataRequest


def ask(*keys: str, version: int) -> Ask[str]:
    """A request for these keys."""
    return Ask(keys, version, 1, 5000)


def test_create_topics_by_counts_and_by_replicas() -> None:
    """With replicas given, the counts must be -1: the broker refuses both."""
    operation = create_topics([NewTopic("a", 3, 2, {"k": "v"}), NewTopic("b", 9, 9, {}, [[1, 2]])])
    request = operation.request(ask("a", "b", version=7))
    assert isinstance(request, CreateTopicsRequest)
    by_count, by_replicas = request.topics
    assert (by_count.num_partitions, by_count.replication_factor) == (3, 2)
    assert [(each.name, each.value) for each in by_count.configs] == [("k", "v")]
    assert (by_replicas.num_partitions, by_replicas.replication_factor) == (-1, -1)
    assert by_replicas.assignments[0].broker_ids == [1, 2]
    assert request.timeout_ms == 5000


def test_create_topics_returns_id_and_counts() -> None:
    """Id and counts, as the broker chose them."""
    uuid = UUID(int=7)
    created = CreatableTopicResult(name="a", topic_id=uuid, num_partitions=3, replication_factor=1)
    read = create_topics([NewTopic("a")]).read(
        ask("a", version=7), CreateTopicsResponse(topics=[created])
    )
    assert (read["a"].topic_id, read["a"].partitions) == (uuid, 3)


def test_one_topic_cannot_be_created_twice() -> None:
    """The broker would refuse both."""
    with pytest.raises(ValueError, match="twice"):
        create_topics([NewTopic("a"), NewTopic("a", 2)])


@pytest.mark.parametrize("version", range(7))
def test_delete_topics_in_every_version(version: int) -> None:
    """Names moved when topics could be named by id."""
    request = delete_topics(["a", "a"]).request(ask("a", version=version))
    decoded = codec.decode(DeleteTopicsRequest, codec.encode(request, version), version)
    assert decoded.topic_names == (["a"] if version < 6 else [])
    assert [each.name for each in decoded.topics] == ([] if version < 6 else ["a"])


@pytest.mark.parametrize("version", range(4, 13))
def test_describing_creates_nothing(version: int) -> None:
    """Whatever auto.create.topics.enable is; below version 4 a broker could not be told."""
    request = describe_topics(["a"]).request(ask("a", version=version))
    decoded = codec.decode(MetadataRequest, codec.encode(request, version), version)
    assert decoded.allow_auto_topic_creation is False


@pytest.mark.parametrize("version", range(13))
def test_listing_asks_for_all_topics(version: int) -> None:
    """An empty list in version 0, null later."""
    request = list_topics().request(ask("", version=version))
    decoded = codec.decode(MetadataRequest, codec.encode(request, version), version)
    assert decoded.topics == ([] if version == 0 else None)


def test_partitions_are_counted_in_total() -> None:
    """Without replicas the broker chooses."""
    operation = create_partitions({"a": 3, "b": 2}, assignments={"b": [[0]]})
    request = operation.request(ask("a", "b", version=3))
    encoded = codec.encode(request, 3)
    first, second = codec.decode(type(request), encoded, 3).topics  # type: ignore[attr-defined]
    assert (first.count, first.assignments) == (3, None)
    assert second.assignments[0].broker_ids == [0]
