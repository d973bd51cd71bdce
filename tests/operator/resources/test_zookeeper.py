"""The ensemble's objects: golden manifests for one member and for three."""

from __future__ import annotations

import pytest

from barnabas_operator.api.reading import read_cluster
from barnabas_operator.resources.zookeeper import zookeeper_config, zookeeper_objects
from tests.operator import examples
from tests.operator.resources.golden import compare


@pytest.mark.parametrize("replicas", [1, 3])
def test_objects(replicas: int) -> None:
    """Everything of an ensemble."""
    zookeeper = {"replicas": replicas, "storage": {"size": "1Gi"}}
    cluster = read_cluster(examples.cluster(zookeeper=zookeeper))
    compare(f"zookeeper-{replicas}", zookeeper_objects(cluster, image="barnabas-zookeeper:1"))


def test_a_single_member_has_no_peers() -> None:
    """One member has no peers; three name each other by their headless Service."""
    assert "server." not in zookeeper_config(read_cluster(examples.cluster()))
    three = examples.cluster(zookeeper={"replicas": 3, "storage": {"size": "1Gi"}})
    text = zookeeper_config(read_cluster(three))
    host = "quickstart-zookeeper-2.quickstart-zookeeper-nodes.default.svc"
    assert f"server.3={host}:2888:3888\n" in text
