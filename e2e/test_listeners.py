"""Listeners whose addresses Kubernetes gives, on a real API server: late, and in their statuses.

Nothing here serves load balancers, Ingresses or TLSRoutes. The scenario writes their statuses, as
a cloud and its controllers do.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any, Final

import pytest

from e2e import users
from e2e.cluster import Cluster
from e2e.quickstart import FIXTURES, MAIN
from tests.waiting import ANSWER, RUN, seconds

FILE: Final = str(FIXTURES / "listeners.yaml")
DEFINITION: Final = str(FIXTURES / "tlsroutes.yaml")
INSTANCE: Final = "app.kubernetes.io/instance=doors"
BROKER: Final = "doors-broker-0"
PORTS: Final = {"balanced": 9094, "inside": 9095, "web": 9096, "gated": 9097}
# In the broker's pod: where the brokers are, by a listener.
METADATA: Final = """
import json, sys
from confluent_kafka.admin import AdminClient
given, limit_s = json.load(sys.stdin), float(sys.argv[1])
found = AdminClient(given).list_topics(timeout=limit_s).brokers.values()
print(*(f"{each.host}:{each.port}" for each in found))
"""
EXTERNAL_DNS: Final = "external-dns.alpha.kubernetes.io/hostname"


@pytest.fixture(scope="module")
def doors(operator: Cluster) -> Iterator[Cluster]:
    """The cluster, ready before any of its listeners has an address; gone afterwards."""
    operator.kubectl("apply", "-f", DEFINITION)
    operator.wait_for_condition(
        "crd/tlsroutes.gateway.networking.k8s.io", "Established", namespace=MAIN
    )
    operator.kubectl("apply", "-n", MAIN, "-f", FILE)
    for resource in ("kafkacluster/doors", "kafkauser/porter"):
        operator.wait_ready(resource, namespace=MAIN, within=RUN)
    yield operator
    operator.delete_objects("-n", MAIN, "-f", FILE)
    operator.wait_gone("pods", namespace=MAIN, selector=INSTANCE)
    operator.kubectl("delete", "pvc", "-n", MAIN, "-l", "barnabas.io/cluster=doors")
    operator.delete_objects("-f", DEFINITION)


def warning(cluster: Cluster) -> str:
    """What the condition Warning of the cluster says."""
    found = cluster.get("kafkacluster", "doors", namespace=MAIN) or {}
    conditions = found.get("status", {}).get("conditions", ())
    return "".join(each["message"] for each in conditions if each["type"] == "Warning")


def servers(cluster: Cluster) -> dict[str, str]:
    """The bootstrap servers of the status, by listener."""
    found = cluster.get("kafkacluster", "doors", namespace=MAIN) or {}
    return {each["name"]: each["bootstrapServers"] for each in found["status"]["listeners"]}


def advertised(cluster: Cluster, listener: str) -> str:
    """Host and port of the broker in the Metadata response of a listener."""
    local = {  # Which the certificate does not name.
        "bootstrap.servers": f"localhost:{PORTS[listener]}",
        "ssl.endpoint.identification.algorithm": "none",
    }
    given = json.dumps({**users.client(cluster, "porter"), **local})
    command = ("python", "-c", METADATA, str(seconds(ANSWER)))
    return cluster.kubectl("exec", "-i", "-n", MAIN, BROKER, "--", *command, stdin=given).strip()


def give(cluster: Cluster, resource: str, status: Mapping[str, Any]) -> None:
    """Write the status of an object as its controller does."""
    patch = json.dumps({"status": status})
    cluster.kubectl(
        "patch", resource, "-n", MAIN, "--subresource=status", "--type=merge", "-p", patch
    )


def balanced(**address: str) -> dict[str, Any]:
    """The status of a Service or an Ingress with an address."""
    return {"loadBalancer": {"ingress": [address]}}


def pod_uid(cluster: Cluster) -> str:
    """That of the broker's pod; empty while there is none."""
    pod = cluster.get("pod", BROKER, namespace=MAIN) or {"metadata": {"uid": ""}}
    return str(pod["metadata"]["uid"])


def test_addresses_come_late(doors: Cluster) -> None:
    """The cluster is Ready without them; one restart of the broker and it advertises them."""
    first = pod_uid(doors)
    pending = warning(doors)
    for part in ("balanced: Service", "web: Ingress", "gated: TLSRoute"):
        assert f"listener {part} doors-{part.split(':')[0]}-" in pending
    assert servers(doors)["balanced"] == ""
    service = doors.get("service", "doors-balanced-0", namespace=MAIN) or {}
    assert service["spec"]["loadBalancerSourceRanges"] == ["10.0.0.0/8"]
    assert service["metadata"]["annotations"][EXTERNAL_DNS] == "b0.lb.example"
    route = doors.get("tlsroute", "doors-gated-0", namespace=MAIN) or {}
    assert route["spec"]["parentRefs"] == [{"name": "edge", "sectionName": "kafka"}]
    assert advertised(doors, "web") == "b0.web.example:8443"

    accepted = {"parents": [{"conditions": [{"type": "Accepted", "status": "True"}]}]}
    give(doors, "service/doors-balanced-bootstrap", balanced(ip="192.0.2.9"))
    give(doors, "service/doors-balanced-0", balanced(hostname="lb0.example"))
    for name in ("bootstrap", "0"):
        give(doors, f"ingress/doors-web-{name}", balanced(ip="192.0.2.10"))
        give(doors, f"tlsroute/doors-gated-{name}", accepted)
    doors.wait_for(
        "the load balancer's address in what the broker advertises",
        lambda: advertised(doors, "balanced"),
        until=lambda found: found == "lb0.example:9094",
        namespaces=(MAIN,),
        within=RUN,
    )
    second = pod_uid(doors)
    assert second != first
    assert advertised(doors, "inside") == f"doors-inside-0.{MAIN}.svc:9095"
    assert advertised(doors, "web") == "b0.web.example:8443"
    assert advertised(doors, "gated") == "own.gate.example:19097"
    doors.wait_for(
        "a cluster whose listeners all have addresses",
        lambda: warning(doors),
        until=lambda text: "listener" not in text,
        namespaces=(MAIN,),
    )
    assert {name: each for name, each in servers(doors).items() if name in PORTS} == {
        "balanced": "192.0.2.9:9094",
        "inside": f"doors-inside-bootstrap.{MAIN}.svc:9095",
        "web": "web.example:8443",
        "gated": "gate.example:443",
    }
    doors.wait_ready("kafkacluster/doors", namespace=MAIN)
    assert pod_uid(doors) == second


def test_objects_of_removed_listeners_are_deleted(doors: Cluster) -> None:
    """All of them, and no other."""
    spec = (doors.get("kafkacluster", "doors", namespace=MAIN) or {})["spec"]
    left = [each for each in spec["listeners"] if each["name"] in ("secure", "inside")]
    patch = json.dumps({"spec": {"listeners": left}})
    doors.kubectl("patch", "kafkacluster/doors", "-n", MAIN, "--type=merge", "-p", patch)

    def remaining() -> list[str]:
        names = doors.names("services,ingresses,tlsroutes", namespace=MAIN, selector=INSTANCE)
        return sorted(
            name for name in names
            if any(f"doors-{each}-" in name for each in ("balanced", "web", "gated", "inside"))
        )  # fmt: skip

    kept = ["doors-inside-0", "doors-inside-bootstrap"]
    doors.wait_for(
        "the objects of the listener that is left, alone",
        remaining,
        until=lambda found: [name.rpartition("/")[2] for name in found] == kept,
        namespaces=(MAIN,),
        within=RUN,
    )
