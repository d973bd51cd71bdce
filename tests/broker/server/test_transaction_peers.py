"""Other brokers as transactions need them; see tests/cluster for real ones."""

from __future__ import annotations

import asyncio
from typing import Any, cast

import pytest

from barnabas_broker.cluster.image import MetadataImage
from barnabas_broker.coordinator.transaction.markers import Marker
from barnabas_broker.coordinator.turns import Producer
from barnabas_broker.server.peers import PeerError, Peers
from barnabas_broker.server.transaction_peers import TransactionPeers
from barnabas_kafka.errors import ErrorCode
from barnabas_kafka.ids import TopicPartition

PARTITIONS = [TopicPartition("t", 0), TopicPartition("__consumer_offsets", 3)]


class Failing:
    """A broker that cannot be asked."""

    def __init__(self, error: Exception) -> None:
        self._error = error

    async def send(self, *_: object, **__: object) -> Any:
        """Raise the error."""
        raise self._error

    def close(self) -> None:
        """Nothing is open."""


@pytest.mark.parametrize("error", [PeerError("away"), ValueError("a bug")], ids=str)
def test_markers_that_were_not_sent_do_not_count_as_written(
    caplog: pytest.LogCaptureFixture, error: Exception
) -> None:
    """Whatever the reason: each partition is answered with an error that is retried."""

    async def story() -> None:
        peers = cast("Peers", Failing(error))
        others = TransactionPeers(
            1, image=lambda: MetadataImage(cluster_id="c"), markers=peers, asking=peers
        )
        heard: dict[TopicPartition, ErrorCode] = {}
        await others.write(7, Marker(Producer(5, 0), True, 0), PARTITIONS, heard.__setitem__)
        assert heard == dict.fromkeys(PARTITIONS, ErrorCode.NETWORK_EXCEPTION)
        await others.stop()

    asyncio.run(story())
    assert str(error) in caplog.text
