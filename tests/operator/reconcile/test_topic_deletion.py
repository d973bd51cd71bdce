"""Deletion of topics: what protects a topic, and what has to be certain before one is deleted."""

from __future__ import annotations

import json
import logging
from dataclasses import replace
from typing import Any

import pytest

from barnabas_operator.brokers import BrokersError
from barnabas_operator.handlers.resource_index import ResourceIndex
from barnabas_operator.kube import TOPICS, Document, Kind, KubeError
from barnabas_operator.plan.topics import TopicView
from barnabas_operator.reconcile.reconciler import Key, find_keys, reconcile
from tests.operator import examples
from tests.operator.memory_kube import MemoryKube
from tests.operator.ports import MemoryBrokers, context_on, ledger

KEY = Key("default", "quickstart")
LEDGER = "quickstart-topics-0"


def deleted_with_its_resource(name: str = "packages", **spec: Any) -> Document:
    """A KafkaTopic whose topic is deleted with it."""
    return examples.topic(name, deletionPolicy="Delete", **spec)


def up(*documents: Document, brokers: MemoryBrokers) -> MemoryKube:
    """An API server in which the quickstart's cluster is ready and these topics are created."""
    kube = MemoryKube(examples.cluster(), *documents)
    reconcile(KEY, context_on(kube, brokers))
    kube.settle()
    reconcile(KEY, context_on(kube, brokers))
    brokers.steps.clear()
    return kube


def conditions(kube: MemoryKube, name: str) -> dict[str, tuple[str, str]]:
    """Status and reason of each condition of a KafkaTopic."""
    found = kube.find("KafkaTopic", name)["status"]["conditions"]
    return {each["type"]: (each["status"], each["reason"]) for each in found}


def message(kube: MemoryKube, name: str, kind: str = "Ready") -> str:
    """The message of one condition of a KafkaTopic."""
    found = kube.find("KafkaTopic", name)["status"]["conditions"]
    (text,) = [each["message"] for each in found if each["type"] == kind]
    return str(text)


def test_a_field_of_a_newer_definition_is_ignored_and_named() -> None:
    """An operator that was rolled back below its CRDs goes on with the fields that it knows."""
    brokers = MemoryBrokers()
    kube = up(deleted_with_its_resource(), brokers=brokers)
    kube.put(deleted_with_its_resource(partitions=5, tieredStorage={"enabled": True}))
    reconcile(KEY, context_on(kube, brokers))
    assert brokers.steps == ["grow packages"]
    assert conditions(kube, "packages") == {
        "Ready": ("True", "Ready"),
        "Warning": ("True", "Warning"),
    }
    assert "spec.tieredStorage" in message(kube, "packages", "Warning")
    kube.writes.clear()
    reconcile(KEY, context_on(kube, brokers))
    assert kube.writes == []


@pytest.mark.parametrize(
    "spec",
    [
        {"deletionPolicy": "Archive"},
        {"partitions": {"from": 3, "to": 9}},
        {"cluster": {"name": "quickstart", "namespace": "default"}},
        {"topicName": ["packages"]},
    ],
    ids=lambda spec: next(iter(spec)),
)
def test_a_resource_that_cannot_be_parsed_protects_its_topic(spec: dict[str, Any]) -> None:
    """The value comes from a newer version; the topic and its records are none of its business."""
    brokers = MemoryBrokers()
    kube = up(deleted_with_its_resource(), brokers=brokers)
    kube.put({**examples.topic(), "spec": {**deleted_with_its_resource()["spec"], **spec}})
    for _ in range(2):
        reconcile(KEY, context_on(kube, brokers))
    assert brokers.steps == []
    assert "packages" in ledger(kube)


