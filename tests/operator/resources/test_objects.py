"""What all objects have: an owner that does not block, a hash that notices change."""

from __future__ import annotations

from barnabas_operator.api.reading import read_cluster
from barnabas_operator.api.storage import ContainerResources
from barnabas_operator.names import APPLIED_HASH
from barnabas_operator.resources import objects
from tests.operator import examples

OWNER = read_cluster(examples.cluster()).meta


def _made(data: dict[str, str]) -> objects.Document:
    body = objects.document("v1", "ConfigMap", "c", owner=OWNER, labels={})
    body["data"] = data
    return objects.owned(body, owner=OWNER, kind="KafkaCluster")


def test_owner_does_not_block() -> None:
    """The object goes with its resource, and nothing waits for it: no finalizer is involved."""
    (reference,) = _made({})["metadata"]["ownerReferences"]
    assert (reference["uid"], reference["controller"]) == (OWNER.uid, True)
    assert reference["blockOwnerDeletion"] is False


def test_hash_follows_the_content() -> None:
    """The same content has the same hash, another has another."""
    hashes = [
        _made(data)["metadata"]["annotations"][APPLIED_HASH]
        for data in ({"a": "1"}, {"a": "1"}, {"a": "1", "b": "2"})
    ]
    assert hashes[0] == hashes[1] != hashes[2]


def test_memory_is_limited_and_cpu_is_not() -> None:
    """A limit of CPU would stall a broker that could run."""
    made = objects.container_resources(ContainerResources(memory="1Gi", cpu="1"))
    assert made == {"requests": {"memory": "1Gi", "cpu": "1"}, "limits": {"memory": "1Gi"}}
    assert objects.container_resources(ContainerResources()) == {}
