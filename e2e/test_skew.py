"""An operator that is older than the definitions of its resources."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, Final

import pytest
import yaml

from e2e.commands import ROOT
from e2e.quickstart import MAIN, Quickstart
from e2e.test_topics import apply, condition

DEFINITION: Final = ROOT / "crds" / "kafkatopics.yaml"
CREATED: Final = "tiered"


def definition(quickstart: Quickstart, **fields: Any) -> None:
    """Apply the definition of KafkaTopics with more fields of the spec."""
    document = yaml.safe_load(DEFINITION.read_text())
    schema = document["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    schema["properties"]["spec"]["properties"].update(fields)
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
