"""Markers that other brokers are to write, where the request for them fails."""

import asyncio

from barnabas_broker.cluster.image import MetadataImage
from barnabas_broker.coordinator.results import Producer
from barnabas_broker.coordinator.transaction.markers import Marker
from barnabas_broker.server.peers.peers import Peers
from barnabas_broker.server.peers.transaction_marker_channel_manager import (
    TransactionMarkerChannelManager,
)
from barnabas_kafka.errors import ErrorCode
from barnabas_kafka.ids import TopicPartition
from barnabas_kafka.protocol.messages.api_versions import ApiVersionsResponse
from tests.broker.server.peers.test_peers import against, receive, respond

PARTITIONS = [TopicPartition("t", 0), TopicPartition("t", 1)]


def reported(leader: int, api_versions_error: int) -> dict[TopicPartition, ErrorCode]:
    """What is told of each partition, by a leader that answers ApiVersions with this error."""
    heard: dict[TopicPartition, ErrorCode] = {}

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        _, correlation_id = await receive(reader)
        respond(writer, correlation_id, ApiVersionsResponse(error_code=api_versions_error))
        await reader.read()

    async def scenario(peers: Peers) -> None:
        image = MetadataImage(cluster_id="c")
        others = TransactionMarkerChannelManager(
            1, image=lambda: image, markers=peers, asking=peers
        )
        marker = Marker(Producer(7, 1), True, 4)
        try:
            await others.write(leader, marker, PARTITIONS, heard.__setitem__)
        finally:
            await others.stop()

    against(serve, scenario)
    return heard


def test_markers_to_an_unavailable_leader_fail() -> None:
    """Each partition is told so: it is away, or knows no version, or says what nobody knows."""
    unwritten = dict.fromkeys(PARTITIONS, ErrorCode.NETWORK_EXCEPTION)
    assert reported(8, 0) == unwritten
    assert reported(7, 0) == unwritten
    assert reported(7, ErrorCode.CLUSTER_AUTHORIZATION_FAILED) == unwritten
    assert reported(7, 9999) == unwritten
