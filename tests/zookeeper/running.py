"""A server in the test's own event loop, and a raw connection to it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from kazoo.protocol import serialization as kazoo

from barnabas_zookeeper.server import Options, Server


@asynccontextmanager
async def running(directory: Path, **options: Any) -> AsyncIterator[Server]:
    """A server that serves until the block ends; what ended it sooner is raised."""
    server = await Server.open(replace(Options(data_directory=directory, port=0), **options))
    serving = asyncio.create_task(server.serve())
    try:
        yield server
        server.stop()
        await serving
    finally:
        serving.cancel()
        server.close()


@asynccontextmanager
async def connected(server: Server) -> AsyncIterator[Raw]:
    """A connection that has a session."""
    async with plain(server) as raw:
        await raw.ask(bytes(kazoo.Connect(0, 0, 6000, 0, b"", False).serialize()))
        yield raw


@asynccontextmanager
async def plain(server: Server) -> AsyncIterator[Raw]:
    """A connection that has said nothing yet."""
    reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
    try:
        yield Raw(reader, writer)
    finally:
        writer.close()
        await asyncio.gather(writer.wait_closed(), return_exceptions=True)


class Raw:
    """Frames over a socket."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader = reader
        self.writer = writer

    async def ask(self, frame: bytes) -> bytes:
        """Send a frame and read one; raises IncompleteReadError where the server hangs up."""
        self.writer.write(len(frame).to_bytes(4, "big") + frame)
        length = int.from_bytes(await self.reader.readexactly(4), "big")
        return await self.reader.readexactly(length)

    async def request(self, request: object) -> int:
        """Send one of kazoo's requests; returns the number of the error, 0 for none."""
        head = kazoo.int_int_struct.pack(1, request.type)  # type: ignore[attr-defined]
        response = await self.ask(head + bytes(request.serialize()))  # type: ignore[attr-defined]
        error: int = kazoo.reply_header_struct.unpack_from(response)[2]
        return error

    async def until_closed(self) -> bytes:
        """All that comes until the server hangs up."""
        return await self.reader.read()
