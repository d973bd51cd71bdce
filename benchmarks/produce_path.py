"""What one Produce request costs inside the broker, without any socket: from frame to answer.

    .venv/bin/python -m benchmarks.produce_path [--json] [--profile SHAPE]

A broker is started in this process, and frames go to its dispatcher as a session would hand them
over. The log is written for real, to a temporary directory. Each figure is the best of several
rounds: a loop without waiting has no other noise than what slows it down.
"""

from __future__ import annotations

import asyncio
import cProfile
import json
import pstats
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from barnabas_broker.security.authorizer import AllowAll
from barnabas_broker.server.node.broker_server import BrokerServer
from barnabas_broker.server.requests.dispatch import Dispatcher, Reply
from barnabas_kafka.protocol import codec
from barnabas_kafka.protocol.headers import RequestHeader, encode_request_header
from barnabas_kafka.protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest
from barnabas_kafka.settings.broker import BrokerSettings
from benchmarks.records_walk import best_us
from benchmarks.workers.frames import batch_of, produce_frame

CREATE_VERSION: Final = 5
PARTITIONS: Final = 1000
PROFILED_CALLS: Final = 2000
PARTITION_HEAD: Final = 8
"""Index of a partition and length of its batch, in the version that frames are written in."""


@dataclass(frozen=True, slots=True)
class Shape:
    """Requests of one kind: batches of so many bytes, of records of so many, for partitions."""

    name: str
    batch_bytes: int
    record_bytes: int
    partitions: int = 1


SHAPES: Final = (
    Shape("1 record of 200 B", 1, 200),
    Shape("16 KiB of 1 KiB records", 16 << 10, 1024),
    Shape("64 KiB of 1 KiB records", 64 << 10, 1024),
    Shape("64 KiB of 200 B records", 64 << 10, 200),
    Shape("1 MiB of 1 KiB records", 1 << 20, 1024),
    Shape("1 KiB to each of 50 partitions", 1, 1024, partitions=50),
    Shape("1 KiB to each of 1,000 partitions", 1, 1024, partitions=1000),
)


def now_ms() -> int:
    """The broker's clock."""
    return time.time_ns() // 1_000_000


async def create_topic(dispatcher: Dispatcher, name: str) -> None:
    """Have the broker create a topic with as many partitions as any shape needs."""
    request = CreateTopicsRequest(
        timeout_ms=30_000,
        topics=[CreatableTopic(name=name, num_partitions=PARTITIONS, replication_factor=1)],
    )
    header = encode_request_header(RequestHeader(request.api_key, CREATE_VERSION, 1, "benchmark"))
    frame = memoryview(header + codec.encode(request, CREATE_VERSION))
    reply = dispatcher.serve(frame, dispatcher.caller("PLAINTEXT", "127.0.0.1"))
    while isinstance(reply, Reply):
        await asyncio.wait({reply.future})
        reply = dispatcher.encode(reply, reply.future)


def prepared(dispatcher: Dispatcher, topic: str, shape: Shape) -> Callable[[], Any]:
    """A call that serves one request of the shape, in the one buffer it was received in."""
    batch, _ = batch_of(shape.batch_bytes, shape.record_bytes, now_ms=now_ms())
    pristine = produce_frame(topic, [(i, batch) for i in range(shape.partitions)], acks=1)[4:]
    received = memoryview(bytearray(pristine))
    offset = pristine.index(batch)
    distance = len(batch) + PARTITION_HEAD
    places = range(offset, offset + shape.partitions * distance, distance)
    caller = dispatcher.caller("PLAINTEXT", "127.0.0.1")

    def serve() -> Any:
        # The log has stamped offsets into the buffer: a client's begin at 0.
        for place in places:
            received[place : place + 8] = bytes(8)
        return dispatcher.serve(received, caller)

    answer = serve()
    if len(answer) != 1 or b"\0\0" not in answer[0]:
        raise RuntimeError(f"not served: {answer!r}")
    return serve


def profile(call: Callable[[], Any]) -> None:
    """Where the time of many calls goes, by function."""
    profiler = cProfile.Profile()
    profiler.enable()
    for _ in range(PROFILED_CALLS):
        call()
    profiler.disable()
    pstats.Stats(profiler).sort_stats("tottime").print_stats(40)


async def measure(directory: str, argv: list[str]) -> None:
    """Start a broker, serve requests of each shape, print."""
    settings = {"log.dirs": directory, "listeners": "PLAINTEXT://127.0.0.1:0", "broker.id": "0"}
    node = BrokerServer(BrokerSettings.from_mapping(settings))
    await node.start()
    try:
        dispatcher = Dispatcher(
            node.broker,
            node.broker.handlers,
            authorizer=AllowAll(),
            quotas=node.broker.quotas,
            clock_ms=now_ms,
        )
        await create_topic(dispatcher, "path")
        if "--profile" in argv:
            profile(prepared(dispatcher, "path", SHAPES[int(argv[argv.index("--profile") + 1])]))
            return
        for shape in SHAPES:
            us = best_us(prepared(dispatcher, "path", shape))
            if "--json" in argv:
                print(json.dumps({"shape": shape.name, "us_per_request": round(us, 2)}))
            else:
                print(f"{shape.name:36}{us:12.2f} us a request{us / shape.partitions:12.2f} each")
    finally:
        await node.stop()


def main() -> int:
    """Print a table, JSON lines with --json, or a profile of one shape by number."""
    with tempfile.TemporaryDirectory(prefix="barnabas-path-") as directory:
        asyncio.run(measure(directory, sys.argv[1:]))
    return 0


if __name__ == "__main__":
    sys.exit(main())
