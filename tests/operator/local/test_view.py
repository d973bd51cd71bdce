"""How a cluster is told of: for programs, and while nothing runs."""

from __future__ import annotations

import pytest

from barnabas_operator.local.state import BrokerRecord, Record
from barnabas_operator.local.view import KUBERNETES_ONLY, look, with_statuses
from tests.operator.local.laptop import Laptop, cluster, pipeline, topic


@pytest.fixture
def record(laptop: Laptop) -> Record:
    """Of a cluster that never ran."""
    documents = [cluster(), topic(), pipeline()]
    brokers = {0: BrokerRecord()}
    file = str(laptop.file)
    return Record(cluster="quickstart", file=file, documents=documents, brokers=brokers)


def test_nothing_runs(laptop: Laptop, record: Record) -> None:
    """Nothing is Ready, and each says what it waits for."""
    seen = look(record, laptop.state)
    reasons = {name: found[0].reason for name, found in seen.conditions().items()}
    assert reasons == {
        "KafkaCluster quickstart": "Stopped",
        "KafkaTopic packages": "WaitingForCluster",
        "KafkaPipeline packages-to-parquet": "Stopped",
    }
    reported = seen.as_json()
    assert reported["ready"] is False
    assert reported["brokers"][0]["running"] is False
    assert reported["status"]["listeners"] == []


def test_fields_for_kubernetes_only_are_reported(laptop: Laptop, record: Record) -> None:
    """The same file asks for ZooKeeper, disks and memory there."""
    warning = look(record, laptop.state).status.conditions[-1]
    assert (warning.type, warning.message) == ("Warning", KUBERNETES_ONLY)


def test_statuses_are_remembered(laptop: Laptop, record: Record) -> None:
    """With the times at which conditions changed, which looking again does not change."""
    with_statuses(record, look(record, laptop.state))
    assert all(document["status"]["conditions"] for document in record.documents)
    ready = record.documents[0]["status"]["conditions"][0]
    ready["lastTransitionTime"] = "2026-01-01T00:00:00Z"
    again = look(record, laptop.state)
    assert again.status.conditions[0].last_transition_time == "2026-01-01T00:00:00Z"
