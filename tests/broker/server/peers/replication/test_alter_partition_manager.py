"""Leaders ask the controller for changes of the ISR: together, by its version, one at a time."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Any
from uuid import UUID

import pytest

from barnabas_broker.cluster.image import PartitionState
from barnabas_broker.server.peers.peers import Peers, UnreachableError
from barnabas_broker.server.peers.replication.alter_partition_manager import AlterPartitionManager
from barnabas_kafka.errors import ErrorCode, KafkaError
from barnabas_kafka.ids import TopicPartition
from barnabas_kafka.protocol import codec
from barnabas_kafka.protocol.headers import decode_request_header, encode_response_header
from barnabas_kafka.protocol.messages.alter_partition import (
    AlterPartitionRequest,
    AlterPartitionResponse,
    AlterPartitionResponsePartitionData,
    AlterPartitionResponseTopicData,
)
from barnabas_kafka.protocol.messages.api_versions import ApiVersion, ApiVersionsResponse
from barnabas_kafka.protocol.registry import ApiKey
from tests.broker.server.peers.test_peers import against, receive, respond

T_ID = UUID(int=7)
WANTED = PartitionState(
    replicas=(1, 2), isr=(1, 2), leader=1, leader_epoch=5, controller_epoch=1, partition_epoch=8
)
Answer = Callable[[AlterPartitionRequest], AlterPartitionResponse]


def controller(answer: Answer, seen: list[AlterPartitionRequest], version: int = 3) -> Any:
    """A controller that knows AlterPartition up to a version."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        _, correlation_id = await receive(reader)
        apis = [ApiVersion(api_key=ApiKey.ALTER_PARTITION, min_version=0, max_version=version)]
        respond(writer, correlation_id, ApiVersionsResponse(api_keys=apis))
        while True:
            size = int.from_bytes(await reader.readexactly(4), "big")
            frame = await reader.readexactly(size)
            header, start = decode_request_header(frame)
            request, _ = codec.decode_from(AlterPartitionRequest, frame, header.api_version, start)
            seen.append(request)
            body = encode_response_header(header.correlation_id, 1) + codec.encode(
                answer(request), header.api_version
            )
            writer.write(len(body).to_bytes(4, "big") + body)

    return serve


def granted(request: AlterPartitionRequest) -> AlterPartitionResponse:
    """Everything is done, and the partition epoch one further."""
    return AlterPartitionResponse(
        topics=[
            AlterPartitionResponseTopicData(
                topic_name=topic.topic_name,
                topic_id=topic.topic_id,
                partitions=[
                    AlterPartitionResponsePartitionData(
                        partition_index=each.partition_index,
                        leader_id=1,
                        leader_epoch=each.leader_epoch,
                        isr=each.new_isr or [one.broker_id for one in each.new_isr_with_epochs],
                        partition_epoch=each.partition_epoch + 1,
                    )
                    for each in topic.partitions
                ],
            )
            for topic in request.topics
        ]
    )


def tell(
    serve: Any, scenario: Callable[[AlterPartitionManager], Awaitable[None]], who: int = 7
) -> None:
    """A scenario with broker `who` as the controller; only 7 is there."""

    async def with_peers(peers: Peers) -> None:
        changes = AlterPartitionManager(
            1, peers, controller_id=lambda: who, broker_epoch=lambda: 33
        )
        try:
            await scenario(changes)
        finally:
            await changes.stop()

    against(serve, with_peers)


@pytest.mark.parametrize("version", [0, 1, 2, 3])
def test_changes_travel_together(version: int) -> None:
    """Whatever the controller's version; what comes while one is under way goes with the next."""
    seen: list[AlterPartitionRequest] = []

    async def scenario(changes: AlterPartitionManager) -> None:
        states = await asyncio.gather(
            *(changes.alter(TopicPartition("t", index), T_ID, WANTED) for index in range(3))
        )
        assert {(state.isr, state.partition_epoch) for state in states} == {((1, 2), 9)}
        assert len(seen) <= 2
        assert {request.broker_epoch for request in seen} == {33}

    tell(controller(granted, seen, version), scenario)


@pytest.mark.parametrize(("version", "known"), [(2, []), (3, [(1, 33), (2, 41)])])
def test_broker_epochs_of_the_isr_are_sent(version: int, known: list[tuple[int, int]]) -> None:
    """Of this broker and of the followers, to a controller that knows what they are for."""
    seen: list[AlterPartitionRequest] = []

    async def scenario(changes: AlterPartitionManager) -> None:
        await changes.alter(TopicPartition("t", 0), T_ID, WANTED, {2: 41, 3: 42})

    tell(controller(granted, seen, version), scenario)
    (request,) = seen
    (reported,) = request.topics[0].partitions
    assert [(it.broker_id, it.broker_epoch) for it in reported.new_isr_with_epochs] == known