def test_nothing_is_deleted_while_a_resource_cannot_be_parsed(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """An operator that does not understand one resource may be older than all of them."""
    brokers = MemoryBrokers()
    kube = up(deleted_with_its_resource(), examples.topic("other"), brokers=brokers)
    kube.put(examples.topic("other", deletionPolicy="Archive"))
    kube.remove("KafkaTopic", "packages")
    with caplog.at_level(logging.WARNING):
        reconcile(KEY, context_on(kube, brokers))
    assert brokers.steps == []
    assert "while resources cannot be parsed: other" in caplog.text
    kube.put(examples.topic("other"))
    reconcile(KEY, context_on(kube, brokers))
    assert brokers.steps == ["delete packages"]


def test_a_resource_that_is_being_deleted_still_protects_its_topic() -> None:
    """Another controller's finalizer holds it; the topic goes once the resource has gone."""
    brokers = MemoryBrokers()
    kube = up(deleted_with_its_resource(), brokers=brokers)
    meta = kube.find("KafkaTopic", "packages")["metadata"]
    meta["deletionTimestamp"] = "2026-01-03T00:00:00Z"
    reconcile(KEY, context_on(kube, brokers))
    assert brokers.steps == []
    kube.remove("KafkaTopic", "packages")
    reconcile(KEY, context_on(kube, brokers))
    assert brokers.steps == ["delete packages"]


@pytest.mark.parametrize(
    "spec", [{"cluster": "another"}, {"topicName": "renamed"}], ids=["cluster", "topicName"]
)
def test_a_resource_that_names_something_else_now_protects_what_it_named(
    spec: dict[str, str],
) -> None:
    """The API server refuses such a change, unless the definitions are of another version."""
    brokers = MemoryBrokers()
    kube = up(deleted_with_its_resource(), brokers=brokers)
    kube.put(deleted_with_its_resource(**spec))
    reconcile(KEY, context_on(kube, brokers))
    assert "packages" in brokers.views


def test_a_resource_created_again_protects_its_topic() -> None:
    """Deleted and created between two passes: another uid, the same name, the same records."""
    brokers = MemoryBrokers()
    kube = up(deleted_with_its_resource(), brokers=brokers)
    kube.remove("KafkaTopic", "packages")
    again = deleted_with_its_resource()
    again["metadata"]["uid"] = "another-uid"
    kube.put(again)
    reconcile(KEY, context_on(kube, brokers))
    assert brokers.steps == []
    assert ledger(kube)["packages"]["uid"] == "another-uid"


def test_the_last_of_two_resources_for_one_topic_decides() -> None:
    """The older said Delete and is gone; the younger names the topic, and says Retain."""
    younger = examples.topic("younger", topicName="packages")
    younger["metadata"]["creationTimestamp"] = "2026-02-01T00:00:00Z"
    brokers = MemoryBrokers()
    kube = up(deleted_with_its_resource(), younger, brokers=brokers)
    kube.remove("KafkaTopic", "packages")
    reconcile(KEY, context_on(kube, brokers))
    kube.remove("KafkaTopic", "younger")
    reconcile(KEY, context_on(kube, brokers))
    assert "packages" in brokers.views


def test_topics_outlive_a_cluster_that_is_created_again() -> None:
    """The ledger goes with the cluster's resource; the new one begins with what resources say."""
    brokers = MemoryBrokers()
    kube = up(deleted_with_its_resource(), brokers=brokers)
    kube.remove("KafkaCluster", "quickstart")
    kube.remove("ConfigMap", LEDGER)
    reconcile(KEY, context_on(kube, brokers))
    again = examples.cluster()
    again["metadata"]["uid"] = "another-uid"
    kube.put(again)
    for _ in range(2):
        reconcile(KEY, context_on(kube, brokers))
        kube.settle()
    assert brokers.steps == []
    assert "packages" in brokers.views


def test_a_list_that_lacks_a_resource_deletes_nothing() -> None:
    """A cache that is behind: the resource is asked for directly before its topic is deleted."""

    class Behind(MemoryKube):
        lists = 0

        def list(self, kind: Kind, *args: Any, **options: Any) -> list[Document]:
            found = super().list(kind, *args, **options)
            return [] if kind is TOPICS else found

    brokers = MemoryBrokers()
    kube = Behind(*up(deleted_with_its_resource(), brokers=brokers).objects.values())
    reconcile(KEY, context_on(kube, brokers))
    assert brokers.steps == []


@pytest.mark.parametrize("status", [0, 403, 429, 500])
def test_an_api_server_that_does_not_say_deletes_nothing(status: int) -> None:
    """Only an answer that there is no such resource makes its topic an orphan."""

    class Failing(MemoryKube):
        def get(self, kind: Kind, namespace: str, name: str) -> Document | None:
            if kind is TOPICS:
                raise KubeError(status, "no answer")
            return super().get(kind, namespace, name)

    brokers = MemoryBrokers()
    kube = Failing(*up(deleted_with_its_resource(), brokers=brokers).objects.values())
    kube.remove("KafkaTopic", "packages")
    with pytest.raises(KubeError):
        reconcile(KEY, context_on(kube, brokers))
    assert brokers.steps == []


def test_brokers_that_fail_in_a_pass_delete_nothing_in_it() -> None:
    """What the cluster said before it failed may be as wrong as what it did not say."""

    class Failing(MemoryBrokers):
        def create_topics(self, topics: object) -> dict[str, BrokersError]:
            raise BrokersError("_TIMED_OUT", "no answer", reachable=False)

    brokers = MemoryBrokers()
    kube = up(deleted_with_its_resource(), brokers=brokers)
    kube.remove("KafkaTopic", "packages")
    kube.put(examples.topic("new"))
    failing = Failing(views=brokers.views)
    reconcile(KEY, context_on(kube, failing))
    assert failing.steps == []


def test_a_topic_list_that_lacks_a_topic_does_not_forget_its_id() -> None:
    """A broker that is behind may answer so; the topic goes with its resource all the same."""
    brokers = MemoryBrokers()
    kube = up(deleted_with_its_resource(), brokers=brokers)
    views = dict(brokers.views)
    brokers.views.clear()
    exists = BrokersError("TOPIC_ALREADY_EXISTS", "Topic already exists.", reachable=True)
    brokers.refuses["packages"] = exists
    reconcile(KEY, context_on(kube, brokers))
    brokers.views.update(views)
    brokers.refuses.clear()
    kube.remove("KafkaTopic", "packages")
    reconcile(KEY, context_on(kube, brokers))
    assert brokers.steps[-1:] == ["delete packages"]


@pytest.mark.parametrize("away", [True, False])
def test_retain_is_the_last_word_also_while_brokers_do_not_answer(away: bool) -> None:
    """The resource may be deleted before a broker answers again."""
    brokers = MemoryBrokers()
    kube = up(deleted_with_its_resource(), brokers=brokers)
    brokers.error = BrokersError("REQUEST_TIMED_OUT", "no answer", reachable=False)
    if away:
        for name in [key for key in kube.objects if key[0] == "Pod"]:
            del kube.objects[name]
    kube.put(examples.topic(deletionPolicy="Retain"))
    reconcile(KEY, context_on(kube, brokers))
    kube.remove("KafkaTopic", "packages")
    brokers.error = None
    kube.settle()
    for _ in range(2):
        reconcile(KEY, context_on(kube, brokers))
    assert brokers.steps == []


def test_retain_is_the_last_word_of_a_resource_that_is_being_deleted() -> None:
    """Another controller's finalizer holds it; nothing but its own entry is taken out."""
    brokers = MemoryBrokers()
    kube = up(deleted_with_its_resource(), deleted_with_its_resource("other"), brokers=brokers)
    kube.put(examples.topic(deletionPolicy="Retain"))
    kube.find("KafkaTopic", "packages")["metadata"]["deletionTimestamp"] = "2026-01-03T00:00:00Z"
    reconcile(KEY, context_on(kube, brokers))
    assert list(ledger(kube)) == ["other"]
    kube.remove("KafkaTopic", "packages")
    reconcile(KEY, context_on(kube, brokers))
    assert brokers.steps == []


def test_a_leaving_resource_takes_nothing_from_its_successor() -> None:
    """Two resources name one topic: the older leaves with Retain, the younger says Delete."""
    younger = deleted_with_its_resource("younger", topicName="packages")
    younger["metadata"]["creationTimestamp"] = "2026-02-01T00:00:00Z"
    brokers = MemoryBrokers()
    kube = up(examples.topic(), younger, brokers=brokers)
    kube.find("KafkaTopic", "packages")["metadata"]["deletionTimestamp"] = "2026-01-03T00:00:00Z"
    for _ in range(2):
        reconcile(KEY, context_on(kube, brokers))
    assert ledger(kube)["packages"]["resource"] == "younger"
    kube.writes.clear()
    reconcile(KEY, context_on(kube, brokers))
    assert kube.writes == []


def test_retain_is_the_last_word_also_of_a_resource_that_goes_at_once() -> None:
    """Changed and deleted between two passes: only the event of its deletion has the change."""
    brokers, index = MemoryBrokers(), ResourceIndex()
    kube = up(deleted_with_its_resource(), deleted_with_its_resource("other"), brokers=brokers)
    find_keys(kube, ["default"], index)
    for name, policy in (("packages", "Retain"), ("other", "Delete")):
        last = examples.topic(name, deletionPolicy=policy)
        last["metadata"] = {**kube.find("KafkaTopic", name)["metadata"], "namespace": "default"}
        kube.remove("KafkaTopic", name)
        index.observe(TOPICS, {"type": "DELETED", "object": last})
    context = replace(context_on(kube, brokers), index=index.named, retained=index.retained)
    for _ in range(2):
        reconcile(KEY, context)
    assert brokers.steps == ["delete other"]
    assert ledger(kube) == {}


@pytest.mark.parametrize(
    "text",
    [
        "no JSON",
        "[]",
        '{"topic": "packages"}',
        '{"topic": "packages", "resource": ""}',
        '{"topic": "packages", "resource": "packages", "uid": 5}',
        '{"topic": ["packages"], "resource": "packages"}',
    ],
)
def test_a_ledger_entry_that_cannot_be_parsed_is_kept_and_ends_no_pass(
    text: str, caplog: pytest.LogCaptureFixture
) -> None:
    """It is warned about; its topic is not deleted, and all other topics are managed."""
    brokers = MemoryBrokers()
    kube = up(deleted_with_its_resource(), brokers=brokers)
    kube.find("ConfigMap", LEDGER)["data"]["topics"] = f"{text}\n"
    kube.remove("KafkaTopic", "packages")
    kube.put(deleted_with_its_resource("new"))
    with caplog.at_level(logging.WARNING):
        for _ in range(2):
            reconcile(KEY, context_on(kube, brokers))
    assert brokers.steps == ["create new"]
    lines = kube.find("ConfigMap", LEDGER)["data"]["topics"].splitlines()
    assert lines[0] == text
    assert json.loads(lines[1])["topic"] == "new"
    assert "ledger entry cannot be parsed" in caplog.text


def test_a_topic_that_others_created_under_the_name_is_not_deleted(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """The topic that the resource had is gone; the one of its name has another id."""
    brokers = MemoryBrokers()
    kube = up(deleted_with_its_resource(), brokers=brokers)
    brokers.views["packages"] = replace(brokers.views["packages"], topic_id="another")
    kube.remove("KafkaTopic", "packages")
    with caplog.at_level(logging.WARNING):
        reconcile(KEY, context_on(kube, brokers))
    assert brokers.steps == []
    assert "another client created it" in caplog.text
    assert ledger(kube) == {}


def test_a_topic_that_was_there_before_is_neither_changed_nor_deleted() -> None:
    """It differs, so it was never adopted; the resource can be deleted without harm."""
    theirs = TopicView(
        name="packages", topic_id="theirs", partitions=3, replicas=1, config={"retention.ms": "-1"}
    )
    brokers = MemoryBrokers(views={"packages": theirs})
    kube = up(deleted_with_its_resource(), brokers=brokers)
    assert conditions(kube, "packages")["Ready"] == ("False", "AlreadyExists")
    kube.remove("KafkaTopic", "packages")
    reconcile(KEY, context_on(kube, brokers))
    assert brokers.views == {"packages": theirs}


def test_a_topic_that_is_kept_by_annotation_is_not_deleted_with_its_resource() -> None:
    """It is still the other side's; without the annotation it is not changed either."""
    theirs = TopicView(
        name="packages", topic_id="theirs", partitions=3, replicas=1, config={"retention.ms": "-1"}
    )
    brokers = MemoryBrokers(views={"packages": theirs})
    document = deleted_with_its_resource()
    document["metadata"]["annotations"] = {"barnabas.io/adopt": "topic"}
    kube = up(document, brokers=brokers)
    assert conditions(kube, "packages")["Ready"] == ("True", "Kept")
    del kube.find("KafkaTopic", "packages")["metadata"]["annotations"]
    reconcile(KEY, context_on(kube, brokers))
    assert conditions(kube, "packages")["Ready"] == ("False", "AlreadyExists")
    kube.remove("KafkaTopic", "packages")
    reconcile(KEY, context_on(kube, brokers))
    assert brokers.views == {"packages": theirs}


def test_an_adopted_topic_goes_with_its_resource() -> None:
    """It equals the resource, which says Delete: from then on it is managed."""
    brokers = MemoryBrokers()
    brokers.views["packages"] = TopicView(
        name="packages", topic_id="theirs", partitions=3, replicas=1, config={}
    )
    kube = up(deleted_with_its_resource(), brokers=brokers)
    assert ledger(kube)["packages"]["topicId"] == "theirs"
    kube.remove("KafkaTopic", "packages")
    reconcile(KEY, context_on(kube, brokers))
    assert brokers.steps == ["delete packages"]


def test_the_ledger_of_an_earlier_version_is_migrated() -> None:
    """With ids from the topics; what it had of retained topics is left out."""
    brokers = MemoryBrokers()
    kube = up(deleted_with_its_resource(), brokers=brokers)
    ours = kube.find("ConfigMap", LEDGER)
    kube.remove("ConfigMap", LEDGER)
    head = {name: ours["metadata"][name] for name in ("namespace", "labels", "ownerReferences")}
    former = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {**head, "name": "quickstart-topics"},
        "data": {
            "packages": '{"resource": "packages", "deletionPolicy": "Delete"}',
            "retained": '{"resource": "retained", "deletionPolicy": "Retain"}',
            "newer": "no JSON",
        },
    }
    kube.apply(former)
    for _ in range(2):
        reconcile(KEY, context_on(kube, brokers))
    assert not kube.find("ConfigMap", "quickstart-topics").get("data")
    entries = ledger(kube)
    assert sorted(entries) == ["newer", "packages"]
    assert entries["packages"]["topicId"] == brokers.views["packages"].topic_id
    assert entries["newer"] == {"topic": "newer", "unparsed": "no JSON"}
    kube.writes.clear()
    reconcile(KEY, context_on(kube, brokers))
    assert kube.writes == []
