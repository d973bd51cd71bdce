"""An operator that is older than the definitions of its resources, and one that is newer."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, Final

import pytest
import yaml

from e2e.commands import ROOT
from e2e.figures import wait_for_reconciliations
from e2e.quickstart import MAIN, Quickstart
from e2e.test_topics import apply, condition

# What the definitions of an early version had, which the others are dropped for.
EARLY_STATUS: Final = {
    "kafkatopics": ("conditions", "observedGeneration"),
    "kafkaclusters": ("conditions", "observedGeneration", "listeners", "brokers", "zookeeper"),
}
CREATED: Final = "tiered"
ARCHIVED: Final = "archived"
LEAVING: Final = "leaving"


def definition(
    quickstart: Quickstart, kind: str = "kafkatopics", *, early: bool = False, **fields: Any
) -> None:
    """Apply the definition of a resource with more fields of the spec, or an early status."""
    document = yaml.safe_load((ROOT / "crds" / f"{kind}.yaml").read_text())
    schema = document["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]
    schema["spec"]["properties"].update(fields)
    if early:
        status = schema["status"]["properties"]
        schema["status"]["properties"] = {name: status[name] for name in EARLY_STATUS[kind]}
    quickstart.cluster.kubectl(
        "apply", "--server-side", "--force-conflicts", "-f", "-", stdin=json.dumps(document)
    )


@pytest.fixture
def newer_definition(quickstart: Quickstart) -> Iterator[None]:
    """KafkaTopics have a field `tier` that the operator does not know."""
    definition(quickstart, tier={"type": "string"})
    # Until the API server serves the new definition, it drops the field silently.
    quickstart.cluster.wait_for(
        "the field in what the API server describes",
        lambda: quickstart.cluster.kubectl("explain", "kafkatopic.spec.tier"),
        namespaces=(MAIN,),
    )
    yield
    definition(quickstart)


def keep_tier(quickstart: Quickstart) -> None:
    """Have the resource with its field stored; API servers may differ for a moment."""

    def tier() -> object:
        apply(quickstart, CREATED, deletionPolicy="Delete", tier="cold")
        found = quickstart.cluster.get("kafkatopic", CREATED, namespace=MAIN) or {}
        return found["spec"].get("tier")

    quickstart.cluster.wait_for(
        "a KafkaTopic whose tier is stored", tier, until=lambda it: it == "cold", namespaces=(MAIN,)
    )


def test_a_field_of_a_newer_definition_is_named_and_the_rest_is_done(
    quickstart: Quickstart, newer_definition: None
) -> None:
    """The topic is served, and a warning names the field; other topics do not notice."""
    keep_tier(quickstart)
    warning = quickstart.cluster.wait_for(
        "the condition Warning",
        lambda: condition(quickstart, CREATED, "Warning"),
        namespaces=(MAIN,),
    )
    assert "spec.tier" in warning["message"]
    quickstart.wait_ready(f"kafkatopic/{CREATED}")
    quickstart.cluster.wait_for(
        "the topic", lambda: quickstart.partitions(CREATED), namespaces=(MAIN,)
    )
    quickstart.cluster.delete_objects(f"kafkatopic/{CREATED}", "-n", MAIN)
    quickstart.cluster.wait_for(
        "the end of the topic",
        lambda: quickstart.partitions(CREATED),
        until=lambda count: count == 0,
        namespaces=(MAIN,),
    )


@pytest.fixture
def newer_policy(quickstart: Quickstart) -> Iterator[None]:
    """KafkaTopics may have a deletionPolicy that the operator does not know."""
    definition(quickstart, deletionPolicy={"type": "string"})
    yield
    definition(quickstart)


def test_a_value_of_a_newer_definition_deletes_nothing(
    quickstart: Quickstart, newer_policy: None
) -> None:
    """Neither its own topic nor that of another resource, until it can be parsed or is gone."""
    cluster = quickstart.cluster
    for name in (ARCHIVED, LEAVING):
        apply(quickstart, name, deletionPolicy="Delete")
        quickstart.wait_ready(f"kafkatopic/{name}")

    def archive() -> bool:
        apply(quickstart, ARCHIVED, deletionPolicy="Archive")
        return True

    # The API server serves the new definition a moment after it took it.
    cluster.wait_for("a KafkaTopic with the value", archive, namespaces=(MAIN,))
    cluster.wait_for(
        "the refusal of the resource",
        lambda: condition(quickstart, ARCHIVED, "Ready"),
        until=lambda ready: ready and ready["reason"] == "Invalid",
        namespaces=(MAIN,),
    )
    cluster.delete_objects(f"kafkatopic/{LEAVING}", "-n", MAIN)
    # Two passes over the cluster come after the deletion: each does something for another topic.
    for partitions in (1, 2):
        apply(quickstart, "bystander", partitions=partitions)
        quickstart.wait_ready("kafkatopic/bystander")
    assert quickstart.partitions(LEAVING)
    assert quickstart.partitions(ARCHIVED)
    apply(quickstart, ARCHIVED, deletionPolicy="Retain")
    cluster.wait_for(
        "the end of the topic whose resource is gone",
        lambda: quickstart.partitions(LEAVING),
        until=lambda count: count == 0,
        namespaces=(MAIN,),
    )
    assert quickstart.partitions(ARCHIVED)
    cluster.delete_objects(f"kafkatopic/{ARCHIVED}", "kafkatopic/bystander", "-n", MAIN)


def versions(quickstart: Quickstart) -> list[str]:
    """Of cluster and topic: each changes with a write."""
    resources = (("kafkacluster", "quickstart"), ("kafkatopic", CREATED))
    found = [quickstart.cluster.get(*each, namespace=MAIN) or {} for each in resources]
    return [each["metadata"]["resourceVersion"] for each in found]


def test_older_definitions_are_served(quickstart: Quickstart) -> None:
    """Of the status they keep the conditions and little else: edits are applied all the same.

    What the API server drops is not written again and again.
    """
    cluster = quickstart.cluster
    for kind in EARLY_STATUS:
        definition(quickstart, kind, early=True)
    try:
        apply(quickstart, CREATED, deletionPolicy="Delete", partitions=1)
        quickstart.wait_ready(f"kafkatopic/{CREATED}")
        apply(quickstart, CREATED, deletionPolicy="Delete", partitions=2)
        cluster.wait_for(
            "two partitions",
            lambda: quickstart.partitions(CREATED),
            until=lambda count: count == 2,
            namespaces=(MAIN,),
        )
        quickstart.wait_ready(f"kafkatopic/{CREATED}")

        def quiet() -> bool:
            before = versions(quickstart)
            wait_for_reconciliations(cluster, "quickstart")
            return versions(quickstart) == before

        cluster.wait_for("reconciliations that write nothing", quiet, namespaces=(MAIN,))
        cluster.delete_objects(f"kafkatopic/{CREATED}", "-n", MAIN)
        cluster.wait_for(
            "the end of the topic",
            lambda: quickstart.partitions(CREATED),
            until=lambda count: count == 0,
            namespaces=(MAIN,),
        )
    finally:
        for kind in EARLY_STATUS:
            definition(quickstart, kind)
    quickstart.wait_ready("kafkacluster/quickstart")
