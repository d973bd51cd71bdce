"""Who may reach the pods of a secured cluster."""

from __future__ import annotations

import pytest

from barnabas_operator.api.reading import read_cluster
from barnabas_operator.resources.brokers import broker_services, broker_workload
from barnabas_operator.resources.network_policies import network_policies
from barnabas_operator.resources.zookeeper import zookeeper_objects
from tests.operator import examples
from tests.operator.resources.golden import compare

LISTENERS = [
    {"name": "secure", "port": 9093, "tls": {}, "authentication": {"type": "scram-sha-512"}}
]


@pytest.mark.parametrize("protocol", ["TLS", "Plaintext"])
def test_objects_of_a_secured_cluster(protocol: str) -> None:
    """All of them, written down; those of clusters of before TLS for ZooKeeper stay as they are."""
    document = examples.cluster(listeners=LISTENERS, insecure=False)
    document["status"] = {"zookeeperProtocol": protocol}
    cluster = read_cluster(document)
    compare(
        "secured" if protocol == "TLS" else "secured-plaintext",
        [
            *network_policies(cluster, operator_namespace="kafka"),
            *zookeeper_objects(cluster, image="barnabas-zookeeper:1"),
            *broker_services(cluster),
            *broker_workload(cluster, image="barnabas-broker:1", node_ports={}),
        ],
    )


def test_a_cluster_that_is_not_secured_has_none() -> None:
    """Its clients may come from anywhere, as ever."""
    cluster = read_cluster(examples.cluster())
    assert network_policies(cluster, operator_namespace="kafka") == []


def test_pods_are_selected_as_their_sets_select_them() -> None:
    """A StatefulSet of an earlier version has other labels, which cannot change."""
    cluster = read_cluster(examples.cluster(listeners=LISTENERS, insecure=False))
    ensemble, brokers = network_policies(
        cluster, operator_namespace="kafka", members={"a": "1"}, brokers={"b": "2"}
    )
    assert ensemble["spec"]["podSelector"] == {"matchLabels": {"a": "1"}}
    client, peers = ensemble["spec"]["ingress"]
    assert {"podSelector": {"matchLabels": {"b": "2"}}} in client["from"]
    assert peers["from"] == [{"podSelector": {"matchLabels": {"a": "1"}}}]
    assert brokers["spec"]["podSelector"] == {"matchLabels": {"b": "2"}}


def test_ports_of_sidecars_are_open_as_they_are_declared() -> None:
    """An exporter of one's own goes on to be reached."""
    exporter = {"name": "exporter", "image": "e:1", "ports": [{"containerPort": 7000}]}
    template = {"sidecars": [exporter, {"name": "quiet", "ports": 1}]}
    storage = {"replicas": 1, "storage": {"size": "1Gi"}}
    cluster = read_cluster(
        examples.cluster(
            listeners=LISTENERS,
            insecure=False,
            brokers={**storage, "template": template},
            zookeeper={**storage, "template": template},
        )
    )
    for policy in network_policies(cluster, operator_namespace="kafka"):
        assert policy["spec"]["ingress"][-1] == {"ports": [{"port": 7000, "protocol": "TCP"}]}
