"""Which versions brokers use among themselves, by what Apache's own code says."""

from pathlib import Path
from typing import Any

import pytest

from barnabas_broker.cluster.inter_broker import asks_controller, newest_versions
from barnabas_kafka.protocol import codec
from barnabas_kafka.protocol.messages.leader_and_isr import (
    LeaderAndIsrPartitionState,
    LeaderAndIsrRequest,
    LeaderAndIsrTopicState,
)
from barnabas_kafka.protocol.messages.offset_for_leader_epoch import OffsetForLeaderEpochRequest
from barnabas_kafka.protocol.messages.stop_replica import (
    StopReplicaPartitionState,
    StopReplicaRequest,
    StopReplicaTopicState,
)
from barnabas_kafka.protocol.messages.update_metadata import (
    UpdateMetadataPartitionState,
    UpdateMetadataRequest,
    UpdateMetadataTopicState,
)
from barnabas_kafka.protocol.registry import ApiKey
from barnabas_kafka.settings import broker as keys
from barnabas_kafka.settings.broker import BrokerSettings
from barnabas_kafka.settings.metadata_version import MetadataVersion

FACTS = Path(__file__).parent / "metadata-versions-3.9.1.tsv"
OLDEST = MetadataVersion.parse("2.6")


def facts() -> list[dict[str, str]]:
    """One row for each metadata version; `tests/oracle/java/MetadataVersions.java` prints them."""
    head, *rows = (line.split("\t") for line in FACTS.read_text().splitlines())
    return [dict(zip(head, row, strict=True)) for row in rows]


@pytest.mark.parametrize("fact", facts(), ids=lambda fact: str(fact["version"]))
def test_versions_are_those_of_apache(fact: dict[str, str]) -> None:
    """From 2.6 on; what is older is spoken as that."""
    version = MetadataVersion.parse(fact["version"])
    settings = BrokerSettings.from_mapping(
        {keys.INTER_BROKER_PROTOCOL_VERSION.name: fact["version"]}
    )
    assert asks_controller(settings) is (fact["asks controller"] == "true")
    newest = newest_versions(version)
    if version < OLDEST:
        assert newest == newest_versions(OLDEST)
        return
    assert newest[ApiKey.FETCH] == int(fact["Fetch"])
    assert newest[ApiKey.LIST_OFFSETS] == int(fact["ListOffsets"])
    assert newest[ApiKey.OFFSET_FOR_LEADER_EPOCH] == int(fact["OffsetForLeaderEpoch"])
    assert newest.get(ApiKey.WRITE_TXN_MARKERS, 1) == int(fact["WriteTxnMarkers"])
    assert newest.get(ApiKey.ALTER_PARTITION, 3) == (3 if fact["topic ids"] == "true" else 1)


@pytest.mark.parametrize(
    ("spoken", "leader_and_isr", "update_metadata", "stop_replica"),
    [
        ("2.6", 4, 6, 3),
        ("2.7", 4, 6, 3),
        ("2.8-IV0", 4, 6, 3),
        ("2.8", 5, 7, 3),
        ("3.1", 5, 7, 3),
        ("3.2", 6, 7, 3),
        ("3.3", 6, 7, 3),
        ("3.4", 7, 8, 4),
        ("3.9", 7, 8, 4),
    ],
)
def test_controller_request_versions_by_metadata_version(
    spoken: str, leader_and_isr: int, update_metadata: int, stop_replica: int
) -> None:
    """By Apache's ControllerChannelManager."""
    newest = newest_versions(MetadataVersion.parse(spoken))
    assert newest[ApiKey.LEADER_AND_ISR] == leader_and_isr
    assert newest[ApiKey.UPDATE_METADATA] == update_metadata
    assert newest[ApiKey.STOP_REPLICA] == stop_replica


STATE: Any = {"partition_index": 0, "leader": 1, "leader_epoch": 3, "isr": [1, 2]}


@pytest.mark.parametrize(
    "request_",
    [
        LeaderAndIsrRequest(
            topic_states=[
                LeaderAndIsrTopicState(
                    topic_name="t",
                    partition_states=[
                        LeaderAndIsrPartitionState(**STATE, adding_replicas=[3], is_new=True)
                    ],
                )
            ]
        ),
        UpdateMetadataRequest(
            topic_states=[
                UpdateMetadataTopicState(
                    topic_name="t",
                    partition_states=[UpdateMetadataPartitionState(**STATE, offline_replicas=[2])],
                )
            ]
        ),
        StopReplicaRequest(
            topic_states=[
                StopReplicaTopicState(
                    topic_name="t",
                    partition_states=[
                        StopReplicaPartitionState(leader_epoch=3, delete_partition=True)
                    ],
                )
            ]
        ),
        OffsetForLeaderEpochRequest(replica_id=1),
    ],
    ids=lambda each: type(each).__name__,
)
def test_the_oldest_versions_say_what_is_to_be_said(request_: Any) -> None:
    """Nothing that is sent is missing from them."""
    version = newest_versions(MetadataVersion.parse("0.8.0"))[ApiKey(request_.api_key)]
    decoded = codec.decode(type(request_), codec.encode(request_, version), version)
    assert decoded == request_
