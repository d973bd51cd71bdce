"""Passes: what belongs together, and what does not stand in each other's way."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping

import pytest

from barnabas_operator.handlers.resource_index import ResourceIndex
from barnabas_operator.kube import Document, Kind, KubeError
from barnabas_operator.reconcile.context import Regarding
from barnabas_operator.reconcile.reconciler import (
    RESYNC_S,
    SOON_S,
    Key,
    find_keys,
    key_of,
    reconcile,
)
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
    assert find_keys(kube, [None]).keys == {KEY, Key("default", "other")}
    assert find_keys(kube, ["empty"]).keys == frozenset()


def test_a_namespace_that_cannot_be_listed_concerns_itself_alone() -> None:
    """It was deleted, and the operator's rights with it; nothing in it counts as gone."""

    class Forbidding(MemoryKube):
        def list(
            self, kind: Kind, namespace: str | None, labels: Mapping[str, str] | None = None
        ) -> list[Document]:
            """Refused in one namespace."""
            if namespace == "gone":
                raise KubeError(403, "forbidden")
            return super().list(kind, namespace, labels)

    found = find_keys(Forbidding(*examples.quickstart()), ["gone", "default"])
    assert found.keys == {KEY}
    assert list(found.errors) == ["gone"]
    assert not found.is_gone(Key("gone", "a"))
    assert found.is_gone(Key("default", "a"))


def test_the_quickstart_comes_up_pass_by_pass() -> None:
    """Soon again while something is under way, seldom when all is well."""
    kube = MemoryKube(*examples.quickstart()[:3])
    brokers = MemoryBrokers()
    assert reconcile(KEY, context_on(kube, brokers)).again_in == SOON_S
    kube.settle()
    assert reconcile(KEY, context_on(kube, brokers)).again_in == RESYNC_S
    assert sorted(brokers.views) == ["files", "packages"]
    assert kube.find("KafkaTopic", "files")["status"]["partitions"] == 3


def test_an_unreadable_resource_is_reported_and_the_others_reconcile() -> None:
    """As when the operator is older than the resource."""
    broken = examples.topic("broken", deletionPolicy="Archive")
    kube = MemoryKube(examples.cluster(), broken, examples.topic())
    brokers = MemoryBrokers()
    reconcile(KEY, context_on(kube, brokers))
    kube.settle()
    reconcile(KEY, context_on(kube, brokers))
    conditions = kube.find("KafkaTopic", "broken")["status"]["conditions"]
    assert [each["type"] for each in conditions] == ["Ready", "Stalled"]
    assert "must be Retain or Delete" in conditions[0]["message"]
    assert list(brokers.views) == ["packages"]
    kube.writes.clear()
    reconcile(KEY, context_on(kube, brokers))
    assert kube.writes == []


@pytest.mark.parametrize("spec", ["text", ["quickstart"], 7, None])
def test_a_resource_whose_spec_is_no_object_stops_nothing(spec: object) -> None:
    """What is stored is not checked again when a definition changes."""
    broken = {**examples.topic("broken"), "spec": spec}
    kube, brokers = MemoryKube(examples.cluster(), broken, examples.topic()), MemoryBrokers()
    index = ResourceIndex()
    found = find_keys(kube, ["default"], index)
    assert found.keys == {KEY}
    assert found.errors == {}
    context = context_on(kube, brokers)
    for _ in range(2):
        reconcile(KEY, context)
        kube.settle()
    reconcile(KEY, dataclasses.replace(context, index=index.named))
    assert list(brokers.views) == ["packages"]


def test_a_cluster_that_goes_is_left_alone() -> None:
    """Nothing is made for it any more: the garbage collector is at work."""
    document = examples.cluster()
    document["metadata"]["deletionTimestamp"] = "2026-01-03T00:00:00Z"
    kube = MemoryKube(document)
    assert reconcile(KEY, context_on(kube)).again_in == RESYNC_S
    assert kube.writes == []


def test_a_steady_pass_lists_no_resources_and_writes_nothing() -> None:
    """However many topics of other clusters are in the namespace."""
    kube = MemoryKube(*examples.quickstart()[:3], examples.topic("t", cluster="other"))
    brokers, index = MemoryBrokers(), ResourceIndex()
    context = dataclasses.replace(context_on(kube, brokers), index=index.named)
    assert reconcile(KEY, context).again_in == SOON_S
    kube.settle()
    reconcile(KEY, context)
    find_keys(kube, ["default"], index)
    kube.writes.clear()
    kube.requests.clear()
    assert reconcile(KEY, context).again_in == RESYNC_S
    assert kube.writes == []
    listed = [request for request in kube.requests if request.startswith("list Kafka")]
    assert listed == []


