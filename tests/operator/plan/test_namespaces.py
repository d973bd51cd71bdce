"""Resources of several namespaces that name the same: which has it, and how the ledger says so."""

from __future__ import annotations

from typing import Any

import pytest

from barnabas_operator.api.reading import read_topic
from barnabas_operator.api.storage import DeletionPolicy
from barnabas_operator.plan.ledger import FORMAT, LedgerEntry, Present
from barnabas_operator.plan.namespaces import (
    cluster_namespace_of,
    label_of,
    objection_to,
    origin_of,
    parse_foreign,
)
from barnabas_operator.plan.orphans import orphans
from barnabas_operator.plan.shards import change, parse
from barnabas_operator.plan.topics import Topic, owners
from tests.operator import examples

FOREIGN = LedgerEntry(
    resource="t", uid="u", topic_id="id", namespace="team", policy=DeletionPolicy.RETAIN
)


def _topic(namespace: str, created: str, name: str = "t", adopt: str = "") -> Topic:
    document = examples.topic(name, topicName="t", clusterNamespace="default")
    document["metadata"].update(namespace=namespace, creationTimestamp=created)
    document["metadata"]["annotations"] = {"barnabas.io/adopt": adopt} if adopt else {}
    return read_topic(document)


def test_a_resource_is_of_another_namespace_if_its_cluster_is() -> None:
    """Messages name it with its namespace then."""
    own, foreign = _topic("default", ""), _topic("team", "")
    assert (origin_of(own), label_of(own)) == ("", "t")
    assert (origin_of(foreign), label_of(foreign)) == ("team", "team/t")


@pytest.mark.parametrize(
    ("spec", "namespace"),
    [({}, "own"), ({"clusterNamespace": "other"}, "other"), ({"clusterNamespace": 5}, None)],
)
def test_the_namespace_of_the_cluster_is_read_off_any_document(
    spec: dict[str, Any], namespace: str | None
) -> None:
    """Of one that cannot be parsed, too."""
    document = {"metadata": {"name": "t", "namespace": "own"}, "spec": spec}
    assert cluster_namespace_of(document) == namespace


def test_an_unclaimed_name_belongs_to_the_clusters_namespace() -> None:
    """Among others the older one has it; whoever has it keeps it."""
    own, old, older = _topic("default", "2026"), _topic("b", "2025"), _topic("a", "2024")
    assert owners([old, older, own]) == {"t": own}
    assert owners([old, older]) == {"t": older}
    held = LedgerEntry(resource="another", namespace="b")
    assert owners([own, older, old], {"t": held}) == {"t": old}


def test_only_the_clusters_namespace_takes_over() -> None:
    """And only with the annotation."""
    for topic in (_topic("default", ""), _topic("b", ""), _topic("b", "", adopt="resource")):
        assert "it is of KafkaTopic team/t, of another namespace" in objection_to(topic, FOREIGN)
    assert not objection_to(_topic("default", "", adopt="resource"), FOREIGN)
    assert not objection_to(_topic("team", ""), FOREIGN)
    assert not objection_to(_topic("b", ""), None)
    own = LedgerEntry(resource="t")
    assert "it is of KafkaTopic t," in objection_to(_topic("b", "", adopt="resource"), own)


def test_the_ledger_has_the_namespace() -> None:
    """What is written is what is read."""
    stored, texts = change(parse({}, FORMAT), {"t": FOREIGN}, FORMAT)
    assert parse(texts, FORMAT).entries == stored.entries == {"t": FOREIGN}
    broken = texts[0].replace('"name": "t"', '"name": 5')
    assert parse({0: broken}, FORMAT).entries == {}
    with pytest.raises(ValueError, match="must be texts"):
        parse_foreign({"namespace": "", "name": "t"})


def test_a_namespace_that_was_not_looked_at_protects_what_it_has() -> None:
    """A resource of a third namespace protects nothing of it, one of the cluster's does."""

    def found(*namespaces: str, looked_at: str = "team") -> list[str]:
        documents = []
        for namespace in namespaces:
            document = examples.topic("t", clusterNamespace="default")
            document["metadata"]["namespace"] = namespace
            documents.append(document)
        present = Present.of_namespaces(
            documents, "quickstart", "default", {looked_at}.__contains__
        )
        return orphans({"t": FOREIGN}, present)

    assert found() == found("third") == ["t"]
    assert found("team") == found("default") == found(looked_at="third") == []
