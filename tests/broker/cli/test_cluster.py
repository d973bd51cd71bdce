"""`barnabas cluster` of one broker; tests/cluster/test_tools.py stops one of several."""

from __future__ import annotations

import pytest

from barnabas_broker.testing import Broker
from tests.broker.cli.conftest import Run


@pytest.mark.kafka_topic(partitions=3)
def test_info_has_id_controller_brokers_and_counts(
    run: Run, kafka_broker: Broker, kafka_topic: str
) -> None:
    """Id, controller and brokers; how many topics and partitions."""
    reported = run("cluster", "info", "--output", "json").json()
    (broker,) = reported["brokers"]
    assert reported["cluster"] == kafka_broker.cluster_id
    assert reported["controller"] == broker["broker"]
    assert broker["address"] == kafka_broker.bootstrap_servers
    assert broker["controller"] is True
    assert reported["partitions"] >= 3
    shown = run("cluster", "info").stdout
    assert kafka_broker.cluster_id in shown
    assert kafka_broker.bootstrap_servers in shown


def test_health_of_a_healthy_cluster(run: Run) -> None:
    """Exit code 0, and a sentence."""
    assert run("cluster", "health").stdout.endswith("The cluster is healthy.\n")
    reported = run("cluster", "health", "--output", "json").json()
    assert reported["healthy"] is True
    assert reported["leaderless_partitions"] == []
