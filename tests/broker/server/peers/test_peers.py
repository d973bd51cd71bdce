"""Requests to other brokers: answered in order, bounded, and with errors that say what happened."""

import asyncio
import socket
import threading
import tracemalloc
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any

import pytest

from barnabas_broker.cluster.image import NO_CONTROLLER, Endpoint, MetadataImage
from barnabas_broker.server.node.broker_server import BrokerServer
from barnabas_broker.server.peers import peers as subject
from barnabas_broker.server.peers.controller_client import ControllerClient
from barnabas_broker.server.peers.peers import Peers, UnreachableError, UnsupportedError
from barnabas_kafka.protocol import codec
from barnabas_kafka.protocol.headers import decode_request_header, encode_response_header
from barnabas_kafka.protocol.messages.api_versions import ApiVersion, ApiVersionsResponse
from barnabas_kafka.protocol.messages.list_groups import (
    ListedGroup,
    ListGroupsRequest,
    ListGroupsResponse,
)
from barnabas_kafka.protocol.messages.metadata import MetadataRequest, MetadataResponse
from barnabas_kafka.protocol.registry import ApiKey
from barnabas_kafka.protocol.schema import Message
from tests.broker.server.running import port_of
from tests.waiting import ANSWER, seconds

Serve = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]
Scenario = Callable[[Peers], Awaitable[None]]
VERSIONS = ApiVersionsResponse(
    api_keys=[
        ApiVersion(api_key=ApiKey.API_VERSIONS, min_version=0, max_version=2),
        ApiVersion(api_key=ApiKey.LIST_GROUPS, min_version=0, max_version=1),
    ]
)


ANSWER_S = seconds(ANSWER)


async def receive(reader: asyncio.StreamReader) -> tuple[int, int]:
    """The next request's version and correlation id."""
    size = int.from_bytes(await reader.readexactly(4), "big")
    header, _ = decode_request_header(await reader.readexactly(size))
    return header.api_version, header.correlation_id


def respond(
    writer: asyncio.StreamWriter, correlation_id: int, response: Message, version: int = 0
) -> None:
    """Answer a request whose response header has no tags."""
    body = encode_response_header(correlation_id, 0) + codec.encode(response, version)
    writer.write(len(body).to_bytes(4, "big") + body)


