"""The brokers' objects: golden manifests, and what depends on the resource."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

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


# The start command with the end replaced: it shows the settings instead of running a broker.
SHOW = """
from barnabas_broker.cli import broker
broker.given_settings = lambda config, assignments: (config, assignments)
broker.run_with = lambda given, **_: print(given[0], *given[1], sep="\\n")
from barnabas_broker.cli.main import main
main()
"""


def test_services_of_the_quickstart() -> None:
    """Headless, bootstrap and one Service per broker for the nodes' ports."""
    compare("broker-services", broker_services(read_cluster(examples.cluster())))


def test_workload_of_the_quickstart() -> None:
    """ConfigMap, budget and StatefulSet."""
    cluster = read_cluster(examples.cluster())
    compare("broker-workload", broker_workload(cluster, image="barnabas-broker:1", node_ports={}))


def test_a_listener_with_a_certificate_of_its_own() -> None:
    """Golden: its key store is a file of its own, with the others' in the brokers' Secret."""
    own = {"secretName": "public", "certificate": "chain.pem", "key": "key.pem"}
    scram = {"type": "scram-sha-512"}
    listeners = [
        {"name": "secure", "port": 9092, "tls": {}, "authentication": scram},
        {"name": "public", "port": 9094, "type": "loadbalancer", "authentication": scram,
         "tls": {"brokerCertChainAndKey": own},
         "configuration": {"advertisedHostTemplate": "b{broker}.kafka.example"}},
    ]  # fmt: skip
    cluster = read_cluster(examples.cluster(listeners=listeners, insecure=False))
    compare("listener-certificate", broker_workload(cluster, image="i", node_ports={}))


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
    reported = advertised_listeners(cluster, NAMES, {"external": 31234})
    assert reported.endswith(",EXTERNAL://{HOST_IP}:{31234+POD_INDEX}")
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
    assert advertised_listeners(cluster, NAMES, {}).endswith(",OUT://localhost:{31000+POD_INDEX}")


def test_brokers_wait_for_an_ensemble_that_starts_with_them() -> None:
    """Longer than Kafka's 18 seconds, after which they would crash; the resource may say else."""
    name = "zookeeper.connection.timeout.ms"
    assert f"\n{name}=120000\n" in broker_config(read_cluster(examples.cluster()))
    own = broker_config(read_cluster(examples.cluster(config={name: "6000"})))
    assert f"\n{name}=6000\n" in own
    assert own.count(name) == 1


def _start(body: dict[str, Any], tmp_path: Path, ordinal: int) -> list[str]:
    """What a pod's command starts the broker with, as the broker's own code reads it."""
    (tmp_path / "rack").write_text("east")
    command = body["spec"]["template"]["spec"]["containers"][0]["command"]
    environment = {
        "POD_NAME": f"quickstart-broker-{ordinal}",
        "POD_INDEX": str(ordinal),
        "HOST_IP": "172.18.0.3",
    }
    program = [sys.executable, "-c", SHOW]
    here = [
        each.replace("/etc/barnabas-pod", str(tmp_path)).replace(
            "/etc/barnabas-addresses", str(tmp_path)
        )
        for each in command[1:]
    ]
    done = subprocess.run(
        [*program, *here], env=environment, capture_output=True, text=True, check=True
    )
    return done.stdout.splitlines()


def test_each_broker_advertises_its_own_name_and_port(tmp_path: Path) -> None:
    """One template for all pods: the ports of the nodes are counted on from broker 0's."""
    stateful_set = broker_workload(read_cluster(examples.cluster()), image="i", node_ports={})[-1]
    host = "quickstart-broker-2.quickstart-broker-nodes.default.svc"
    assert _start(stateful_set, tmp_path, 2) == [
        "/etc/barnabas/server.properties",
        "broker.id=2",
        f"advertised.listeners=PLAIN://{host}:9092,EXTERNAL://172.18.0.3:32096",
    ]  # fmt: skip


def test_each_broker_advertises_what_its_file_says(tmp_path: Path) -> None:
    """The node's address is filled in where the file has its place."""
    listeners = [
        {"name": "plain", "port": 9092},
        {"name": "lb", "type": "loadbalancer", "port": 9094},
        {"name": "np", "type": "nodeport", "port": 9095, "nodePort": 31000},
    ]
    balancer = {"status": {"loadBalancer": {"ingress": [{"ip": "192.0.2.1"}]}}}
    made = broker_workload(
        read_cluster(examples.cluster(listeners=listeners)),
        image="i", node_ports={}, found={("Service", "quickstart-lb-0"): balancer},
    )  # fmt: skip
    (tmp_path / "0").write_text(made[1]["data"]["0"])
    host = "quickstart-broker-0.quickstart-broker-nodes.default.svc"
    reported = "LB://192.0.2.1:9094,NP://172.18.0.3:31000"
    assert (
        _start(made[-1], tmp_path, 0)[-1] == f"advertised.listeners=PLAIN://{host}:9092,{reported}"
    )


def test_a_broker_waits_for_its_rack_annotation(tmp_path: Path) -> None:
    """The rack is a label of the pod, or its annotation; both reach the broker as files."""
    brokers = {
        "replicas": 3,
        "storage": {"size": "1Gi"},
        "rack": {"topologyKey": "topology.kubernetes.io/zone"},
    }
    cluster = read_cluster(examples.cluster(brokers=brokers))
    stateful_set = broker_workload(cluster, image="i", node_ports={})[-1]
    assert _start(stateful_set, tmp_path, 0)[-1] == "broker.rack=east"
    pod = stateful_set["spec"]["template"]["spec"]
    assert pod["initContainers"][0]["command"][:3] == ["barnabas", "broker", "wait-for-rack"]
    spread = pod["topologySpreadConstraints"][0]
    assert spread["topologyKey"] == "topology.kubernetes.io/zone"
    (file,) = [volume for volume in pod["volumes"] if volume["name"] == "pod"]
    assert [each["fieldRef"]["fieldPath"] for each in file["downwardAPI"]["items"]] == [
        "metadata.labels['topology.kubernetes.io/zone']",
        "metadata.annotations['barnabas.io/rack']",
    ]


def test_config_changes_the_pod_template() -> None:
    """Another configuration is another pod: the template has its hash."""
    hashes = []
    for value in ("true", "false"):
        cluster = read_cluster(examples.cluster(config={"auto.create.topics.enable": value}))
        made = broker_workload(cluster, image="i", node_ports={})
        assert f"auto.create.topics.enable={value}" in broker_config(cluster)
        hashes.append(made[-1]["spec"]["template"]["metadata"]["annotations"])
    assert hashes[0] != hashes[1]


def test_durability_is_a_setting_of_the_broker() -> None:
    """`durability: fsync` reaches the brokers; the default leaves the file as it was."""
    assert "barnabas.durability" not in broker_config(read_cluster(examples.cluster()))
    forced = read_cluster(examples.cluster(durability="fsync"))
    assert "barnabas.durability=fsync" in broker_config(forced).splitlines()


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
