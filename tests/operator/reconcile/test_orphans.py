"""Nothing in Kafka is deleted with resources that go with their cluster, or its namespace."""

from __future__ import annotations

import logging

import pytest

from barnabas_operator.kube import CLUSTERS, Document, Kind
from barnabas_operator.reconcile.reconciler import reconcile
from tests.operator.memory_kube import MemoryKube
from tests.operator.ports import context_on
from tests.operator.reconcile.test_definitions import KEY, Bench, Case, by_kind

NAMESPACE = "Namespace"


class DeletedMeanwhile(MemoryKube):
    """A user deletes a cluster and its resources right after a pass has read the cluster."""

    case: Case
    again = False

    def get(self, kind: Kind, namespace: str, name: str) -> Document | None:
        """See Kube."""
        found = super().get(kind, namespace, name)
        if kind is CLUSTERS and found is not None and found["metadata"]["uid"] != "another":
            self.remove("KafkaCluster", name)
            if self.again:
                self.put({**found, "metadata": {**found["metadata"], "uid": "another"}})
            for each in ("a", "b"):
                self.remove(self.case.kind, each)
        return found


@by_kind
@pytest.mark.parametrize("again", [False, True])
def test_resources_that_are_deleted_with_their_cluster_delete_nothing(
    case: Case, again: bool, caplog: pytest.LogCaptureFixture
) -> None:
    """Its claims may be kept, for a cluster of its name that is created again."""
    bench = Bench(case)
    before = bench.kube.find("KafkaCluster", "quickstart")
    kube = DeletedMeanwhile()
    kube.case, kube.again = case, again
    for name in ("objects", "_entries", "_uids", "_versions"):
        setattr(kube, name, getattr(bench.kube, name))
    with caplog.at_level(logging.WARNING):
        reconcile(KEY, context_on(kube, bench.brokers))
    assert bench.made() == {"a", "b"}
    assert "KafkaCluster quickstart was deleted" in caplog.text
    before["metadata"]["uid"] = "another"
    bench.kube.put(before)
    bench.kube.collect_garbage()
    bench.run(2)
    assert bench.made() == {"a", "b"}


@by_kind
def test_resources_of_a_cluster_that_is_being_deleted_delete_nothing(case: Case) -> None:
    """Its deletion waits for another controller's finalizer."""
    bench = Bench(case)
    bench.kube.find("KafkaCluster", "quickstart")["metadata"]["deletionTimestamp"] = bench.kube.now
    bench.remove("a", "b")
    bench.run()
    assert bench.made() == {"a", "b"}


def namespace(*, terminating: bool) -> Document:
    """The cluster's namespace."""
    note = {"deletionTimestamp": "2026-01-03T00:00:00Z"} if terminating else {}
    return {"kind": NAMESPACE, "metadata": {"name": KEY.namespace, "namespace": "", **note}}


@by_kind
def test_a_namespace_that_is_being_deleted_deletes_nothing_in_kafka(
    case: Case, caplog: pytest.LogCaptureFixture
) -> None:
    """Kinds go in any order, and the cluster may be the last one; nothing can be created either."""
    bench = Bench(case)
    bench.kube.put(namespace(terminating=True))
    bench.remove("a")
    bench.kube.remove("ConfigMap", "quickstart-zookeeper")
    bench.kube.fail("apply ConfigMap quickstart-zookeeper", 403, times=None)
    bench.kube.writes.clear()
    with caplog.at_level(logging.WARNING):
        bench.run(2)
    assert bench.made() == {"a", "b"}
    assert "namespace default is being deleted" in caplog.text
    assert not [each for each in bench.kube.writes if each.startswith(("delete", "evict"))]


@by_kind
def test_a_namespace_that_stays_is_no_obstacle(case: Case) -> None:
    """Unless the operator may not read it, as with the role of an earlier version."""
    bench = Bench(case)
    bench.kube.put(namespace(terminating=False))
    bench.kube.refuses[f"get {NAMESPACE} {KEY.namespace}"] = "forbidden"
    bench.remove("a")
    bench.run()
    assert bench.made() == {"a", "b"}
    bench.kube.refuses.clear()
    bench.run()
    assert bench.made() == {"b"}
