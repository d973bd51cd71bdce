"""Which brokers are restarted for their addresses."""

from __future__ import annotations

from typing import Any

import pytest

from barnabas_operator.api.reading import read_cluster
from barnabas_operator.names import FIELD_MANAGER
from barnabas_operator.plan.addresses import node_ports, readdressed
from barnabas_operator.plan.rolling import PodView
from tests.operator import examples

HOST = "quickstart-broker-0.quickstart-broker-nodes.default.svc"
PLAIN = f"PLAIN://{HOST}:9092"
BEFORE, WRITTEN, AFTER = (f"2026-01-01T00:0{n}:00Z" for n in (0, 1, 2))


def _cluster(*listeners: dict[str, Any]) -> Any:
    return read_cluster(examples.cluster(listeners=[{"name": "plain", "port": 9092}, *listeners]))


BALANCED = {"name": "lb", "port": 9094, "type": "loadbalancer"}


def _objects(address: str, written: str = WRITTEN) -> dict[tuple[str, str], Any]:
    entry = {"manager": FIELD_MANAGER, "operation": "Apply", "time": written}
    ingress = [{"ip": address}] if address else []
    return {
        ("ConfigMap", "quickstart-broker-addresses"): {"metadata": {"managedFields": [entry]}},
        ("Service", "quickstart-lb-0"): {"status": {"loadBalancer": {"ingress": ingress}}},
    }


def _pod(created: str = BEFORE) -> PodView:
    return PodView(
        name="quickstart-broker-0", uid="u", revision="r", ready=True, created=created,
        node_address="172.18.0.3",
    )  # fmt: skip


@pytest.mark.parametrize(
    ("annotation", "address", "created", "due"),
    [
        (PLAIN, "192.0.2.1", BEFORE, True),
        (f"{PLAIN},LB://192.0.2.9:9094", "192.0.2.1", BEFORE, True),
        (f"{PLAIN},LB://192.0.2.1:9094", "192.0.2.1", BEFORE, False),
        # It has read what is written: another restart would change nothing.
        (PLAIN, "192.0.2.1", AFTER, False),
        # An address that has gone is not worth a restart; it may come back.
        (f"{PLAIN},LB://192.0.2.1:9094", "", BEFORE, False),
        # The broker did not say.
        (None, "192.0.2.1", BEFORE, False),
    ],
)
def test_a_broker_started_before_its_addresses_were_known_is_restarted(
    annotation: str | None, address: str, created: str, due: bool
) -> None:
    """It advertises too little until then."""
    advertised = {} if annotation is None else {0: annotation}
    (pod,) = readdressed(_cluster(BALANCED), _objects(address), [_pod(created)], advertised)
    assert (pod.restart != "") is due


def test_places_are_filled_in_as_the_broker_does() -> None:
    """A node's address and port beside an address that Kubernetes gave."""
    node = {"name": "np", "port": 9095, "type": "nodeport", "nodePort": 31000}
    annotation = f"{PLAIN},LB://192.0.2.1:9094,NP://172.18.0.3:31000"
    cluster = _cluster(BALANCED, node)
    (pod,) = readdressed(cluster, _objects("192.0.2.1"), [_pod()], {0: annotation})
    assert pod.restart == ""
    unknown = {**node}
    del unknown["nodePort"]
    (pod,) = readdressed(_cluster(BALANCED, unknown), _objects("192.0.2.1"), [_pod()], {0: PLAIN})
    assert pod.restart == ""


def test_nothing_is_asked_of_a_cluster_whose_addresses_follow_from_ids() -> None:
    """Its template changes with them."""
    (pod,) = readdressed(_cluster(), _objects("192.0.2.1"), [_pod()], {0: "OTHER://x:1"})
    assert pod.restart == ""


def test_ports_of_the_nodes_are_those_of_the_service_unless_they_are_given() -> None:
    """What the resource says counts before what the Service still has."""
    chosen = {"name": "a", "port": 9095, "type": "nodeport"}
    given = {"name": "b", "port": 9096, "type": "nodeport", "nodePort": 31000}
    ports = [{"name": "a", "nodePort": 30001}, {"name": "b", "nodePort": 30002}]
    service = {("Service", "quickstart-broker-0-external"): {"spec": {"ports": ports}}}
    assert node_ports(_cluster(chosen, given), service) == {"a": 30001, "b": 31000}
    # What another program has left of a Service ends no pass.
    ports.append({"nodePort": 30003})
    assert node_ports(_cluster(chosen, given), service) == {"a": 30001, "b": 31000, "": 30003}
