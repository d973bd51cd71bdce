"""Frames in a stream, cut wherever a network may cut it.

Input: a byte that seeds the cuts, then the stream. What both readers of frames take out of it must
not depend on the cuts: the one of clients, and the session of a broker.
"""

from __future__ import annotations

import asyncio
import logging
import random
import socket
from collections.abc import Iterator
from typing import Any, Final, cast

from barnabas_broker.security.principals import ANONYMOUS
from barnabas_broker.server.network.listener import Listener
from barnabas_broker.server.network.response_coalescing import ResponseCoalescer
from barnabas_broker.server.network.session import Session
from barnabas_broker.server.network.shared import Shared
from barnabas_broker.server.process.cooperative_scheduler import RunQueue
from barnabas_broker.server.requests.dispatch import Caller, Dispatcher
from barnabas_broker.server.transport.buffers import BufferPool
from barnabas_broker.server.transport.counters import Counters
from barnabas_broker.server.transport.memory_pool import MemoryPool
from barnabas_broker.server.transport.send_buffers import SendBuffers
from barnabas_broker.server.transport.write_readiness import WriteReadiness
from barnabas_kafka.protocol.codec import DecodeError
from barnabas_kafka.protocol.frames import FrameError, FrameReader, frame
from fuzz.oracle import promise

_LIMIT: Final = 1000
_MALFORMED: Final = 0xEE
_BUDGET: Final = 1 << 20
_ROUNDS_MAX: Final = 1000

_SILENT: Final = logging.Logger("fuzz", logging.CRITICAL)

Answer = tuple[list[bytes], bool]


class _Listener:
    """What a session asks of its listener."""

    name = "fuzz"
    security = None

    def opened(self, session: Session) -> None:
        """Nothing to note."""

    def closed(self, session: Session) -> None:
        """Nothing to note."""


class _Dispatcher:
    """Remembers the frames and answers with their last byte; some are malformed."""

    request_bytes_max = _LIMIT

    def __init__(self) -> None:
        self.frames: list[bytes] = []

    def caller(self, listener: str, host: str) -> Caller:
        """Whoever it is."""
        return Caller(listener, host, ANONYMOUS)

    def serve_run(self, received: memoryview, position: int, caller: Any) -> None:
        """Nothing is served together."""

    def serve(self, view: memoryview, caller: Any) -> bytes | list[bytes]:
        """Answer one frame, some in a burst with others; raises DecodeError as the real one."""
        self.frames.append(bytes(view))
        if view[0] == _MALFORMED:
            raise DecodeError("malformed")
        answer = bytes(view[-1:])
        return answer if view[0] & 1 else [answer]


class _Transport(asyncio.Transport):
    """One end of a socket pair, with the state that a session keeps there."""

    def __init__(self, end: socket.socket) -> None:
        super().__init__({"socket": end})
        self.ended = self.paused = False

    def is_closing(self) -> bool:
        """Whether the session has had enough."""
        return self.ended

    def close(self) -> None:
        """End it."""
        self.ended = True

    abort = close

    def pause_reading(self) -> None:
        """Nothing is fed while it is paused."""
        self.paused = True

    def resume_reading(self) -> None:
        """More may be fed."""
        self.paused = False


def check(data: bytes) -> None:
    """Every way to cut a stream gives the same frames, the same answers and the same end."""
    if not data:
        return
    stream = data[1:]
    chance = random.Random(data[0])
    pieces = list(_cut(stream, chance))
    whole, cut = _client([stream]), _client(pieces)
    promise(whole == cut, "a client's frames", whole, cut)
    served, ended = asyncio.run(_session(pieces))
    promise((served, ended) == _served(*whole), "a session's frames", served, ended, whole)


def _cut(stream: bytes, chance: random.Random) -> Iterator[bytes]:
    most = chance.choice((1, 3, 50, 5000))
    while stream:
        size = chance.randint(1, most)
        yield stream[:size]
        stream = stream[size:]


def _client(pieces: list[bytes]) -> Answer:
    reader = FrameReader(limit=_LIMIT)
    found: list[bytes] = []
    try:
        for piece in pieces:
            reader.feed(piece)
            found.extend(reader.frames())
    except FrameError:
        return found, True
    return found, False


def _served(frames: list[bytes], refused: bool) -> Answer:
    """What a session does with these: an empty frame or a malformed one ends it."""
    served: list[bytes] = []
    for each in frames:
        if not each:
            return served, True
        served.append(each)
        if each[0] == _MALFORMED:
            return served, True
    return served, refused


async def _session(pieces: list[bytes]) -> Answer:
    dispatcher = _Dispatcher()
    shared = Shared(
        MemoryPool(BufferPool(), budget=_BUDGET),
        SendBuffers(),
        Counters(_SILENT),
        WriteReadiness(),
        RunQueue(),
        ResponseCoalescer(),
    )
    session = Session(cast(Listener, _Listener()), cast(Dispatcher, dispatcher), shared)
    here, there = socket.socketpair()
    with here, there:
        transport = _Transport(here)
        session.connection_made(transport)
        for piece in pieces:
            await _feed(session, transport, piece)
        await _turn(transport)
        await asyncio.sleep(0)  # The last burst leaves.
        answers = b"".join(each[-1:] for each in dispatcher.frames if each[0] != _MALFORMED)
        session.connection_lost(None)
        here.shutdown(socket.SHUT_WR)
        got = there.recv(len(answers) + 1)
        promise(got == answers, "answers", got, answers)
        promise(shared.memory.held == 0, "memory is not given back", shared.memory.held)
    shared.writability.close()
    return dispatcher.frames, transport.ended


async def _feed(session: Session, transport: _Transport, piece: bytes) -> None:
    while piece:
        await _turn(transport)
        if transport.ended:  # By what it had received before.
            return
        room = session.get_buffer(-1)
        promise(len(room) > 0, "a session gives no room")
        count = min(len(room), len(piece))
        room[:count] = piece[:count]
        session.buffer_updated(count)
        piece = piece[count:]


async def _turn(transport: _Transport) -> None:
    """Wait until the session takes more: it leaves the loop to others between its turns."""
    for _ in range(_ROUNDS_MAX):
        if not transport.paused or transport.ended:
            return
        await asyncio.sleep(0)
    promise(False, "a session waits for ever")


def seeds() -> Iterator[bytes]:
    """Frames of several sizes, cut in several ways, sound and not."""
    for seed in range(4):
        head = bytes((seed,))
        yield head + frame(b"a") + frame(b"b" * 300) + frame(b"c")
        yield head + frame(b"a") + frame(b"") + frame(b"c")
        yield head + frame(b"a") + frame(bytes((_MALFORMED,))) + frame(b"c")
        yield head + frame(b"a" * 999) + (1001).to_bytes(4, "big") + b"d"
        yield head + frame(b"a") + b"\xff\xff\xff\xff"