async def introduce(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Answer the question for versions that every connection begins with."""
    version, correlation_id = await receive(reader)
    assert version == 0
    respond(writer, correlation_id, VERSIONS)


def against(serve: Serve, scenario: Scenario, *, answer_bytes_max: int = 1 << 20) -> None:
    """Run a scenario with broker 7, which does what `serve` says on each connection."""

    async def whole() -> None:
        serving: set[asyncio.Task[None]] = set()

        async def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            task = asyncio.current_task()
            assert task is not None
            serving.add(task)
            try:
                with suppress(asyncio.IncompleteReadError, ConnectionError):
                    await serve(reader, writer)
            finally:
                writer.close()
                with suppress(ConnectionError):
                    await writer.wait_closed()

        server = await asyncio.start_server(accept, "127.0.0.1", 0)
        port = server.sockets[0].getsockname()[1]
        endpoint = Endpoint("PLAINTEXT", "127.0.0.1", port)
        peers = Peers(
            lambda broker: endpoint if broker == 7 else None,
            client_id="test",
            answer_bytes_max=answer_bytes_max,
        )
        try:
            await scenario(peers)
        finally:
            peers.close()
            server.close()
            for task in serving:
                task.cancel()
            for outcome in await asyncio.gather(*serving, return_exceptions=True):
                assert outcome is None or isinstance(outcome, asyncio.CancelledError), outcome

    asyncio.run(whole())


def group_list(number: int) -> ListGroupsResponse:
    """A response that can be told from others."""
    return ListGroupsResponse(throttle_time_ms=number)


def test_requests_to_a_removed_broker_fail_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """At once, whether its name is still looked up or it owes an answer; others are not touched."""
    asked = threading.Event()
    gone = threading.Event()

    def lookup(*_: object, **__: object) -> list[Any]:
        asked.set()
        gone.wait()
        return []

    async def scenario() -> None:
        alive = {7: Endpoint("PLAINTEXT", "b7.test", 1), 8: Endpoint("PLAINTEXT", "b8.test", 1)}
        peers = Peers(alive.get, client_id="test")
        waiting = [
            asyncio.ensure_future(
                peers.send(broker, ListGroupsRequest(), ListGroupsResponse, timeout_s=ANSWER_S)
            )
            for broker in alive
        ]
        await asyncio.to_thread(asked.wait)
        del alive[7]
        peers.disconnect_unregistered()
        with pytest.raises(UnreachableError, match=r"broker 7 .*is not asked any more"):
            await waiting[0]
        assert not waiting[1].done()
        peers.close()
        with pytest.raises(UnreachableError, match=r"broker 8 .*is not asked any more"):
            await waiting[1]

    monkeypatch.setattr(socket, "getaddrinfo", lookup)
    try:
        asyncio.run(scenario())
    finally:
        gone.set()


def test_a_real_broker_answers(node: BrokerServer) -> None:
    """In the newest version both sides know, on a connection that is kept for the next request."""
    endpoint = Endpoint("PLAINTEXT", "127.0.0.1", port_of(node))

    async def scenario() -> None:
        peers = Peers(lambda _: endpoint, client_id="test")
        try:
            version = await peers.version(0, ApiKey.METADATA, timeout_s=ANSWER_S)
            assert version >= 9
            limited = Peers(lambda _: endpoint, client_id="old", newest={ApiKey.METADATA: 5})
            for limit, expected in ((None, 5), (7, 5), (3, 3)):
                version = await limited.version(
                    0, ApiKey.METADATA, timeout_s=ANSWER_S, version_max=limit
                )
                assert version == expected
            limited.close()
            for _ in range(2):
                reported = await peers.send(
                    0, MetadataRequest(topics=[]), MetadataResponse, timeout_s=ANSWER_S
                )
                assert reported.cluster_id == node.broker.image.cluster_id
        finally:
            peers.close()

    asyncio.run(scenario())


def test_requests_share_a_connection_and_keep_their_order() -> None:
    """Many are under way at once; each gets its own answer, in the version the peer knows."""
    connections = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        connections.append(writer)
        await introduce(reader, writer)
        asked = [await receive(reader) for _ in range(5)]
        for number, (version, correlation_id) in enumerate(asked):
            respond(writer, correlation_id, group_list(number), version)
        assert {version for version, _ in asked} == {1}
        await reader.read()

    async def scenario(peers: Peers) -> None:
        answers = await asyncio.gather(
            *(
                peers.send(7, ListGroupsRequest(), ListGroupsResponse, timeout_s=ANSWER_S)
                for _ in "12345"
            )
        )
        assert [answer.throttle_time_ms for answer in answers] == [0, 1, 2, 3, 4]
        assert len(connections) == 1

    against(serve, scenario)


def test_a_request_that_the_peer_does_not_know_is_not_sent() -> None:
    """Nor one whose versions do not overlap with what the caller allows."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await introduce(reader, writer)
        assert await reader.read() == b""

    async def scenario(peers: Peers) -> None:
        with pytest.raises(UnsupportedError, match="METADATA"):
            await peers.send(7, MetadataRequest(), MetadataResponse, timeout_s=ANSWER_S)
        assert await peers.version(7, ApiKey.LIST_GROUPS, timeout_s=ANSWER_S) == 1
        assert await peers.version(7, ApiKey.LIST_GROUPS, timeout_s=ANSWER_S, version_max=0) == 0

    against(serve, scenario)


def test_an_unknown_broker_and_a_dead_address_fail() -> None:
    """At once, and after the attempts that fit into the time."""

    async def scenario(peers: Peers) -> None:
        with pytest.raises(UnreachableError, match="broker 8 is not alive"):
            await peers.send(8, ListGroupsRequest(), ListGroupsResponse, timeout_s=ANSWER_S)

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Nobody comes."""

    against(serve, scenario)

    async def refused() -> None:
        server = await asyncio.start_server(serve, "127.0.0.1", 0)
        port = server.sockets[0].getsockname()[1]
        server.close()
        await server.wait_closed()
        peers = Peers(lambda _: Endpoint("PLAINTEXT", "127.0.0.1", port), client_id="test")
        for _ in range(3):
            with pytest.raises(UnreachableError, match=f"cannot connect to broker 1 .*{port}"):
                await peers.send(1, ListGroupsRequest(), ListGroupsResponse, timeout_s=ANSWER_S)
        peers.close()

    asyncio.run(refused())


def test_a_peer_that_falls_silent_is_left() -> None:
    """The request fails in its time, those behind it with it, and the next is asked anew."""
    connections = []
    asked = asyncio.Event()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        connections.append(writer)
        await introduce(reader, writer)
        version, correlation_id = await receive(reader)
        asked.set()
        if len(connections) > 1:
            respond(writer, correlation_id, group_list(9), version)
        await reader.read()

    async def scenario(peers: Peers) -> None:
        patient = asyncio.create_task(
            peers.send(7, ListGroupsRequest(), ListGroupsResponse, timeout_s=ANSWER_S)
        )
        await asked.wait()
        with pytest.raises(UnreachableError, match="did not answer LIST_GROUPS"):
            await peers.send(7, ListGroupsRequest(), ListGroupsResponse, timeout_s=0.3)
        with pytest.raises(UnreachableError, match="did not answer LIST_GROUPS"):
            await patient
        answer = await peers.send(7, ListGroupsRequest(), ListGroupsResponse, timeout_s=ANSWER_S)
        assert answer.throttle_time_ms == 9

    against(serve, scenario)


def test_a_disconnect_fails_the_request_and_reconnects() -> None:
    """Its request may have been carried out; whether to ask again is for the caller to decide."""
    connections = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        connections.append(writer)
        await introduce(reader, writer)
        version, correlation_id = await receive(reader)
        if len(connections) == 1:
            return
        respond(writer, correlation_id, group_list(4), version)
        await reader.read()

    async def scenario(peers: Peers) -> None:
        with pytest.raises(UnreachableError, match="lost"):
            await peers.send(7, ListGroupsRequest(), ListGroupsResponse, timeout_s=ANSWER_S)
        answer = await peers.send(7, ListGroupsRequest(), ListGroupsResponse, timeout_s=ANSWER_S)
        assert answer.throttle_time_ms == 4

    against(serve, scenario)


@pytest.mark.parametrize(
    "nonsense",
    [
        b"HTTP/1.1 400 Bad Request\r\n\r\n",
        b"\xff\xff\xff\xff",
        b"\0\0\0\x02\0\0",
        b"\0\0\0\x08\0\0\0\x63\0\0\0\0",
    ],
)
def test_a_malformed_response_closes_the_connection(nonsense: bytes) -> None:
    """Whatever it is: a size beyond all bounds, too short, or to another question."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await receive(reader)
        writer.write(nonsense)
        await reader.read()

    async def scenario(peers: Peers) -> None:
        with pytest.raises(UnreachableError):
            await peers.send(7, ListGroupsRequest(), ListGroupsResponse, timeout_s=ANSWER_S)

    against(serve, scenario)


def test_a_cancelled_request_does_not_affect_others() -> None:
    """The answer to a cancelled request is received and dropped."""
    may_answer = asyncio.Event()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await introduce(reader, writer)
        asked = [await receive(reader) for _ in range(2)]
        await may_answer.wait()
        for number, (version, correlation_id) in enumerate(asked):
            respond(writer, correlation_id, group_list(number), version)
        await reader.read()

    async def scenario(peers: Peers) -> None:
        await peers.version(7, ApiKey.LIST_GROUPS, timeout_s=ANSWER_S)
        first, second = (
            asyncio.create_task(
                peers.send(7, ListGroupsRequest(), ListGroupsResponse, timeout_s=ANSWER_S)
            )
            for _ in range(2)
        )
        await asyncio.sleep(0)
        first.cancel()
        may_answer.set()
        assert (await second).throttle_time_ms == 1
        assert first.cancelled()

    against(serve, scenario)


def test_requests_under_way_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """One too many is refused; nothing is queued without end behind a peer that does not answer."""
    monkeypatch.setattr(subject, "IN_FLIGHT_MAX", 2)

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await introduce(reader, writer)
        await reader.read()

    async def scenario(peers: Peers) -> None:
        await peers.version(7, ApiKey.LIST_GROUPS, timeout_s=ANSWER_S)
        waiting = [
            asyncio.create_task(
                peers.send(7, ListGroupsRequest(), ListGroupsResponse, timeout_s=ANSWER_S)
            )
            for _ in range(2)
        ]
        await asyncio.sleep(0)
        with pytest.raises(UnreachableError, match="has 2 requests to answer"):
            await peers.send(7, ListGroupsRequest(), ListGroupsResponse, timeout_s=ANSWER_S)
        peers.forget(7)
        for outcome in await asyncio.gather(*waiting, return_exceptions=True):
            assert isinstance(outcome, UnreachableError)

    against(serve, scenario)


def test_a_connection_that_has_just_been_made_is_ended_too() -> None:
    """Who hangs up between the end of an attempt and the word of it leaves nothing open."""
    gone = asyncio.Event()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await introduce(reader, writer)
        assert await reader.read() == b""
        gone.set()

    async def scenario(peers: Peers) -> None:
        asked = asyncio.create_task(
            peers.send(7, ListGroupsRequest(), ListGroupsResponse, timeout_s=ANSWER_S)
        )
        attempt: asyncio.Task[object] | None = None
        while attempt is None or not attempt.done():
            await asyncio.sleep(0)
            named = (it for it in asyncio.all_tasks() if it.get_name().startswith("connect to"))
            attempt = attempt or next(named, None)
        peers.close()
        with pytest.raises(UnreachableError):
            await asked
        await asyncio.wait_for(gone.wait(), ANSWER_S)

    against(serve, scenario)


def test_an_answer_has_memory_as_it_arrives(monkeypatch: pytest.MonkeyPatch) -> None:
    """Four bytes that announce gigabytes allocate none; what does arrive is read whole."""
    monkeypatch.setattr(subject, "ALLOCATED_AT_ONCE", 16)
    names = [ListedGroup(group_id=f"group-{number}") for number in range(10_000)]
    large = ListGroupsResponse(groups=names)

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await introduce(reader, writer)
        version, correlation_id = await receive(reader)
        respond(writer, correlation_id, large, version)
        await receive(reader)
        writer.write((2**31 - 1).to_bytes(4, "big") + b"x" * 100)
        await reader.read()

    async def scenario(peers: Peers) -> None:
        answer = await peers.send(7, ListGroupsRequest(), ListGroupsResponse, timeout_s=ANSWER_S)
        assert [it.group_id for it in answer.groups] == [it.group_id for it in names]
        tracemalloc.start()
        try:
            with pytest.raises(UnreachableError):
                await peers.send(7, ListGroupsRequest(), ListGroupsResponse, timeout_s=0.1)
            _, peak = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
        assert peak < 1 << 20

    against(serve, scenario, answer_bytes_max=2**31 - 1)


def test_the_controller_is_asked_that_the_image_names(node: BrokerServer) -> None:
    """And nobody where it names none."""
    endpoint = Endpoint("PLAINTEXT", "127.0.0.1", port_of(node))
    images = [MetadataImage(cluster_id="c", controller_id=0)]

    async def scenario() -> None:
        peers = Peers(lambda broker: endpoint if broker == 0 else None, client_id="test")
        link = ControllerClient(peers, lambda: images[-1])
        try:
            reported = await link.ask(
                MetadataRequest(topics=[]), MetadataResponse, timeout_s=ANSWER_S
            )
            assert reported.controller_id == 0
            images.append(MetadataImage(cluster_id="c", controller_id=NO_CONTROLLER))
            with pytest.raises(UnreachableError, match="no controller is known"):
                await link.ask(MetadataRequest(topics=[]), MetadataResponse, timeout_s=ANSWER_S)
        finally:
            link.close()

    asyncio.run(scenario())
