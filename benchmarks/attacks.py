"""What hostile clients do to a broker, each as a function that goes on until its process is ended.

Attacks need nothing but a port and a topic, and say when they have begun: when each of their
connections has sent what it begins with, or the broker takes no more. They run in processes of
their own, so that what they cost does not slow down whoever watches the broker meanwhile.
"""

from __future__ import annotations

import selectors
import socket
import struct
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Final, cast

from barnabas_kafka.protocol.codec import encode
from barnabas_kafka.protocol.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from barnabas_kafka.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from barnabas_kafka.protocol.registry import ApiKey
from barnabas_kafka.records.builder import build_batch
from barnabas_kafka.records.compression import Codec
from benchmarks.workers.frames import (
    api_versions_frame,
    fetch_frame,
    framed,
    produce_frame,
)

GIANT: Final = 100 << 20
TIMEOUT_S: Final = 5.0
JOIN_VERSION: Final = 2
"""The last in which a member is taken without coming back with the id it was given."""

Begun = Callable[[], object]
"""To be called when an attack has begun in full; may be called again."""

Attack = Callable[[int, str, Begun], None]


def _connect(port: int) -> socket.socket:
    sock = socket.create_connection(("127.0.0.1", port), timeout=TIMEOUT_S)
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return sock


def _drip(
    port: int, begun: Begun, *, connections: int, opening: bytes, drop: bytes, every_s: float
) -> None:
    """Keep so many connections open, each with an opening and a drop now and then."""
    socks: list[socket.socket] = []
    while True:
        with suppress(OSError):
            while len(socks) < connections:
                socks.append(_connect(port))
                socks[-1].sendall(opening)
        for sock in list(socks):
            try:
                sock.setblocking(False)
                sock.send(drop)
            except BlockingIOError:
                continue
            except OSError:
                sock.close()
                socks.remove(sock)
        begun()
        time.sleep(every_s)


def announced_giants(port: int, topic: str, begun: Begun) -> None:
    """Eight connections announce 100 MiB each and send nothing of it."""
    _drip(port, begun, connections=8, opening=struct.pack(">i", GIANT), drop=b"", every_s=0.5)


def sent_giants(port: int, topic: str, begun: Begun) -> None:
    """Sixteen connections announce 100 MiB each, and send 8 MiB/s of it each."""
    frame = produce_frame(topic, [(0, b"x" * 100)], acks=1)[4:]
    opening = struct.pack(">i", GIANT) + frame
    _drip(port, begun, connections=16, opening=opening, drop=bytes(1 << 20), every_s=0.125)


def slow_senders(port: int, topic: str, begun: Begun) -> None:
    """A thousand connections send a byte a second of a request of 1 MiB."""
    _drip(
        port, begun, connections=1000, opening=struct.pack(">i", 1 << 20), drop=b"\0", every_s=1.0
    )


def idle_connections(port: int, topic: str, begun: Begun) -> None:
    """Two thousand connections say nothing."""
    _drip(port, begun, connections=2000, opening=b"", drop=b"", every_s=1.0)


def slow_readers(port: int, topic: str, begun: Begun) -> None:
    """Two hundred connections ask for 50 MiB over and over, and read nothing."""
    frame = fetch_frame(topic, partition=0, offset=0, max_bytes=50 << 20)
    _drip(port, begun, connections=200, opening=frame * 50, drop=frame, every_s=0.5)


def unread_pipelines(port: int, topic: str, begun: Begun) -> None:
    """Four connections send a hundred thousand requests each, over and over, and read nothing."""
    _drip(
        port, begun, connections=4, opening=b"", drop=api_versions_frame() * 100_000, every_s=0.05
    )


def bombs(port: int, topic: str, begun: Begun) -> None:
    """Four connections produce batches of 60 KB that hold 60 MiB, and read each answer."""
    batch = build_batch([(int(time.time() * 1000), None, bytes(60 << 20), ())], codec=Codec.GZIP)
    _answered(port, begun, [produce_frame(topic, [(0, batch)], acks=1)] * 4)


