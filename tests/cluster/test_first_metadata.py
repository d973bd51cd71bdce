"""A broker that has just come up, and that no controller has told of the cluster yet."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from http.client import HTTPConnection

import pytest

from barnabas_kafka.errors import ErrorCode
from barnabas_kafka.protocol.messages.describe_cluster import (
    DescribeClusterRequest,
    DescribeClusterResponse,
)
from barnabas_kafka.protocol.messages.metadata import MetadataResponse
from tests.clients.wire import Wire, frame, metadata
from tests.cluster.running import Cluster
from tests.oracle.apache import free_port
from tests.waiting import ANSWER, seconds, wait_for


@pytest.fixture(scope="module")
def three(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """Three brokers, with probes."""
    cluster = Cluster(tmp_path_factory.mktemp("cluster"))
    for broker in cluster.brokers.values():
        broker.settings["barnabas.admin.listener"] = f"127.0.0.1:{free_port()}"
    with cluster as started:
        yield started


def ready(cluster: Cluster, broker: int) -> tuple[int, str]:
    """What its readiness probe answers."""
    host, port = cluster.brokers[broker].settings["barnabas.admin.listener"].split(":")
    connection = HTTPConnection(host, int(port), timeout=seconds(ANSWER))
    try:
        connection.request("GET", "/ready")
        answer = connection.getresponse()
        return answer.status, answer.read().decode()
    finally:
        connection.close()


def test_clients_wait_for_the_first_metadata(cluster: Cluster, topic: str) -> None:
    """They are not told of a cluster without brokers, which some take for the truth.

    Nor is the broker ready before; whoever waits is answered as soon as it knows.
    """
    cluster.create(topic, 3)
    controller = cluster.known_controller()
    late = next(broker for broker in cluster.brokers if broker != controller)
    cluster.brokers[late].stop()
    with ThreadPoolExecutor() as threads:
        with cluster.frozen(controller):
            started = threads.submit(cluster.brokers[late].start)
            probe = wait_for(
                "a reason why the broker is not ready",
                lambda: ready(cluster, late),
                until=lambda found: "controller" in found[1],
                retry=(OSError,),
            )
            assert probe == (503, "waiting for the first UpdateMetadata from the controller\n")
            asking, describing = (Wire(cluster.address(late)) for _ in range(2))
            asking.send(frame(metadata(topic), 9))
            describing.send(frame(DescribeClusterRequest(), 0))
        with asking, describing:
            known = asking.receive(MetadataResponse, 9)
            described = describing.receive(DescribeClusterResponse, 0)
        started.result()
    assert {it.node_id for it in known.brokers} == {*cluster.brokers}
    assert known.controller_id == controller
    assert described.error_code == ErrorCode.NONE
    assert {it.broker_id for it in described.brokers} == {*cluster.brokers}
    assert ready(cluster, late)[0] == 200
