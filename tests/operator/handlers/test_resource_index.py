"""The index of topics and pipelines: what names a cluster, without a list."""

from __future__ import annotations

import tracemalloc
from typing import Any

import pytest

from barnabas_operator.api.topics import ADOPT
from barnabas_operator.handlers.resource_index import KINDS, ResourceIndex
from barnabas_operator.handlers.watches import GenerationFilter
from barnabas_operator.kube import CLAIMS, CLUSTERS, PODS, SERVICES, TOPICS, USERS, Document, Kind
from barnabas_operator.names import CLUSTER, INSTANCE
from tests.operator import examples


def _topic(name: str, **spec: Any) -> Document:
    document: Document = examples.topic(name, **spec)
    return {**document, "metadata": {"namespace": "default", **document["metadata"]}}


def _names(index: ResourceIndex, cluster: str = "quickstart") -> list[str] | None:
    found = index.named(TOPICS, "default", cluster)
    return None if found is None else [each["metadata"]["name"] for each in found]


def test_there_is_no_answer_before_everything_was_listed() -> None:
    """An event says nothing about the others: a pass would take them for deleted."""
    index = ResourceIndex()
    index.observe(TOPICS, {"type": None, "object": _topic("a")})
    assert _names(index) is None
    index.replace(TOPICS, "elsewhere", [], index.begin())
    assert _names(index) is None
    index.replace(TOPICS, "default", [_topic("a"), _topic("b")], index.begin())
    assert _names(index) == ["a", "b"]


def test_a_list_of_all_namespaces_answers_for_each() -> None:
    """As where the operator watches all of them."""
    index = ResourceIndex()
    index.replace(TOPICS, None, [_topic("a")], index.begin())
    assert _names(index) == ["a"]
    assert _names(index, "other") == []


def test_events_change_it() -> None:
    """Also the cluster that a topic names; one that names none may mean any."""
    index = ResourceIndex()
    index.replace(TOPICS, "default", [_topic("a"), _topic("b")], index.begin())
    index.observe(TOPICS, {"type": "ADDED", "object": _topic("c")})
    index.observe(TOPICS, {"type": "DELETED", "object": _topic("a")})
    index.observe(TOPICS, {"type": "MODIFIED", "object": _topic("b", cluster="other")})
    assert (_names(index), _names(index, "other")) == (["c"], ["b"])
    strange = _topic("d")
    strange["spec"]["cluster"] = ["of", "a", "newer", "version"]
    index.observe(TOPICS, {"type": "ADDED", "object": strange})
    assert (_names(index), _names(index, "other")) == (["c", "d"], ["b", "d"])
    index.observe(CLUSTERS, {"type": "ADDED", "object": examples.cluster()})


def test_a_list_mends_what_a_watch_lost_and_not_what_came_since() -> None:
    """A deletion while a watch was away has no event; an event during a list is newer than it."""
    index = ResourceIndex()
    index.replace(TOPICS, "default", [_topic("lost"), _topic("kept")], index.begin())
    begun = index.begin()
    index.observe(TOPICS, {"type": "ADDED", "object": _topic("new")})
    index.observe(TOPICS, {"type": "DELETED", "object": _topic("kept")})
    index.replace(TOPICS, "default", [_topic("kept")], begun)
    assert _names(index) == ["new"]
    index.replace(TOPICS, "default", [_topic("new")], index.begin())
    assert _names(index) == ["new"]
    index.replace(TOPICS, "default", [], index.begin())
    assert _names(index) == []


@pytest.mark.parametrize("again", ["list", "event"])
def test_a_resource_that_shows_more_of_its_spec_has_changed(again: str) -> None:
    """A watch older than its definition leaves fields out; resourceVersion stays the same."""
    index = ResourceIndex()
    for kind in KINDS:
        index.replace(kind, "default", [], index.begin())
    less, more = _topic("a"), _topic("a", tier="cold")
    for document in (less, more):
        document["metadata"] |= {"resourceVersion": "7", "uid": "u"}
    index.observe(TOPICS, {"type": "ADDED", "object": less})
    before = index.revision("default", "quickstart")
    if again == "list":
        index.replace(TOPICS, "default", [more], index.begin())
    else:
        index.observe(TOPICS, {"type": None, "object": more})
    assert index.revision("default", "quickstart") != before
    (found,) = index.named(TOPICS, "default", "quickstart") or []
    assert found["spec"]["tier"] == "cold"


def test_of_large_resources_only_what_is_read_is_kept() -> None:
    """Managed fields and annotations of others are most of them; by lists and by watches."""
    index, generations = ResourceIndex(), GenerationFilter()
    index.replace(TOPICS, "default", [], index.begin())
    tracemalloc.start()
    try:
        before, _ = tracemalloc.get_traced_memory()
        for number in range(50):
            document = examples.large(_topic(f"t{number}"))
            document["metadata"] |= {"uid": f"u{number}", "resourceVersion": "1"}
            document["metadata"]["annotations"][ADOPT] = "topic"
            index.observe(TOPICS, {"type": "ADDED", "object": document})
            assert generations.is_new({"type": "ADDED", "object": document})
            del document
        held = tracemalloc.get_traced_memory()[0] - before
    finally:
        tracemalloc.stop()
    found = index.named(TOPICS, "default", "quickstart") or []
    assert [each["metadata"]["annotations"] for each in found] == [{ADOPT: "topic"}] * 50
    # As JSON they are 50 MiB.
    assert held < 50 * 10_000