def unacknowledged(port: int, topic: str, begun: Begun) -> None:
    """Two connections produce small batches as fast as they can and want no answers."""
    batch = build_batch([(int(time.time() * 1000), None, bytes(100), ())])
    frames = produce_frame(topic, [(0, batch)], acks=0) * 500
    _drip(port, begun, connections=2, opening=frames, drop=frames, every_s=0.001)


def garbage(port: int, topic: str, begun: Begun) -> None:
    """Connect, send what is no request, be closed, and connect again."""
    while True:
        with suppress(OSError), _connect(port) as sock:
            sock.sendall(b"GET / HTTP/1.1\r\nHost: broker\r\n\r\n")
            sock.recv(1)
        begun()


def many_bombs(port: int, topic: str, begun: Begun) -> None:
    """Two hundred connections produce batches of 2 KB that hold 60 MiB, and read each answer."""
    batch = build_batch([(int(time.time() * 1000), None, bytes(60 << 20), ())], codec=Codec.ZSTD)
    _answered(port, begun, [produce_frame(topic, [(0, batch)], acks=1)] * 200)


def large_joins(port: int, topic: str, begun: Begun) -> None:
    """Sixty connections join a group each with 15 MB of metadata, and again when answered."""
    protocols = [JoinGroupRequestProtocol(name="range", metadata=bytes(15_000_000))]
    frames = []
    for number in range(60):
        request = JoinGroupRequest(
            group_id=f"large-{number}",
            session_timeout_ms=30_000,
            rebalance_timeout_ms=30_000,
            protocol_type="consumer",
            protocols=protocols,
        )
        frames.append(framed(ApiKey.JOIN_GROUP, JOIN_VERSION, encode(request, JOIN_VERSION)))
    _answered(port, begun, frames)


def old_commits(port: int, topic: str, begun: Begun) -> None:
    """A hundred clients of the first kind commit offsets, kept as znodes, over and over."""
    partition = OffsetCommitRequestPartition(partition_index=0, committed_offset=1)
    wanted = [OffsetCommitRequestTopic(name=topic, partitions=[partition] * 100)]
    frames = [
        framed(
            ApiKey.OFFSET_COMMIT,
            0,
            encode(OffsetCommitRequest(group_id=f"old-{number}", topics=wanted), 0),
        )
        for number in range(100)
    ]
    _answered(port, begun, frames)


def admin_drippers(port: int, topic: str, begun: Begun) -> None:
    """Twelve connections send a byte of a request to the admin port each three seconds."""
    opening = b"GET /live HTTP/1.1\r\nX-Slow: "
    _drip(port, begun, connections=12, opening=opening, drop=b"x", every_s=3.0)


def _answered(port: int, begun: Begun, frames: Sequence[bytes]) -> None:
    """Send each request on a connection of its own, again when answered, anew when closed."""
    selector = selectors.DefaultSelector()
    idle = list(frames)
    while True:
        with suppress(OSError):  # The broker takes no more of it for now.
            while idle:
                sock = _connect(port)
                sock.sendall(idle[-1])
                selector.register(sock, selectors.EVENT_READ, idle.pop())
        begun()
        for key, _ in selector.select(1.0):
            sock, frame = cast(socket.socket, key.fileobj), cast(bytes, key.data)
            try:
                if sock.recv(65536):
                    sock.sendall(frame)
                    continue
            except OSError:
                pass
            selector.unregister(sock)
            sock.close()
            idle.append(frame)


ATTACKS: Final[dict[str, Attack]] = {
    attack.__name__.replace("_", "-"): attack
    for attack in (
        announced_giants, sent_giants, slow_senders, idle_connections, slow_readers,
        unread_pipelines, bombs, unacknowledged, garbage, many_bombs, large_joins, old_commits,
    )
}  # fmt: skip

ADMIN_ATTACKS: Final[dict[str, Attack]] = {"admin-drippers": admin_drippers}
"""Those of the admin port, which is not the one that clients know."""
