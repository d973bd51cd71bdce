"""A whole broker in a thread of the test process, and a client that speaks raw frames to it.

The broker is the product's own `BrokerServer`, on a free port of loopback with a directory of its
own; only its event loop runs in a thread instead of a process, so that dozens of tests can each
have one. The client encodes requests with the project's codecs, which other tests compare with
those of kafka-clients.
"""

import asyncio
import socket
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import Any, Self, TypeVar
from weakref import WeakKeyDictionary

import pytest

from barnabas_broker.server.node.broker_server import BrokerServer
from barnabas_broker.server.requests.dispatch import Dispatcher
from barnabas_kafka.protocol import codec, registry
from barnabas_kafka.protocol.headers import (
    RequestHeader,
    decode_response_header,
    encode_request_header,
)
from barnabas_kafka.protocol.messages.create_topics import (
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from barnabas_kafka.protocol.messages.fetch import (
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchTopic,
    PartitionData,
)
from barnabas_kafka.protocol.messages.produce import (
    PartitionProduceData,
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
)
from barnabas_kafka.protocol.schema import Message
from barnabas_kafka.settings.broker import BrokerSettings
from tests.broker.server.moved_clock import MovedLoop
from tests.waiting import ANSWER, START, seconds, watch_loop

#: How long a record may wait for those who copy it: less than a client waits for its answer.
ACKNOWLEDGED_MS = 30_000
WITHOUT_FAST_ROUTES = {"barnabas.fast.path.enable": "false"}
M = TypeVar("M", bound=Message)
_LOOPS: WeakKeyDictionary[BrokerServer, MovedLoop] = WeakKeyDictionary()


@contextmanager
def told_of_dispatchers(tell: Callable[[Dispatcher], None]) -> Iterator[None]:
    """Call `tell` with the dispatcher of every broker that is made meanwhile.

    The class stays the product's: only what is done to that instance is the test's.
    """
    created = Dispatcher.__init__

    def reported(self: Dispatcher, *args: object, **named: object) -> None:
        created(self, *args, **named)  # type: ignore[arg-type]
        tell(self)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Dispatcher, "__init__", reported)
        yield


@contextmanager
def running_node(
    directory: Path, settings: Mapping[str, str] | None = None
) -> Iterator[BrokerServer]:
    """A broker that serves `PLAINTEXT` on 127.0.0.1; stopped cleanly at the end."""
    node = BrokerServer(
        BrokerSettings.from_mapping(
            {
                "listeners": "PLAINTEXT://127.0.0.1:0",
                "log.dirs": str(directory),
                "broker.id": "0",
                **(settings or {}),
            }
        )
    )
    loop = MovedLoop()
    _LOOPS[node] = loop
    thread = threading.Thread(target=loop.run_forever, name="broker under test")
    thread.start()
    watch_loop(f"broker in {directory}", loop)
    try:
        asyncio.run_coroutine_threadsafe(node.start(), loop).result(seconds(START))
        yield node
    finally:
        try:
            asyncio.run_coroutine_threadsafe(node.stop(), loop).result(seconds(START))
        finally:
            loop.call_soon_threadsafe(loop.stop)
            thread.join(seconds(ANSWER))
            loop.close()


def pass_time(node: BrokerServer, passed_s: float) -> None:
    """Move the clock of a running broker on: its timers that are due then run at once."""
    _LOOPS[node].pass_time(passed_s)


def loop_of(node: BrokerServer) -> asyncio.AbstractEventLoop:
    """The event loop that it runs on, in a thread of its own."""
    return _LOOPS[node]


def port_of(node: BrokerServer) -> int:
    """The port a running broker listens on."""
    return node.broker.image.brokers[node.broker.id].endpoints[0].port


