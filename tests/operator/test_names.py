"""Names and labels."""

from __future__ import annotations

from barnabas_operator.names import ClusterNames, PipelineNames

LONGEST = "c" * 40


def test_addresses() -> None:
    """What others are told."""
    names = ClusterNames("c", "ns")
    assert names.bootstrap_server(9092) == "c-bootstrap.ns.svc:9092"
    host = "c-zookeeper-{}.c-zookeeper-nodes.ns.svc:2181"
    assert names.zookeeper_connect(2) == f"{host.format(0)},{host.format(1)}/c"
    assert PipelineNames("p", "ns").status_url == "http://p-pipeline.ns.svc:8080/status"


def test_the_longest_name_still_makes_valid_ones() -> None:
    """63 characters for a Service; of a StatefulSet 52, for pods get a revision of 11 as label."""
    names = ClusterNames(LONGEST, "ns")
    sets = (names.zookeeper, names.broker, PipelineNames(LONGEST, "ns").all)
    assert max(map(len, sets)) <= 52
    services = (names.zookeeper_nodes, names.broker_nodes, names.bootstrap, names.external(999))
    assert max(map(len, services)) <= 63


def test_selectors_are_part_of_the_labels() -> None:
    """A pod that its own StatefulSet does not select would be refused."""
    names = ClusterNames("c", "ns")
    assert names.selector("broker").items() <= names.labels("broker").items()
    pipeline = PipelineNames("p", "ns")
    assert pipeline.selector().items() <= pipeline.labels("c").items()
