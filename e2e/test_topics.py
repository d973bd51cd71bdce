"""The life of a KafkaTopic."""

from __future__ import annotations

import json
from typing import Any

from confluent_kafka.admin import (
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    ConfigSource,
    ResourceType,
)

from e2e.quickstart import MAIN, Quickstart
from tests.waiting import ANSWER, seconds


def apply(quickstart: Quickstart, name: str, **spec: Any) -> None:
    """Apply a KafkaTopic of the quickstart."""
    document = {
        "apiVersion": "barnabas.io/v1alpha1",
        "kind": "KafkaTopic",
        "metadata": {"name": name},
        "spec": {"cluster": "quickstart", **spec},
    }
    quickstart.cluster.kubectl("apply", "-n", MAIN, "-f", "-", stdin=json.dumps(document))


def own_settings(quickstart: Quickstart, topic: str) -> dict[str, str]:
    """The settings that were made on the topic itself."""
    resource = ConfigResource(ResourceType.TOPIC, topic)
    admin = quickstart.admin()  # The answers come only as long as the client is there.
    found = admin.describe_configs([resource])[resource].result(seconds(ANSWER))
    dynamic = ConfigSource.DYNAMIC_TOPIC_CONFIG.value
    return {name: entry.value for name, entry in found.items() if entry.source == dynamic}


def condition(quickstart: Quickstart, name: str, kind: str) -> dict[str, Any]:
    """A condition of a KafkaTopic, empty while there is none."""
    found = quickstart.cluster.get("kafkatopic", name, namespace=MAIN) or {}
    conditions = found.get("status", {}).get("conditions", [])
    return next((each for each in conditions if each["type"] == kind), {})


def test_a_topic_is_made_with_its_settings(quickstart: Quickstart) -> None:
    """The topic in Kafka has another name than the resource, its partitions and its settings."""
    settings = {"retention.ms": "3600000", "cleanup.policy": "compact"}
    apply(quickstart, "orders", topicName="Orders_v1", partitions=2, config=settings)
    quickstart.wait_ready("kafkatopic/orders")
    assert quickstart.partitions("Orders_v1") == 2
    assert own_settings(quickstart, "Orders_v1") == settings


def test_a_topic_grows_and_changes_with_its_resource(quickstart: Quickstart) -> None:
    """More partitions are added; a setting that is left out falls back to the default."""
    settings = {"retention.ms": "7200000"}
    apply(quickstart, "orders", topicName="Orders_v1", partitions=5, config=settings)
    quickstart.cluster.wait_for(
        f"5 partitions and the settings {settings}",
        lambda: (
            quickstart.partitions("Orders_v1"),
            own_settings(quickstart, "Orders_v1"),
            condition(quickstart, "orders", "Ready"),
        ),
        until=lambda found: found[:2] == (5, settings),
        namespaces=(MAIN,),
    )


def test_a_changed_setting_is_put_back(quickstart: Quickstart) -> None:
    """Who alters a managed topic behind the operator's back finds it as the resource says."""
    entry = ConfigEntry("retention.ms", "1", incremental_operation=AlterConfigOpType.SET)
    changed = ConfigResource(ResourceType.TOPIC, "Orders_v1", incremental_configs=[entry])
    admin = quickstart.admin()
    admin.incremental_alter_configs([changed])[changed].result(seconds(ANSWER))
    quickstart.cluster.wait_for(
        "the setting of the resource",
        lambda: own_settings(quickstart, "Orders_v1"),
        until=lambda settings: settings == {"retention.ms": "7200000"},
        namespaces=(MAIN,),
    )


def test_of_two_resources_for_one_topic_the_first_has_it(quickstart: Quickstart) -> None:
    """The second one says who manages the topic, and changes nothing."""
    apply(quickstart, "usurper", topicName="Orders_v1", partitions=9)
    verdict = quickstart.cluster.wait_for(
        "the condition Ready of the second resource",
        lambda: condition(quickstart, "usurper", "Ready"),
        namespaces=(MAIN,),
    )
    assert (verdict["status"], verdict["reason"]) == ("False", "Conflict")
    assert "orders" in verdict["message"]
    assert quickstart.partitions("Orders_v1") == 5
    quickstart.cluster.delete_objects("kafkatopic/usurper", "-n", MAIN)


def test_a_retained_topic_outlives_its_resource(quickstart: Quickstart) -> None:
    """`deletionPolicy: Retain`, the default: the resource goes, the topic and its records stay."""
    quickstart.send("Orders_v1", [(b"1", b"an order")])
    quickstart.cluster.delete_objects("kafkatopic/orders", "-n", MAIN)
    apply(quickstart, "marker", deletionPolicy="Delete")
    quickstart.wait_ready("kafkatopic/marker")
    assert list(quickstart.read("Orders_v1").values()) == [(b"1", b"an order")]


def test_a_topic_goes_with_its_resource_where_that_says_so(quickstart: Quickstart) -> None:
    """`deletionPolicy: Delete`: the topic is gone from Kafka, without a finalizer to hang on."""
    found = quickstart.cluster.get("kafkatopic", "marker", namespace=MAIN)
    assert found is not None
    assert "finalizers" not in found["metadata"]
    quickstart.cluster.delete_objects("kafkatopic/marker", "-n", MAIN)
    quickstart.cluster.wait_for(
        "the end of the topic",
        lambda: quickstart.partitions("marker"),
        until=lambda count: count == 0,
        namespaces=(MAIN,),
    )


def test_an_unknown_setting_is_reported_in_the_status(quickstart: Quickstart) -> None:
    """A setting that Kafka does not know stalls the resource, with the reason, and no topic."""
    apply(quickstart, "wrong", config={"retention.ms": "soon"})
    verdict = quickstart.cluster.wait_for(
        "the condition Stalled",
        lambda: condition(quickstart, "wrong", "Stalled"),
        namespaces=(MAIN,),
    )
    assert verdict["reason"] == "InvalidConfig"
    assert "retention.ms" in verdict["message"]
    assert quickstart.partitions("wrong") == 0
    quickstart.cluster.delete_objects("kafkatopic/wrong", "-n", MAIN)