def test_a_change_wanted_in_the_moment_of_an_answer_is_sent() -> None:
    """Nobody else has to ask before it goes: the last answer wakes whoever wants the next."""
    seen: list[AlterPartitionRequest] = []

    async def scenario(changes: AlterPartitionManager) -> None:
        async with asyncio.timeout(60):
            for index in range(3):
                await changes.alter(TopicPartition("t", index), T_ID, WANTED)

    tell(controller(granted, seen), scenario)
    assert [request.topics[0].partitions[0].partition_index for request in seen] == [0, 1, 2]


def test_a_change_of_a_leadership_that_is_over_waits_no_more() -> None:
    """Another change of the partition took its place before it was sent."""
    seen: list[AlterPartitionRequest] = []

    async def scenario(changes: AlterPartitionManager) -> None:
        tp = TopicPartition("t", 0)
        async with asyncio.timeout(60):
            earlier, later = await asyncio.gather(
                changes.alter(tp, T_ID, WANTED),
                changes.alter(tp, T_ID, replace(WANTED, leader_epoch=6)),
                return_exceptions=True,
            )
        assert isinstance(earlier, UnreachableError)
        assert isinstance(later, PartitionState)
        assert later.leader_epoch == 6

    tell(controller(granted, seen), scenario)
    assert len(seen) == 1


def test_a_refusal_is_of_one_partition() -> None:
    """The others are changed."""

    def one_refused(request: AlterPartitionRequest) -> AlterPartitionResponse:
        response = granted(request)
        for each in response.topics[0].partitions:
            if each.partition_index == 1:
                each.error_code = ErrorCode.INELIGIBLE_REPLICA
        return response

    async def scenario(changes: AlterPartitionManager) -> None:
        good, bad = await asyncio.gather(
            changes.alter(TopicPartition("t", 0), T_ID, WANTED),
            changes.alter(TopicPartition("t", 1), T_ID, WANTED),
            return_exceptions=True,
        )
        assert isinstance(good, PartitionState)
        assert isinstance(bad, KafkaError)
        assert bad.code is ErrorCode.INELIGIBLE_REPLICA

    tell(controller(one_refused, []), scenario)


def test_a_top_level_error_fails_each_change() -> None:
    """NOT_CONTROLLER and the like: whoever asked tries again."""

    def refused(_: AlterPartitionRequest) -> AlterPartitionResponse:
        return AlterPartitionResponse(error_code=ErrorCode.NOT_CONTROLLER)

    async def scenario(changes: AlterPartitionManager) -> None:
        with pytest.raises(KafkaError) as caught:
            await changes.alter(TopicPartition("t", 0), T_ID, WANTED)
        assert caught.value.code is ErrorCode.NOT_CONTROLLER

    tell(controller(refused, []), scenario)


@pytest.mark.parametrize("who", [-1, 8])
def test_without_a_controller_nothing_is_asked(who: int) -> None:
    """Nobody is known to be it, or it is not alive."""

    async def scenario(changes: AlterPartitionManager) -> None:
        with pytest.raises(UnreachableError):
            await changes.alter(TopicPartition("t", 0), T_ID, WANTED)

    tell(controller(granted, []), scenario, who)


@pytest.mark.parametrize("silent", [False, True])
def test_a_controller_that_hangs_is_left_when_another_is_elected(silent: bool) -> None:
    """Long before the request to it would have timed out; `silent` ones say nothing at all."""
    controllers = [7]
    asked = asyncio.Event()

    async def hangs(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        _, correlation_id = await receive(reader)
        if not silent:
            apis = [ApiVersion(api_key=ApiKey.ALTER_PARTITION, min_version=0, max_version=3)]
            respond(writer, correlation_id, ApiVersionsResponse(api_keys=apis))
            await receive(reader)
        asked.set()
        await reader.read()

    async def scenario(peers: Peers) -> None:
        changes = AlterPartitionManager(
            1, peers, controller_id=lambda: controllers[-1], broker_epoch=lambda: 33
        )
        asking = asyncio.ensure_future(changes.alter(TopicPartition("t", 0), T_ID, WANTED))
        await asked.wait()
        changes.look_at_controller()
        assert not asking.done()
        controllers.append(8)
        changes.look_at_controller()
        with pytest.raises(UnreachableError, match="not the controller any more"):
            await asking
        await changes.stop()

    against(hangs, scenario)


def test_a_cancelled_sender_fails_all_changes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The changes in flight and those queued behind them are told, and the next one is sent."""
    t0, t1 = TopicPartition("t", 0), TopicPartition("t", 1)

    async def scenario(changes: AlterPartitionManager) -> None:
        queued: list[asyncio.Future[PartitionState]] = []

        async def cancelled(_batch: object) -> object:
            queued.append(asyncio.ensure_future(changes.alter(t1, T_ID, WANTED)))
            await asyncio.sleep(0)
            raise asyncio.CancelledError

        with monkeypatch.context() as patch:
            patch.setattr(changes, "_send", cancelled)
            with pytest.raises(UnreachableError, match="was cancelled"):
                await changes.alter(t0, T_ID, WANTED)
            with pytest.raises(UnreachableError, match="has ended"):
                await queued[0]
        assert (await changes.alter(t0, T_ID, WANTED)).partition_epoch == 9

    tell(controller(granted, []), scenario)
