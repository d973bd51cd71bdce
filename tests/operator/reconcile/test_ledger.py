"""The ledger in ConfigMaps: read as it was written, and written only where it changed."""

from __future__ import annotations

import pytest

from barnabas_operator.api.reading import read_cluster
from barnabas_operator.kube import KubeError
from barnabas_operator.plan.ledger import LedgerEntry
from barnabas_operator.reconcile.ledger import LedgerStore
from tests.operator import examples
from tests.operator.memory_kube import MemoryKube

CLUSTER = read_cluster(examples.cluster())
FIRST = {"a": LedgerEntry(resource="a", uid="u", topic_id="id")}


def test_a_written_ledger_is_read_back() -> None:
    """By another run of the operator, too; the same again is no write."""
    kube = MemoryKube()
    store = LedgerStore.read(CLUSTER, kube)
    store.write(FIRST)
    again = LedgerStore.read(CLUSTER, kube)
    assert again.entries == FIRST
    again.write(dict(FIRST))
    assert kube.writes == ["apply ConfigMap quickstart-topics-0"]
    owner = kube.find("ConfigMap", "quickstart-topics-0")["metadata"]["ownerReferences"][0]
    assert owner["uid"] == CLUSTER.meta.uid


def test_a_cluster_without_such_topics_has_no_ledger() -> None:
    """Nothing is written for it."""
    kube = MemoryKube()
    LedgerStore.read(CLUSTER, kube).write({})
    assert kube.objects == {}


def test_a_ledger_of_thousands_of_topics_is_several_config_maps() -> None:
    """Read as one; a change writes the one that it concerns."""
    kube = MemoryKube()
    entries = {f"topic-{number:05}": LedgerEntry(resource="r" * 100) for number in range(5000)}
    LedgerStore.read(CLUSTER, kube).write(entries)
    assert len(kube.objects) > 1
    store = LedgerStore.read(CLUSTER, kube)
    assert store.entries == entries
    kube.writes.clear()
    del entries["topic-00000"]
    store.write(entries)
    assert kube.writes == ["apply ConfigMap quickstart-topics-0"]


def test_a_migration_that_was_cut_off_is_finished() -> None:
    """The former ledger was moved and not emptied; what has been stored since is newer."""
    kube = MemoryKube()
    LedgerStore.read(CLUSTER, kube).write(FIRST)
    meta = kube.find("ConfigMap", "quickstart-topics-0")["metadata"]
    head = {name: meta[name] for name in ("namespace", "labels", "ownerReferences")}
    former = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {**head, "name": "quickstart-topics"},
        "data": dict.fromkeys("ab", '{"resource": "old", "deletionPolicy": "Delete"}'),
    }
    kube.apply(former)
    kube.fail("apply ConfigMap quickstart-topics", 500, times=2)
    for _ in range(2):
        with pytest.raises(KubeError):
            LedgerStore.read(CLUSTER, kube)
    expected = {**FIRST, "b": LedgerEntry(resource="old")}
    for _ in range(2):
        assert LedgerStore.read(CLUSTER, kube).entries == expected
    assert not kube.find("ConfigMap", "quickstart-topics").get("data")


def test_the_ledger_of_an_earlier_cluster_of_the_name_is_not_read() -> None:
    """It is about to be collected; the resources that exist are entered again."""
    kube = MemoryKube()
    LedgerStore.read(CLUSTER, kube).write(FIRST)
    again = examples.cluster()
    again["metadata"]["uid"] = "another"
    assert LedgerStore.read(read_cluster(again), kube).entries == {}


def test_a_shard_is_not_written_over_what_another_operator_wrote() -> None:
    """The version that was read goes with the write, and each write brings a new one."""
    kube = MemoryKube()
    LedgerStore.read(CLUSTER, kube).write(FIRST)
    one, other = LedgerStore.read(CLUSTER, kube), LedgerStore.read(CLUSTER, kube)
    other.write({**FIRST, "b": LedgerEntry(resource="b")})
    other.write({**FIRST, "c": LedgerEntry(resource="c")})
    with pytest.raises(KubeError):
        one.write({})
    assert "c" in LedgerStore.read(CLUSTER, kube).entries
