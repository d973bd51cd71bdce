"""Reading: errors that say where, what, and what would be right."""

from __future__ import annotations

from typing import Any

import pytest
import yaml

from barnabas_operator.api.clusters import KafkaCluster
from barnabas_operator.api.reading import (
    Resource,
    ResourceError,
    read_cluster,
    read_pipeline,
    read_sizing,
    read_topic,
    read_user,
)
from barnabas_operator.api.writing import to_json
from barnabas_operator.plan.user_acls import acls_of
from tests.operator import examples


def test_every_document_of_the_quickstart_is_read() -> None:
    """The example that everybody begins with is right."""
    cluster, packages, files, pipeline = examples.quickstart()
    assert read_cluster(cluster).body.spec.listeners[1].node_port == 32094
    assert read_topic(packages).body.spec.partitions == 3
    assert read_topic(files).meta.name == "files"
    assert read_pipeline(pipeline).body.spec.trigger.interval == "5s"


def test_every_document_of_the_example_of_users_is_read() -> None:
    """With a listener for them, and what they may do."""
    path = examples.ROOT / "manifests" / "examples" / "users.yaml"
    cluster, _, shop, billing = yaml.safe_load_all(path.read_text(encoding="utf-8"))
    spec = read_cluster(cluster).body.spec
    assert (spec.secured, spec.listeners[0].security_protocol) == (True, "SASL_SSL")
    for user, count in ((shop, 3), (billing, 4)):
        assert len(acls_of(read_user(user).body.spec.authorization)) == count


@pytest.mark.parametrize(
    ("spec", "error"),
    [
        ({"partitons": 3}, "spec.partitons: is no field; did you mean partitions?"),
        ({"partitions": "3"}, "spec.partitions: is '3', must be a whole number"),
        ({"partitions": True}, "spec.partitions: is True, must be a whole number"),
        ({"partitions": 0}, "spec.partitions: is 0, must be between 1 and 10000"),
        ({"topicName": "a b"}, "spec.topicName: is 'a b', must be letters, digits, dots"),
        ({"topicName": ""}, "spec.topicName: is '', must be letters"),
        ({"topicName": "x" * 250}, "spec.topicName: has a length of 250, at most 249"),
        ({"config": {"retention.ms": 5}}, "spec.config.retention.ms: is 5, must be a text; put it"),
        ({"config": ["a"]}, "spec.config: is ['a'], must be a mapping"),
        ({"deletionPolicy": "Keep"}, "spec.deletionPolicy: is 'Keep', must be Retain or Delete"),
        ({"cluster": None}, "spec.cluster: is missing: Name of the KafkaCluster"),
    ],
)
def test_errors_of_a_topic(spec: dict[str, Any], error: str) -> None:
    """One line each, beginning with the path."""
    with pytest.raises(ResourceError) as raised:
        read_topic(examples.topic(**spec))
    assert str(raised.value).startswith(f"KafkaTopic packages: {error}")


@pytest.mark.parametrize(
    ("spec", "error"),
    [
        ({"zookeeper": {"replicas": 2, "storage": {"size": "1Gi"}}},
         "spec.zookeeper.replicas: is 2, must be 1 or 3"),
        ({"listeners": []}, "spec.listeners: has 0 entries, must have 1 or more"),
        ({"listeners": [{"name": "a", "port": 80}]},
         "spec.listeners[0].port: is 80, must be between 1024 and 65535"),
        ({"listeners": "plain"}, "spec.listeners: is 'plain', must be a list"),
        ({"brokers": {"storage": {"size": "big"}}},
         "spec.brokers.storage.size: is 'big', must be a quantity such as"),
        ({"brokers": 1}, "spec.brokers: is 1, must be a mapping of fields"),
    ],
)  # fmt: skip
def test_errors_of_a_cluster(spec: dict[str, Any], error: str) -> None:
    """Paths go through lists and nested fields."""
    with pytest.raises(ResourceError) as raised:
        read_cluster(examples.cluster(**spec))
    assert str(raised.value).startswith(f"KafkaCluster quickstart: {error}")


