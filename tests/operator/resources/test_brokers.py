"""The brokers' objects: golden manifests, and what depends on the resource."""

from __future__ import annotations

import pytest

from barnabas_operator.api.reading import read_cluster
from barnabas_operator.names import ClusterNames
from barnabas_operator.resources.brokers import (
    advertised_listeners,
    broker_config,
    broker_services,
    broker_workload,
    claim_size,
    log_shape,
    storage_estimate,
)
from barnabas_operator.sizing import DAY_MS, LogShape
from tests.operator import examples
from tests.operator.resources.golden import compare

NAMES = ClusterNames("quickstart", "default")
SIZING = {"messagesPerDay": 1_000_000, "averageMessageBytes": 1000, "retention": "1d"}


def test_services_of_the_quickstart() -> None:
    """Headless, bootstrap and one Service per broker for the nodes' ports."""
    compare("broker-services", broker_services(read_cluster(examples.cluster())))


def test_workload_of_the_quickstart() -> None:
    """ConfigMap, budget and StatefulSet."""
    cluster = read_cluster(examples.cluster())
    compare("broker-workload", broker_workload(cluster, image="barnabas-broker:1", node_ports={}))


def test_no_external_service_without_nodeport_listener() -> None:
    """What nobody asked for is not opened to the outside."""
    listeners = [{"name": "plain", "port": 9092}]
    made = broker_services(read_cluster(examples.cluster(listeners=listeners)))
    assert {body["spec"].get("type", "headless") for body in made} == {"ClusterIP", "headless"}


def test_chosen_port_is_advertised() -> None:
    """A port that Kubernetes chose is told to clients; while it is not known nobody guesses."""
    listeners = [
        {"name": "plain", "port": 9092},
        {"name": "external", "type": "nodeport", "port": 9094},
    ]
    cluster = read_cluster(examples.cluster(listeners=listeners))
    told = advertised_listeners(cluster, NAMES, {"external": 31234})
    assert told.endswith(",EXTERNAL://$(HOST_IP):31234")
    with pytest.raises(ValueError, match="not known yet"):
        advertised_listeners(cluster, NAMES, {})


def test_advertised_host_replaces_the_node() -> None:
    """A tunnel's host is told instead of the node's address."""
    listeners = [
        {"name": "plain", "port": 9092},
        {"name": "out", "type": "nodeport", "port": 9094, "nodePort": 31000,
         "advertisedHost": "localhost"},
    ]  # fmt: skip
    cluster = read_cluster(examples.cluster(listeners=listeners))
    assert advertised_listeners(cluster, NAMES, {}).endswith(",OUT://localhost:31000")


def test_config_changes_the_pod_template() -> None:
    """Another configuration is another pod: the template has its hash."""
    hashes = []
    for value in ("true", "false"):
        cluster = read_cluster(examples.cluster(config={"auto.create.topics.enable": value}))
        made = broker_workload(cluster, image="i", node_ports={})
        assert f"auto.create.topics.enable={value}" in broker_config(cluster)
        hashes.append(made[-1]["spec"]["template"]["metadata"]["annotations"])
    assert hashes[0] != hashes[1]


def test_claim_is_given_or_reckoned() -> None:
    """A size is taken as it is; sizing is reckoned, with the cluster's own segment size."""
    given = read_cluster(examples.cluster()).body
    assert claim_size(given) == "2Gi"
    assert storage_estimate(given) is None
    brokers = {"replicas": 1, "storage": {"sizing": SIZING}}
    reckoned = read_cluster(examples.cluster(brokers=brokers)).body
    small = {"log.segment.bytes": "1048576"}
    smaller = read_cluster(examples.cluster(brokers=brokers, config=small)).body
    large, less = storage_estimate(reckoned), storage_estimate(smaller)
    assert large is not None
    assert less is not None
    assert large.expired_bytes > 1000 * less.expired_bytes
    assert claim_size(reckoned) == f"{-(-large.claim_bytes // 2**20)}Mi"


def test_log_shape_follows_the_settings() -> None:
    """`log.roll.ms` counts before `log.roll.hours`, as in the broker."""
    assert log_shape({}) == LogShape()
    assert log_shape({"log.roll.hours": "24"}).segment_ms == DAY_MS
    assert log_shape({"log.roll.hours": "24", "log.roll.ms": "5"}).segment_ms == 5
