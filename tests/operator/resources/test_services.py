"""Services and budgets beyond what the golden manifests show."""

from __future__ import annotations

from barnabas_operator.api.reading import read_cluster
from barnabas_operator.resources import services
from tests.operator import examples

OWNER = read_cluster(examples.cluster()).meta


def test_ports_of_the_nodes_are_given_or_left_open() -> None:
    """A port that is not given is not written: server-side apply would fight over it."""
    made = services.node_port(
        "s", owner=OWNER, labels={}, selector={}, ports=[("a", 9094, 30001), ("b", 9095, None)]
    )
    assert [port.get("nodePort") for port in made["spec"]["ports"]] == [30001, None]
    assert "nodePort" not in made["spec"]["ports"][1]


def test_peers_find_each_other_before_they_are_ready() -> None:
    """An ensemble whose members wait to be ready to be found would never be."""
    made = services.headless("s", owner=OWNER, labels={}, selector={}, ports={"a": 1})
    assert made["spec"]["publishNotReadyAddresses"] is True
