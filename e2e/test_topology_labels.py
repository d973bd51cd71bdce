"""Racks where the API server copies the nodes' topology labels onto pods (KEP-4742).

That is the default from Kubernetes 1.35 on; 1.33 and 1.34 have a feature gate, so these scenarios
have a cluster of their own. The operator may not get nodes here.

    KIND_NODE_IMAGE=kindest/node:v1.34.4 python -m pytest e2e/test_topology_labels.py -m soak
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from e2e.cluster import ZONES, Cluster, cluster_of_this_source
from e2e.quickstart import MAIN, RELEASE, install_with_helm
from e2e.three_racks import FILE, partitions, pods, wait_in_sync, wait_ready

pytestmark = pytest.mark.soak
ZONE = "topology.kubernetes.io/zone"


@pytest.fixture(scope="module")
def labelled() -> Iterator[Cluster]:
    """Three brokers in three zones, on an API server with the feature gate; gone afterwards."""
    with cluster_of_this_source(
        "barnabas-topology-labels",
        targets=("broker", "operator", "zookeeper"),
        PodTopologyLabelsAdmission=True,
    ) as cluster:
        install_with_helm(cluster, racks=False)
        cluster.kubectl("apply", "-n", MAIN, "-f", FILE)
        wait_ready(cluster)
        yield cluster


def test_brokers_have_their_racks_by_the_labels_of_their_pods(labelled: Cluster) -> None:
    """No annotation, no right to get nodes, and a replica of each partition in each zone."""
    found = pods(labelled).values()
    assert sorted(pod["metadata"]["labels"][ZONE] for pod in found) == sorted(ZONES)
    assert not any("barnabas.io/rack" in pod["metadata"]["annotations"] for pod in found)
    wait_in_sync(labelled)
    for partition in partitions(labelled):
        assert {node.rack for node in partition.replicas} == set(ZONES)


def test_a_broker_starts_without_an_operator(labelled: Cluster) -> None:
    """Its rack comes with its pod."""
    name = "three-broker-2"
    labelled.kubectl("scale", f"deploy/{RELEASE}", "-n", MAIN, "--replicas=0")
    selector = f"app.kubernetes.io/name={RELEASE}"
    labelled.wait_gone("pods", namespace=MAIN, selector=selector)
    labelled.kubectl("delete", f"pod/{name}", "-n", MAIN, "--wait=true")
    labelled.wait_ready(f"pod/{name}", namespace=MAIN)
