"""The resources of a cluster out of those of its namespace."""

from __future__ import annotations

from barnabas_operator.reconcile.reading import read_named, read_one
from barnabas_operator.reconcile.reconciler import READ_TOPIC
from tests.operator import examples
from tests.operator.memory_kube import MemoryKube
from tests.operator.ports import context_on


def test_resources_that_name_the_cluster_and_those_that_may() -> None:
    """One that says in an unknown way which cluster it names counts for each of the namespace."""
    documents = [
        examples.topic("ours"),
        examples.topic("theirs", cluster="other"),
        examples.topic("broken", partitions="many"),
        examples.topic("newer", cluster=["quickstart"]),
    ]
    kube = MemoryKube(*documents)
    found = read_named(documents, "quickstart", READ_TOPIC, context_on(kube))
    assert [each.meta.name for each in found.resources] == ["ours"]
    assert found.unparsed == ("broken", "newer")
    assert kube.writes == ["status KafkaTopic broken", "status KafkaTopic newer"]


def test_unknown_fields_are_ignored_and_listed() -> None:
    """Wherever they are; those of a status are our own and not the user's concern."""
    document = examples.topic(newer={"a": 1})
    document["status"] = {"topicId": "id", "newer": 1}
    read = read_one(document, READ_TOPIC, context_on(MemoryKube(document)))
    assert read is not None
    assert read.unknown_fields == ("spec.newer",)
    assert read.body.status.topic_id == "id"
