"""Brokers that speak the protocol over real sockets, and misbehave as real ones do.

Each broker is a server on loopback whose answers a test decides. It can be silent (a node that is
gone behind a live address: connections open and nothing is answered), refuse, and come back at
another address. Runs in the event loop of the test, or in a thread for the blocking client.
"""

from __future__ import annotations

import asyncio
import ssl
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from barnabas_kafka.errors import ErrorCode
from barnabas_kafka.protocol import codec, registry
from barnabas_kafka.protocol.headers import decode_request_header, encode_response_header
from barnabas_kafka.protocol.messages.api_versions import (
    ApiVersion,
    ApiVersionsRequest,
    ApiVersionsResponse,
)
from barnabas_kafka.protocol.messages.create_topics import (
    CreatableTopicResult,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from barnabas_kafka.protocol.messages.metadata import (
    MetadataRequest,
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from barnabas_kafka.protocol.registry import ApiKey
from barnabas_kafka.protocol.schema import Request, Response
from tests.waiting import ANSWER, seconds

Answer = Callable[["FakeBroker", Request, int], Response | None]


@dataclass(eq=False)
class FakeBroker:
    """One broker of a cluster; `asked` keeps what it was asked, as names of requests."""

    cluster: FakeCluster
    id: int
    port: int = 0
    silent: bool = False
    asked: list[str] = field(default_factory=list)
    connections: int = 0
    _server: asyncio.Server | None = None
    _writers: set[asyncio.StreamWriter] = field(default_factory=set)

    async def start(self) -> None:
        """Listen, at another port than before."""
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0, ssl=self.cluster.tls)
        self.port = self._server.sockets[0].getsockname()[1]

    async def stop(self) -> None:
        """End the connections and listen no more."""
        if self._server is not None:
            self._server.close()
            for writer in list(self._writers):
                writer.transport.abort()
            await self._server.wait_closed()
            self._server = None

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        self._writers.add(writer)
        try:
            while True:
                size = int.from_bytes(await reader.readexactly(4), "big")
                frame = await reader.readexactly(size)
                answer = self._answer(frame)
                if answer is not None and not self.silent:
                    writer.write(len(answer).to_bytes(4, "big") + answer)
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            self._writers.discard(writer)
            writer.transport.abort()

    def _answer(self, frame: bytes) -> bytes | None:
        header, start = decode_request_header(frame)
        api = registry.api(header.api_key)
        self.asked.append(api.name)
        version = header.api_version
        newest = self.cluster.newest.get(api.key, api.versions.max)
        if api.key is ApiKey.API_VERSIONS and version > newest:
            refusal = ApiVersionsResponse(error_code=ErrorCode.UNSUPPORTED_VERSION)
            return encode_response_header(header.correlation_id, 0) + codec.encode(refusal, 0)
        request = codec.decode_from(api.request, frame, version, start)[0]
        response = self._respond(request, version)
        if response is None:
            return None
        head = encode_response_header(header.correlation_id, api.response_header_version(version))
        return head + codec.encode(response, version)

    def _respond(self, request: Request, version: int) -> Response | None:
        if self.cluster.answer is not None:
            response = self.cluster.answer(self, request, version)
            if response is not None:
                return response
        if isinstance(request, ApiVersionsRequest):
            return self.cluster.versions()
        if isinstance(request, MetadataRequest):
            return self.cluster.metadata(request)
        return None


@contextmanager
def in_a_thread(cluster: FakeCluster) -> Iterator[FakeCluster]:
    """The cluster in an event loop of another thread, for clients that block."""
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever)
    thread.start()
    try:
        asyncio.run_coroutine_threadsafe(cluster.__aenter__(), loop).result(seconds(ANSWER))
        yield cluster
        asyncio.run_coroutine_threadsafe(cluster.__aexit__(), loop).result(seconds(ANSWER))
    finally:
        loop.call_soon_threadsafe(loop.stop)
        thread.join(seconds(ANSWER))
        loop.close()


class FakeCluster:
    """Brokers 0, 1, ... of one cluster. `answer` decides; what it leaves out is ordinary."""

    def __init__(self, count: int = 1, *, answer: Answer | None = None) -> None:
        self.brokers = [FakeBroker(self, number) for number in range(count)]
        self.answer = answer
        self.controller = 0
        self.topics: dict[str, int] = {}
        """Partitions of each topic; partition n is led by broker n modulo their number."""
        self.newest: dict[ApiKey, int] = {}
        self.tls: ssl.SSLContext | None = None

    @property
    def bootstrap(self) -> str:
        """All brokers, as they listen now."""
        return ",".join(f"127.0.0.1:{broker.port}" for broker in self.brokers)

    async def __aenter__(self) -> FakeCluster:
        for broker in self.brokers:
            await broker.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        for broker in self.brokers:
            await broker.stop()

    def versions(self) -> ApiVersionsResponse:
        """What every broker of the cluster speaks."""
        apis = [registry.api(key) for key in ApiKey]
        return ApiVersionsResponse(
            api_keys=[
                ApiVersion(
                    api_key=api.key,
                    min_version=api.versions.min,
                    max_version=self.newest.get(api.key, api.versions.max),
                )
                for api in apis
                if self.newest.get(api.key, 0) >= 0
            ]
        )

    def metadata(self, request: MetadataRequest) -> MetadataResponse:
        """Brokers, controller and the topics that were asked for."""
        names = [each.name or "" for each in request.topics or ()]
        if request.topics is None:
            names = list(self.topics)
        return MetadataResponse(
            cluster_id="fake",
            controller_id=self.controller,
            brokers=[
                MetadataResponseBroker(node_id=each.id, host="127.0.0.1", port=each.port, rack="r")
                for each in self.brokers
            ],
            topics=[self._topic(name) for name in names],
        )

    def _topic(self, name: str) -> MetadataResponseTopic:
        if name not in self.topics:
            unknown = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            return MetadataResponseTopic(error_code=unknown, name=name)
        ids = [broker.id for broker in self.brokers]
        return MetadataResponseTopic(
            name=name,
            partitions=[
                MetadataResponsePartition(
                    partition_index=index,
                    leader_id=index % len(ids),
                    replica_nodes=ids,
                    isr_nodes=ids,
                )
                for index in range(self.topics[name])
            ],
        )


def created(broker: FakeBroker, request: Request, version: int) -> Response | None:
    """CreateTopics as the controller answers it, and as another broker does."""
    if not isinstance(request, CreateTopicsRequest):
        return None
    is_controller = broker.id == broker.cluster.controller
    code = ErrorCode.NONE if is_controller else ErrorCode.NOT_CONTROLLER
    names = [topic.name for topic in request.topics]
    if is_controller:
        broker.cluster.topics.update(dict.fromkeys(names, 1))
    return CreateTopicsResponse(
        topics=[CreatableTopicResult(name=name, error_code=code) for name in names]
    )
