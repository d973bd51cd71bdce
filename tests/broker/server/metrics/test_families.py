"""The numbers of a running broker under the names that dashboards ask for."""

import http.client
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from prometheus_client.metrics_core import Metric
from prometheus_client.parser import text_string_to_metric_families

from barnabas_broker.server.metrics.families import SLICE, sliced
from barnabas_broker.server.metrics.waiting import Waits
from barnabas_broker.server.node.broker_server import BrokerServer
from barnabas_broker.server.requests.api_metrics import RequestMetrics
from barnabas_broker.zk.session_counts import SessionCounts
from barnabas_kafka.errors import ErrorCode
from barnabas_kafka.protocol.messages.alter_client_quotas import (
    AlterClientQuotasRequest,
    AlterClientQuotasRequestEntryData,
    EntityData,
    OpData,
)
from barnabas_kafka.protocol.messages.metadata import MetadataRequest
from barnabas_kafka.records.builder import build_batch
from tests.broker.server.running import Wire, port_of, running_node
from tests.waiting import ANSWER, seconds

DOCUMENT = Path(__file__).parents[4] / "docs" / "operations" / "metrics.md"


def scrape(node: BrokerServer) -> dict[str, Metric]:
    """What Prometheus would see, by the names of families."""
    assert node.admin is not None
    port, limit_s = node.admin.server.server_port, seconds(ANSWER)
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=limit_s)
    connection.request("GET", "/metrics")
    text = connection.getresponse().read().decode()
    connection.close()
    return {family.name: family for family in text_string_to_metric_families(text)}


def value(families: dict[str, Metric], name: str, **labels: str) -> float:
    """The one sample of that name with just those labels."""
    [found] = [
        sample.value
        for family in families.values()
        for sample in family.samples
        if sample.name == name and sample.labels == labels
    ]
    return found


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrokerServer]:
    """A broker with an admin port that has served a little."""
    settings = {"barnabas.admin.listener": "127.0.0.1:0"}
    with running_node(tmp_path_factory.mktemp("metrics"), settings) as node:
        with Wire(port_of(node)) as wire:
            wire.create_topic("counted", partitions=2)
            records = [(1_000, None, b"x" * 100, ())] * 5
            wire.produce("counted", build_batch(records))
            wire.produce("counted", b"not a batch at all, but long enough to be looked at" * 3)
            wire.fetch("counted")
            wire.ask(MetadataRequest(topics=None), 9)
        yield node


def test_traffic_of_a_topic_and_of_all(node: BrokerServer) -> None:
    """Records and bytes in, for the topic and, without a label, for all topics."""
    found = scrape(node)
    prefix = "kafka_server_brokertopicmetrics_"
    for labels in ({}, {"topic": "counted"}):
        assert value(found, f"{prefix}messagesin_total", **labels) == 5
        assert value(found, f"{prefix}bytesin_total", **labels) > 500
        assert value(found, f"{prefix}totalproducerequests_total", **labels) == 2
        assert value(found, f"{prefix}failedproducerequests_total", **labels) == 1
        assert value(found, f"{prefix}bytesrejected_total", **labels) == 153
        assert value(found, f"{prefix}totalfetchrequests_total", **labels) == 1
        assert value(found, f"{prefix}bytesout_total", **labels) > 500


def test_requests_by_api_and_version(node: BrokerServer) -> None:
    """Each request is counted under its name and version, with its time."""
    found = scrape(node)
    name = "kafka_network_requestmetrics_requests_total"
    assert value(found, name, request="Metadata", version="9") == 1
    times = "kafka_network_requestmetrics_totaltimems"
    assert value(found, f"{times}_count", request="Fetch") == 1
    assert 0 < value(found, times, request="Metadata", quantile="0.5") < 10_000


def test_errors_by_api_and_code(node: BrokerServer) -> None:
    """A refused batch is counted with its error."""
    found = scrape(node)
    name = "kafka_network_requestmetrics_errors_total"
    assert value(found, name, request="Produce", error="CORRUPT_MESSAGE") == 1


def test_partitions_and_the_cluster(node: BrokerServer) -> None:
    """What a dashboard shows first: leaders, under-replicated and offline partitions."""
    found = scrape(node)
    assert value(found, "kafka_server_replicamanager_leadercount") == 2
    assert value(found, "kafka_server_replicamanager_underreplicatedpartitions") == 0
    assert value(found, "kafka_controller_kafkacontroller_activecontrollercount") == 1
    assert value(found, "kafka_controller_kafkacontroller_offlinepartitionscount") == 0
    assert value(found, "kafka_log_log_logendoffset", topic="counted", partition="0") == 5
    assert value(found, "kafka_log_log_size", topic="counted", partition="0") > 500
    assert value(found, "kafka_log_log_numlogsegments", topic="counted", partition="1") == 1


