"""Passes: what belongs together, and what does not stand in each other's way."""

from __future__ import annotations

from barnabas_operator.reconcile.passes import RESYNC_S, SOON_S, Key, all_keys, key_of, reconcile
from tests.operator import examples
from tests.operator.memory_kube import MemoryKube
from tests.operator.ports import MemoryBrokers, context_on

KEY = Key("default", "quickstart")


def test_topics_and_pipelines_belong_to_the_cluster_they_name() -> None:
    """A cluster is looked at when anything that names it changes, even one that does not exist."""
    for document in examples.quickstart():
        assert key_of(document) == KEY
    elsewhere = examples.topic("t", cluster="other")
    assert key_of(elsewhere) == Key("default", "other")
    kube = MemoryKube(*examples.quickstart(), elsewhere)
    assert all_keys(kube, [None]) == {KEY, Key("default", "other")}
    assert all_keys(kube, ["empty"]) == frozenset()


def test_the_quickstart_comes_up_pass_by_pass() -> None:
    """Soon again while something is under way, seldom when all is well."""
    kube = MemoryKube(*examples.quickstart()[:3])
    brokers = MemoryBrokers()
    assert reconcile(KEY, context_on(kube, brokers)) == SOON_S
    kube.settle()
    assert reconcile(KEY, context_on(kube, brokers)) == RESYNC_S
    assert sorted(brokers.views) == ["files", "packages"]
    assert kube.find("KafkaTopic", "files")["status"]["partitions"] == 3


def test_a_resource_that_cannot_be_read_is_told_so_and_the_rest_goes_on() -> None:
    """As when the operator is older than the resource."""
    broken = examples.topic("broken", partitons=3)
    kube = MemoryKube(examples.cluster(), broken, examples.topic())
    brokers = MemoryBrokers()
    reconcile(KEY, context_on(kube, brokers))
    kube.settle()
    reconcile(KEY, context_on(kube, brokers))
    conditions = kube.find("KafkaTopic", "broken")["status"]["conditions"]
    assert [each["type"] for each in conditions] == ["Ready", "Stalled"]
    assert "did you mean partitions?" in conditions[0]["message"]
    assert list(brokers.views) == ["packages"]
    kube.writes.clear()
    reconcile(KEY, context_on(kube, brokers))
    assert kube.writes == []


def test_a_cluster_that_goes_is_left_alone() -> None:
    """Nothing is made for it any more: the garbage collector is at work."""
    document = examples.cluster()
    document["metadata"]["deletionTimestamp"] = "2026-01-03T00:00:00Z"
    kube = MemoryKube(document)
    assert reconcile(KEY, context_on(kube)) == RESYNC_S
    assert kube.writes == []