class Wire:
    """A blocking client of one connection."""

    def __init__(self, port: int) -> None:
        self.socket = socket.create_connection(("127.0.0.1", port), timeout=seconds(ANSWER))
        self._correlation_id = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.socket.close()

    def frame(self, request: Message, version: int) -> bytes:
        """A request as it goes over the wire, with the next correlation id."""
        self._correlation_id += 1
        header = RequestHeader(request.api_key, version, self._correlation_id, "wire")
        body = encode_request_header(header) + codec.encode(request, version)
        return len(body).to_bytes(4, "big") + body

    def send(self, request: Message, version: int) -> None:
        """Send a request and expect nothing yet."""
        self.socket.sendall(self.frame(request, version))

    def receive_frame(self) -> bytes:
        """The next frame without its size; b"" where the broker closed the connection."""
        size = self._exactly(4)
        return self._exactly(int.from_bytes(size, "big")) if size else b""

    def receive(self, kind: type[M], version: int) -> tuple[int, M]:
        """The next response and the correlation id it answers."""
        frame = self.receive_frame()
        assert frame, "the broker closed the connection"
        api = registry.api(kind.api_key)
        correlation_id, position = decode_response_header(
            frame, api.response_header_version(version)
        )
        return correlation_id, codec.decode_from(kind, frame, version, position)[0]

    def ask(self, request: Message, version: int) -> Any:
        """Send a request and wait for its response."""
        self.send(request, version)
        kind = registry.api(request.api_key).response
        correlation_id, response = self.receive(kind, version)
        assert correlation_id == self._correlation_id
        return response

    def closed_by_broker(self) -> bool:
        """Whether the broker ends the connection without saying anything more."""
        try:
            return self.socket.recv(1) == b""
        except ConnectionResetError:
            return True

    def _exactly(self, size: int) -> bytes:
        received = bytearray()
        while len(received) < size:
            try:
                chunk = self.socket.recv(size - len(received))
            except ConnectionResetError:
                return b""
            if not chunk:
                return b""
            received += chunk
        return bytes(received)

    # What most scenarios need.

    def create_topic(self, name: str, *, partitions: int = 1, **config: str) -> None:
        """Create a topic; config names have underscores for dots."""
        response: CreateTopicsResponse = self.ask(
            CreateTopicsRequest(
                timeout_ms=5000,
                topics=[
                    CreatableTopic(
                        name=name,
                        num_partitions=partitions,
                        replication_factor=1,
                        configs=[
                            CreatableTopicConfig(name=key.replace("_", "."), value=value)
                            for key, value in config.items()
                        ],
                    )
                ],
            ),
            7,
        )
        assert response.topics[0].error_code == 0, response

    def produce(
        self, topic: str, records: bytes, *, acks: int = -1, version: int = 9, partition: int = 0
    ) -> PartitionProduceResponse:
        """Produce to one partition and return its part of the response."""
        request = produce_request(topic, records, acks=acks, partition=partition)
        response: ProduceResponse = self.ask(request, version)
        return response.responses[0].partition_responses[0]

    def fetch(self, topic: str, offset: int = 0, version: int = 12, **more: Any) -> PartitionData:
        """Fetch from partition 0 without a session and return its part of the response."""
        response: FetchResponse = self.ask(fetch_request([(topic, 0, offset)], **more), version)
        assert response.error_code == 0
        return response.responses[0].partitions[0]


def produce_request(
    topic: str, records: bytes, *, acks: int = -1, partition: int = 0
) -> ProduceRequest:
    """A Produce request for one partition."""
    data = PartitionProduceData(index=partition, records=records)
    return ProduceRequest(
        acks=acks,
        timeout_ms=ACKNOWLEDGED_MS,
        topic_data=[TopicProduceData(name=topic, partition_data=[data])],
    )


def fetch_request(wanted: Sequence[tuple[str, int, int]], **more: Any) -> FetchRequest:
    """A Fetch request for (topic, partition, offset) triples; `more` are fields of the request.

    `partition_max_bytes` may be among them.
    """
    most = more.pop("partition_max_bytes", 1 << 20)
    request = FetchRequest(**{"max_wait_ms": 0, "min_bytes": 1, "session_epoch": -1, **more})
    for topic, partition, offset in wanted:
        entry = FetchPartition(partition=partition, fetch_offset=offset, partition_max_bytes=most)
        request.topics.append(FetchTopic(topic=topic, partitions=[entry]))
    return request