def test_another_kind_is_refused() -> None:
    """A topic is no cluster, and another version is not ours."""
    with pytest.raises(ResourceError, match="KafkaTopic, must be barnabas"):
        read_cluster(examples.topic())
    with pytest.raises(ResourceError, match="v2 KafkaTopic"):
        read_topic({**examples.topic(), "apiVersion": "barnabas.io/v2"})


def test_a_resource_needs_a_name_and_a_spec() -> None:
    """Without these there is nothing to speak of."""
    with pytest.raises(ResourceError, match="name: is missing"):
        read_topic({**examples.topic(), "metadata": {}})
    with pytest.raises(ResourceError, match="spec: is missing"):
        read_topic({**examples.topic(), "spec": None})


def test_a_status_of_another_version_is_no_error() -> None:
    """It is our own past, not the user's wish."""
    topic = read_topic({**examples.topic(), "status": {"somethingOld": 1}})
    assert topic.body.status.observed_generation == 0


def test_numbers_may_be_whole_where_fractions_are_allowed() -> None:
    """YAML writes 1 for 1.0."""
    factors = {"messagesPerDay": 1, "averageMessageBytes": 1, "compressionRatio": 1}
    assert read_sizing(factors, "options").compression_ratio == 1.0


def test_metadata_is_taken_as_it_is() -> None:
    """What the operator acts on: identity, generation, whether it goes."""
    document = examples.cluster()
    document["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    resource: Resource[KafkaCluster] = read_cluster(document)
    meta = resource.meta
    assert (meta.name, meta.namespace, meta.generation) == ("quickstart", "default", 1)
    assert (meta.uid, meta.deleting, resource.kind) == (
        "uid-of-quickstart",
        True,
        "KafkaCluster",
    )


@pytest.mark.parametrize(
    ("spec", "error"),
    [
        ({"authentication": {"type": "kerberos"}},
         "spec.authentication.type: is 'kerberos', must be scram-sha-512 or scram-sha-256"),
        ({"authentication": {"password": "x"}}, "spec.authentication.password: is no field"),
        ({"username": "a b"}, "spec.username: is 'a b', must be letters"),
        ({"quotas": {"producerByteRate": 0}}, "spec.quotas.producerByteRate: is 0, must be"),
        ({"authorization": {"acls": [{"resource": {"type": "topic"}, "operations": ["read"]}]}},
         "spec.authorization.acls[0].operations[0]: is 'read', must be All or Read"),
    ],
)  # fmt: skip
def test_errors_of_a_user(spec: dict[str, Any], error: str) -> None:
    """What is no field, type or name is refused by name."""
    with pytest.raises(ResourceError) as raised:
        read_user(examples.user(**spec))
    assert str(raised.value).startswith(f"KafkaUser billing: {error}")


def test_all_errors_are_reported_together() -> None:
    """In every list, mapping and field, each with its path."""
    spec = {
        "brokers": {"replicas": "many", "storage": {"size": "big"}},
        "listeners": [{"name": "a", "port": 80}, {"nme": "b", "port": 9093}],
        "config": {"num.partitions": 3, "log.dirs": None},
    }
    with pytest.raises(ResourceError) as raised:
        read_cluster(examples.cluster(**spec))
    assert sorted(each.path.rpartition(": spec.")[2] for each in raised.value.each) == [
        "brokers.replicas",
        "brokers.storage.size",
        "config.log.dirs",
        "config.num.partitions",
        "listeners[0].port",
        "listeners[1].name",
        "listeners[1].nme",
    ]
    assert str(raised.value).count("; KafkaCluster quickstart: spec.") == 6


def test_a_resource_is_written_with_its_defaults() -> None:
    """Fields that are None are left out; the rest is there."""
    written = to_json(read_cluster(examples.cluster()).body.spec)
    assert written["listeners"][0] == {"name": "plain", "type": "internal", "port": 9092}
    assert written["brokers"]["storage"] == {"size": "2Gi", "deletionPolicy": "Retain"}


def test_reading_what_was_written_changes_nothing() -> None:
    """There and back."""
    pipeline = read_pipeline(examples.pipeline())
    document = {**examples.pipeline(), "spec": to_json(pipeline.body.spec)}
    assert read_pipeline(document) == pipeline