def test_a_late_index_deletes_no_topic() -> None:
    """A resource that the index lost is found by the list that comes before a deletion."""
    kube = MemoryKube(examples.cluster(), examples.topic(deletionPolicy="Delete"))
    brokers = MemoryBrokers()
    reconcile(KEY, context_on(kube, brokers))
    kube.settle()
    reconcile(KEY, context_on(kube, brokers))
    assert "packages" in brokers.views
    blind = dataclasses.replace(context_on(kube, brokers), index=lambda *_: [])
    reconcile(KEY, blind)
    assert "packages" in brokers.views
    kube.remove("KafkaTopic", "packages")
    reconcile(KEY, blind)
    assert "packages" not in brokers.views


@pytest.mark.parametrize("ledger", ["topics", "users"])
def test_a_ledger_that_is_refused_stops_no_other_kind(ledger: str) -> None:
    """A quota of ConfigMaps that is used up, say: the resources of the kind say so."""
    kube, brokers = MemoryKube(examples.secured()), MemoryBrokers()
    for _ in range(2):
        reconcile(KEY, context_on(kube, brokers))
        kube.settle()
    kube.put(examples.topic(deletionPolicy="Delete"))
    kube.put(examples.user())
    pipeline = kube.put(examples.pipeline())["metadata"]["name"]
    kube.refuses[f"apply ConfigMap quickstart-{ledger}-0"] = "exceeded quota"
    with pytest.raises(KubeError, match="exceeded quota"):
        reconcile(KEY, context_on(kube, brokers))
    refused = {"topics": ("KafkaTopic", "packages"), "users": ("KafkaUser", "billing")}
    for kind, name in refused.values():
        ready = kube.find(kind, name)["status"]["conditions"][0]
        expected = "Refused" if (kind, name) == refused[ledger] else "Ready"
        assert ready["reason"] == expected
    assert kube.find("KafkaPipeline", pipeline)["status"]["conditions"]
    kube.refuses.clear()
    reconcile(KEY, context_on(kube, brokers))
    assert brokers.views
    assert brokers.credentials


@pytest.mark.parametrize("kind", ["KafkaTopic", "KafkaUser", "KafkaPipeline"])
def test_a_definition_that_is_deleted_stops_no_other_kind(kind: str) -> None:
    """Nothing is deleted either: that its resources cannot be listed proves nothing."""
    kube, brokers = MemoryKube(examples.secured()), MemoryBrokers()
    kube.put(examples.topic(deletionPolicy="Delete"))
    kube.put(examples.user())
    for _ in range(3):
        reconcile(KEY, context_on(kube, brokers))
        kube.settle()
    for key in [key for key in kube.objects if key[0] == kind]:
        kube.remove(kind, key[2])
    brokers.steps.clear()
    kube.fail(f"list {kind}", 404, times=None)
    kube.remove("Service", "quickstart-bootstrap")
    for _ in range(2):
        reconcile(KEY, context_on(kube, brokers))
    assert brokers.steps == []
    assert brokers.views
    assert brokers.credentials
    assert ("Service", "default", "quickstart-bootstrap") in kube.objects


@dataclasses.dataclass
class Notes:
    """The events and counts of a pass."""

    events: list[str] = dataclasses.field(default_factory=list)
    counts: list[tuple[str, str]] = dataclasses.field(default_factory=list)

    def record(
        self, regarding: Regarding, *, action: str, reason: str, note: str, warning: bool = False
    ) -> None:
        """See Recorder."""
        self.events.append(f"{regarding.kind} {action} {reason} {warning}: {note}")

    def count(self, step: str, result: str) -> None:
        """See Context."""
        self.counts.append((step, result))


@pytest.mark.parametrize("status", [403, 422])
def test_a_cluster_status_that_is_refused_stops_no_topic_and_no_user(
    status: int, caplog: pytest.LogCaptureFixture
) -> None:
    """For good, as by a role or a webhook: a log line, an event and a count say so."""
    kube, brokers, notes = MemoryKube(examples.secured()), MemoryBrokers(), Notes()
    kube.put(examples.topic())
    kube.put(examples.user())
    kube.fail("status KafkaCluster", status, times=None)
    context = dataclasses.replace(context_on(kube, brokers), events=notes, count_step=notes.count)
    for _ in range(2):
        with pytest.raises(KubeError) as refused:
            reconcile(KEY, context)
        assert refused.value.status == status
        kube.settle()
    assert "packages" in brokers.views
    assert "billing" in brokers.credentials
    for kind, name in (("KafkaTopic", "packages"), ("KafkaUser", "billing")):
        assert kube.find(kind, name)["status"]["conditions"][0]["reason"] == "Ready"
    assert "KafkaCluster quickstart: status not written" in caplog.text
    assert ("WriteStatus", "refused") in notes.counts
    assert any(each.startswith("KafkaCluster WriteStatus Refused True: ") for each in notes.events)
