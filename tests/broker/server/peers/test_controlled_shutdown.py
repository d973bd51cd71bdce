"""A broker that stops asks the controller first, and again while something is left."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import pytest

from barnabas_broker.cluster.image import BrokerRegistration, MetadataImage
from barnabas_broker.server.peers import controlled_shutdown
from barnabas_broker.server.peers.controlled_shutdown import hand_over, hand_over_if_reachable
from barnabas_broker.server.peers.controller_client import ControllerClient
from barnabas_broker.server.peers.peers import Peers
from barnabas_kafka.errors import ErrorCode
from barnabas_kafka.protocol import codec
from barnabas_kafka.protocol.headers import decode_request_header, encode_response_header
from barnabas_kafka.protocol.messages.api_versions import ApiVersion, ApiVersionsResponse
from barnabas_kafka.protocol.messages.controlled_shutdown import (
    ControlledShutdownResponse,
    RemainingPartition,
)
from barnabas_kafka.protocol.registry import ApiKey
from barnabas_kafka.settings.broker import BrokerSettings
from tests.broker.server.peers.test_peers import against, respond

IMAGE = MetadataImage(
    cluster_id="c", controller_id=7, brokers={1: BrokerRegistration(1, (), epoch=5)}
)
VERSIONS = ApiVersionsResponse(
    api_keys=[ApiVersion(api_key=ApiKey.CONTROLLED_SHUTDOWN, min_version=0, max_version=2)]
)
LEFT = ControlledShutdownResponse(
    remaining_partitions=[RemainingPartition(topic_name="t", partition_index=3)]
)
MOVED = ControlledShutdownResponse(error_code=ErrorCode.NOT_CONTROLLER)
NEWER = ControlledShutdownResponse(error_code=9999)
DONE = ControlledShutdownResponse()


@pytest.mark.parametrize(
    ("answers", "given", "handed_over", "asked"),
    [
        ([DONE], {}, True, 1),
        ([LEFT, MOVED, DONE], {}, True, 3),
        ([NEWER, DONE], {}, True, 2),
        ([LEFT, LEFT, LEFT], {}, False, 3),
        ([LEFT], {"controlled.shutdown.max.retries": "1"}, False, 1),
        ([], {"controlled.shutdown.enable": "false"}, False, 0),
    ],
)
def test_it_asks_as_often_as_it_may(
    answers: Sequence[ControlledShutdownResponse],
    given: dict[str, str],
    handed_over: bool,
    asked: int,
) -> None:
    """Until the controller says that nothing is left."""
    remaining = list(answers)
    settings = BrokerSettings.from_mapping({"controlled.shutdown.retry.backoff.ms": "1", **given})

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while True:
            size = int.from_bytes(await reader.readexactly(4), "big")
            header, _ = decode_request_header(await reader.readexactly(size))
            if header.api_key == ApiKey.API_VERSIONS:
                respond(writer, header.correlation_id, VERSIONS)
                continue
            body = encode_response_header(header.correlation_id, 0)
            body += codec.encode(remaining.pop(0), 2)
            writer.write(len(body).to_bytes(4, "big") + body)

    async def scenario(peers: Peers) -> None:
        link = ControllerClient(peers, lambda: IMAGE)
        assert await hand_over(link, IMAGE, 1, settings) is handed_over

    against(serve, scenario)
    assert len(answers) - len(remaining) == asked


def test_it_is_given_up_where_zookeeper_is_away(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Nobody can elect other leaders then: a stop does not wait for that."""
    monkeypatch.setattr(controlled_shutdown, "UNREACHABLE_MAX_S", 0.0)
    monkeypatch.setattr(controlled_shutdown, "POLL_S", 0.0)
    ended: list[str] = []

    async def never() -> bool:
        try:
            await asyncio.get_running_loop().create_future()
        finally:
            ended.append("given up")
        return True

    assert not asyncio.run(hand_over_if_reachable(never(), reachable=lambda: False))
    assert ended == ["given up"]
    assert "Controlled shutdown given up: ZooKeeper has not been reachable" in caplog.text


def test_it_goes_on_where_zookeeper_comes_back(monkeypatch: pytest.MonkeyPatch) -> None:
    """While it can be reached the controller has the time that the settings give it."""
    monkeypatch.setattr(controlled_shutdown, "UNREACHABLE_MAX_S", 0.0)
    monkeypatch.setattr(controlled_shutdown, "POLL_S", 0.0)
    looks = 0

    async def scenario() -> bool:
        handed_over: asyncio.Future[bool] = asyncio.get_running_loop().create_future()

        def reachable() -> bool:
            nonlocal looks
            looks += 1
            if looks == 5:
                handed_over.set_result(True)
            return True

        async def handing_over() -> bool:
            return await handed_over

        return await hand_over_if_reachable(handing_over(), reachable=reachable)

    assert asyncio.run(scenario())
    assert looks >= 5


def test_an_unexpected_error_does_not_end_the_stop(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is a refusal like any other: asked again, then the broker stops without an answer."""
    asked = []

    async def ask(_: object, request: object, *_more: object, **_named: object) -> None:
        asked.append(request)
        raise ValueError("a defect")

    monkeypatch.setattr(ControllerClient, "ask", ask)
    settings = BrokerSettings({"controlled.shutdown.retry.backoff.ms": "0"})
    link = ControllerClient.__new__(ControllerClient)
    assert not asyncio.run(hand_over(link, IMAGE, 1, settings))
    assert len(asked) == 3