def test_topics_that_went_with_another_word_than_delete_are_remembered() -> None:
    """Within bounds; a policy of a newer version is not taken for Delete, nor none at all."""
    index = ResourceIndex(deletions=3)
    gone = [
        ("a", {"deletionPolicy": "Retain"}),
        ("b", {"deletionPolicy": "Archive"}),
        ("c", {}),
        ("d", {"deletionPolicy": "Delete"}),
    ]
    for uid, spec in gone:
        document = _topic(uid, **spec)
        document["metadata"]["uid"] = uid
        index.observe(TOPICS, {"type": "DELETED", "object": document})
    assert [index.retained(uid) for uid in ("a", "b", "c", "d", "e")] == [True] * 3 + [False] * 2
    document = _topic("e")
    document["metadata"]["uid"] = "e"
    index.observe(TOPICS, {"type": "DELETED", "object": document})
    assert [index.retained(uid) for uid in ("a", "b", "e")] == [False, True, True]


def test_the_last_policy_of_a_deleted_user_is_remembered() -> None:
    """As that of a topic; a user without a policy is not deleted."""
    index = ResourceIndex()
    for uid, spec in (("a", {"deletionPolicy": "Retain"}), ("b", {"deletionPolicy": "Delete"})):
        document = examples.user(uid, **spec)
        document["metadata"]["uid"] = uid
        index.observe(USERS, {"type": "DELETED", "object": document})
    assert [index.retained(uid) for uid in "ab"] == [True, False]


def _list_all(index: ResourceIndex, *documents: tuple[Kind, Document]) -> None:
    for kind in KINDS:
        found = [document for each, document in documents if each is kind]
        index.replace(kind, None, found, index.begin())


def _service(version: str, labels: dict[str, str]) -> Document:
    meta = {"namespace": "default", "name": "s", "uid": "u", "resourceVersion": version}
    return {"metadata": {**meta, "labels": labels}}


OURS = {INSTANCE: "quickstart", CLUSTER: "quickstart"}


def test_a_revision_is_another_one_after_each_change() -> None:
    """Of what a pass reads, and of nothing else; a list that finds nothing new is no change."""
    index = ResourceIndex()
    assert index.revision("default", "quickstart") is None
    _list_all(index, (SERVICES, _service("1", OURS)))
    seen = [index.revision("default", "quickstart")]
    other = index.revision("default", "other")
    _list_all(index, (SERVICES, _service("1", OURS)))
    index.observe(SERVICES, {"type": "MODIFIED", "object": _service("1", OURS)})
    assert index.revision("default", "quickstart") == seen[0]
    for event in ("MODIFIED", "DELETED", "ADDED"):
        index.observe(SERVICES, {"type": event, "object": _service("2", OURS)})
        seen.append(index.revision("default", "quickstart"))
    _list_all(index)
    seen.append(index.revision("default", "quickstart"))
    _list_all(index, (SERVICES, _service("2", OURS)))
    seen.append(index.revision("default", "quickstart"))
    # One object after another is there, and none of the states is taken for another; without any
    # object there is nothing to tell apart.
    assert [seen.index(each) for each in seen] == [0, 1, 2, 3, 2, 5]
    assert index.revision("default", "other") == other


def test_objects_are_found_by_either_label() -> None:
    """Claims have no instance label, objects of earlier versions have none of ours."""
    index = ResourceIndex()
    _list_all(index)
    for kind, label in ((CLAIMS, CLUSTER), (PODS, INSTANCE)):
        before = index.revision("default", "quickstart")
        index.observe(kind, {"type": "ADDED", "object": _service("1", {label: "quickstart"})})
        assert index.revision("default", "quickstart") != before


def test_a_resource_that_may_mean_any_cluster_changes_all_of_its_namespace() -> None:
    """It stands in the way of deletions everywhere."""
    index = ResourceIndex()
    _list_all(index)
    before = index.revision("default", "quickstart"), index.revision("elsewhere", "quickstart")
    index.observe(TOPICS, {"type": "ADDED", "object": _topic("d", cluster=["newer"])})
    assert index.revision("default", "quickstart") != before[0]
    assert index.revision("elsewhere", "quickstart") == before[1]


def test_there_is_no_revision_while_a_kind_may_be_out_of_date() -> None:
    """A list failed, or a watch ended: changes may be missed."""
    index = ResourceIndex()
    _list_all(index)
    index.invalidate(PODS, None)
    assert index.revision("default", "quickstart") is None
    index.replace(PODS, None, [], index.begin())
    assert index.revision("default", "quickstart") is not None


def test_a_watch_that_lists_again_may_have_missed_deletions() -> None:
    """As after 410 Gone: what the list lacks has no event, so no cluster counts as unchanged."""
    for namespace in ("default", None):
        index = ResourceIndex()
        for kind in KINDS:
            found = [_service("1", OURS)] if kind is SERVICES else []
            index.replace(kind, namespace, found, index.begin())
        seen = index.revision("default", "quickstart")
        assert seen is not None
        again = {**_service("1", OURS), "kind": "Service"}
        index.observe(SERVICES, {"type": None, "object": again})
        assert index.revision("default", "quickstart") is None
        index.replace(SERVICES, namespace, [], index.begin())
        assert index.revision("default", "quickstart") not in (None, seen)


def test_nothing_is_kept_of_what_is_gone() -> None:
    """Names of clusters come and go, and labels are what anybody writes."""
    index = ResourceIndex()
    _list_all(index)
    for number in range(100):
        document = _service("1", {INSTANCE: f"c{number}"})
        index.observe(SERVICES, {"type": "ADDED", "object": document})
        index.observe(SERVICES, {"type": "DELETED", "object": document})
    _list_all(index)
    kept = ("_objects", "_owners", "_by_cluster", "_last_event")
    assert {name: len(vars(index)[name]) for name in kept} == dict.fromkeys(kept, 0)