def test_counters_only_grow(node: BrokerServer) -> None:
    """Looking does not change what is seen, beside the looks themselves."""
    first, second = scrape(node), scrape(node)
    for name, family in first.items():
        if family.type == "counter" and name.startswith("kafka_"):
            after = {str(each.labels): each.value for each in second[name].samples}
            assert all(after[str(each.labels)] >= each.value for each in family.samples), name


def test_metrics_of_a_deleted_topic_are_removed(tmp_path: Path) -> None:
    """Topics that come and go do not pile up in the metrics."""
    from barnabas_kafka.protocol.messages.delete_topics import DeleteTopicsRequest

    settings = {"barnabas.admin.listener": "127.0.0.1:0"}
    with running_node(tmp_path, settings) as node, Wire(port_of(node)) as wire:
        wire.create_topic("gone")
        assert "gone" in str(scrape(node))
        wire.ask(DeleteTopicsRequest(topic_names=["gone"], timeout_ms=5000), 4)
        assert "gone" not in str(scrape(node))


def test_quotas_of_clients(node: BrokerServer) -> None:
    """What a client uses, and how long it was throttled; nothing of who has no quota."""
    entity = [EntityData(entity_type="user", entity_name="ANONYMOUS")]
    rate = OpData(key="producer_byte_rate", value=100.0)
    entry = AlterClientQuotasRequestEntryData(entity=entity, ops=[rate])
    with Wire(port_of(node)) as wire:
        wire.ask(AlterClientQuotasRequest(entries=[entry]), 1)
        wire.produce("counted", build_batch([(1_000, None, b"x" * 5000, ())]))
    found = scrape(node)
    labels = {"user": "ANONYMOUS", "client_id": ""}
    assert value(found, "kafka_server_produce_byte_rate", **labels) > 100
    assert value(found, "kafka_server_produce_throttle_time", **labels) > 0
    assert not found["kafka_server_fetch_byte_rate"].samples


def test_every_family_is_documented(node: BrokerServer) -> None:
    """`docs/operations/metrics.md` names what there is, and nothing else."""
    reported = set(re.findall(r"`((?:kafka|barnabas)_[a-z_]+)`", DOCUMENT.read_text("utf-8")))
    families = list(scrape(node).values())
    # A broker that has a ZooKeeper has these besides.
    families += Waits(None, SessionCounts()).families(0)
    there = {
        f"{family.name}_total" if family.type == "counter" else family.name
        for family in families
        if family.name.startswith(("kafka_", "barnabas_"))
    }
    assert reported == there


def test_slices_lose_nothing() -> None:
    """Many partitions are looked at in parts, each once."""
    items = list(range(2 * SLICE + 1))
    parts = list(sliced(items))
    assert [len(part) for part in parts] == [SLICE, SLICE, 1]
    assert [item for part in parts for item in part] == items


def test_requests_are_counted_by_version_and_timed() -> None:
    """Each request is in the count of its version, and its time among the times of its API."""
    metrics = RequestMetrics()
    fetches = metrics.of("Fetch")
    fetches.served(12, 1_500_000)
    fetches.served(12, 500_000)
    fetches.served(4, 1_000_000)
    assert metrics.of("Fetch").versions == {12: 2, 4: 1}
    assert (fetches.times.count, fetches.times.sum) == (3, 3_000)


def test_requests_that_were_served_together_count_each() -> None:
    """They took the same time, and had the same version."""
    metrics = RequestMetrics().of("Produce")
    metrics.served(9, 2_000_000, requests=3)
    assert metrics.versions == {9: 3}
    assert (metrics.times.count, metrics.times.sum) == (3, 6_000)
    assert metrics.times.quantiles(0.1, 1.0) == [metrics.times.quantiles(1.0)[0]] * 2


def test_errors_are_counted_by_code() -> None:
    """A dashboard can tell a full disk from a wrong leader."""
    produces = RequestMetrics().of("Produce")
    produces.failed(ErrorCode.KAFKA_STORAGE_ERROR)
    produces.failed(ErrorCode.NOT_LEADER_OR_FOLLOWER)
    produces.failed(ErrorCode.KAFKA_STORAGE_ERROR)
    assert produces.errors == {
        ErrorCode.KAFKA_STORAGE_ERROR: 2,
        ErrorCode.NOT_LEADER_OR_FOLLOWER: 1,
    }
