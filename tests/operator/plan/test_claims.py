"""Claims: grown, never shrunk, and templates that stay."""

from __future__ import annotations

from typing import Any

import pytest

from barnabas_operator.api.reading import read_cluster
from barnabas_operator.names import APPLIED_HASH
from barnabas_operator.plan.claims import growth, lost_cluster_id, with_present_templates
from barnabas_operator.resources.objects import hashed
from tests.operator import examples
from tests.operator.plan import transcript


def _claim(name: str, size: str) -> dict[str, Any]:
    spec = {"resources": {"requests": {"storage": size}}}
    return {"metadata": {"name": name}, "spec": spec}


def _set(size: str) -> dict[str, Any]:
    template = _claim("data", size)
    template["spec"]["accessModes"] = ["ReadWriteOnce"]
    spec = {"replicas": 1, "volumeClaimTemplates": [template]}
    return hashed({"kind": "StatefulSet", "metadata": {"name": "s"}, "spec": spec})


def test_each_claim_is_compared_with_the_size() -> None:
    """Also one that somebody has grown beyond it by hand: that one is kept, with a warning."""
    steps, warnings = growth([_claim("a", "1Gi"), _claim("b", "2048Mi"), _claim("c", "3Gi")], "2Gi")
    assert transcript([*steps]) == ("grow PersistentVolumeClaim a to 2Gi: it has 1Gi",)
    assert warnings == ["c keeps its 3.0 GiB: a claim cannot shrink to 2Gi"]


def test_a_size_that_the_api_server_writes_in_another_way() -> None:
    """1.1 GiB is no whole number of bytes: stored in thousandths, and larger than nothing asked."""
    assert growth([_claim("a", "1181116006400m")], "1.1Gi") == ([], [])
    steps, warnings = growth([_claim("a", "1181116006400m"), _claim("b", "1e10")], "2Gi")
    assert [each.name for each in steps] == ["a"]
    assert warnings == ["b keeps its 9.3 GiB: a claim cannot shrink to 2Gi"]


def test_a_new_set_has_the_wanted_templates() -> None:
    """There is nothing to keep yet."""
    assert with_present_templates(_set("2Gi"), None) == _set("2Gi")


def test_an_existing_set_keeps_its_templates_and_their_hash() -> None:
    """Otherwise every pass would apply what the API server refuses."""
    kept = with_present_templates(_set("2Gi"), _set("1Gi"))
    assert kept == _set("1Gi")
    assert kept["metadata"]["annotations"][APPLIED_HASH]


@pytest.mark.parametrize(
    ("brokers", "zookeeper", "warned"),
    [
        ("Retain", "Delete", True),
        ("Retain", "Retain", False),
        ("Delete", "Delete", False),
        ("Delete", "Retain", False),
    ],
)
def test_claims_of_brokers_do_not_outlive_the_ensembles(
    brokers: str, zookeeper: str, warned: bool
) -> None:
    """The cluster id is in the ensemble: without it the brokers refuse their directories."""
    document = examples.cluster(
        brokers={"replicas": 1, "storage": {"size": "1Gi", "deletionPolicy": brokers}},
        zookeeper={"storage": {"size": "1Gi", "deletionPolicy": zookeeper}},
    )
    text = lost_cluster_id(read_cluster(document).body.spec)
    assert ("zookeeper.storage.deletionPolicy" in text) == warned
