"""`barnabas cluster-id`."""

from barnabas_broker.testing import Broker
from tests.broker.cli.conftest import Run


def test_the_id_alone_is_printed(run: Run, kafka_broker: Broker) -> None:
    """For scripts: nothing but the id."""
    assert run("cluster-id").stdout == f"{kafka_broker.cluster_id}\n"
