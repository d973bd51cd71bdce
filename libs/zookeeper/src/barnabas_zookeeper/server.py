"""One ZooKeeper process for laptops and tests: the service on a port, its journal in a file.

It keeps what it acknowledged through kill -9 and power cuts: requests are taken as they come, all
that came meanwhile is written and synced as one, and only then acknowledged. There is no second
copy: where the disk fails the process ends, and where it is down so are its clients. Production
has an ensemble of Apache ZooKeeper.
"""

import asyncio
import errno
import fcntl
import logging
import os
import secrets
import time
from collections import deque
from dataclasses import dataclass
from pathlib import Path
from typing import Final, cast

from barnabas_zookeeper import journal_file
from barnabas_zookeeper.journal import DamagedJournalError
from barnabas_zookeeper.service import Client, HangUpError, Service
from barnabas_zookeeper.status import COMMANDS, Counters, answer
from barnabas_zookeeper.wire import MalformedRequestError

FILE_NAME: Final = "znodes.journal"
LOCK_NAME: Final = ".lock"

FRAME_BYTES_MAX: Final = 0xFFFFF
"""ZooKeeper's `jute.maxbuffer`; clients count on being refused beyond it."""

UNSENT_BYTES_MAX: Final = 16 << 20
"""What may wait for a client that does not read, before it is hung up on."""

REQUESTS_MAX: Final = 200
"""Requests of one connection that wait; more are not read from it meanwhile."""

JOURNAL_BYTES_LEAST: Final = 4 << 20
"""Below this the journal is not worth a snapshot."""

CONNECT_S: Final = 10.0
"""How long a connection may take to send its ConnectRequest."""

_log = logging.getLogger(__name__)


class ServerError(Exception):
    """The server cannot run: one line that says why."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """As zoo.cfg has them: dataDir, clientPortAddress, clientPort, tickTime, maxClientCnxns."""

    data_directory: Path
    host: str = "127.0.0.1"
    port: int = 2181
    tick_ms: int = 2000
    connections_per_address: int = 60


class Server:
    """A running server: `open`, then `serve` until `stop` or an error, then `close`."""

    def __init__(self, options: Options, service: Service, *, descriptor: int, lock: int) -> None:
        self._options = options
        self.service = service
        self._path = options.data_directory / FILE_NAME
        self._descriptor = descriptor
        self._lock = lock
        self._snapshot_bytes = os.fstat(descriptor).st_size
        self._incoming: deque[tuple[_Connection, bytes]] = deque()
        self._wake = asyncio.Event()
        self._stopped = asyncio.Event()
        self._listening: asyncio.Server | None = None
        self.connections: dict[Client, _Connection] = {}
        self.counters = Counters()

    @classmethod
    async def open(cls, options: Options) -> "Server":
        """Read the data directory, which is made if need be, and listen. Raises ServerError."""
        directory = options.data_directory
        path = directory / FILE_NAME
        try:
            directory.mkdir(parents=True, exist_ok=True)
            lock = _lock(directory / LOCK_NAME)
            tree = journal_file.read(path)
            descriptor = journal_file.replace(path, tree)
        except DamagedJournalError as error:
            raise ServerError(f"{path} is damaged ({error}); restore it from a copy") from error
        except OSError as error:
            raise ServerError(f"{error.filename or directory}: {error.strerror}") from error
        service = Service(
            tree,
            tick_ms=options.tick_ms,
            # Ids of sessions are never used again, also where the journal was lost.
            first_session=time.time_ns() // 1_000_000 << 16,
            new_password=lambda: secrets.token_bytes(16),
        )
        server = cls(options, service, descriptor=descriptor, lock=lock)
        service.start(now_ms=_now_ms(), uptime_ms=_uptime_ms())
        loop = asyncio.get_running_loop()
        try:
            server._listening = await loop.create_server(
                lambda: _Connection(server), options.host, options.port
            )
        except OSError as error:
            server.close()
            where = f"{options.host}:{options.port}"
            raise ServerError(f"cannot listen at {where}: {error.strerror}") from error
        return server

    @property
    def port(self) -> int:
        """The port that it listens at, also where 0 was asked for."""
        if self._listening is None:
            raise ServerError("it does not listen")
        port: int = self._listening.sockets[0].getsockname()[1]
        return port

    async def serve(self) -> None:
        """Serve until `stop`. Raises ServerError where the journal cannot be written."""
        ticking = asyncio.create_task(self._tick())
        try:
            while not self._stopped.is_set():
                await self._wake.wait()
                self._wake.clear()
                await self._work()
        finally:
            ticking.cancel()

    def stop(self) -> None:
        """Have `serve` return."""
        self._stopped.set()
        self._wake.set()

    def close(self) -> None:
        """Close all connections, and unlock the directory; sessions wait for the next start."""
        if self._listening is not None:
            self._listening.close()
        self.hang_up()
        os.close(self._descriptor)
        os.close(self._lock)

    def hang_up(self) -> None:
        """Close all connections."""
        for connection in list(self.connections.values()):
            connection.hang_up()

    # --- connections

    def came(self, connection: "_Connection") -> bool:
        """Take a connection, unless its address has too many."""
        address = connection.client.address
        same = sum(each.address == address for each in self.connections)
        if same >= self._options.connections_per_address:
            _log.warning("too many connections from %s: max is %d", address, same)
            return False
        self.connections[connection.client] = connection
        return True

    def went(self, connection: "_Connection") -> None:
        """Forget a connection."""
        if self.connections.pop(connection.client, None) is not None:
            self.service.left(connection.client)

    def received(self, connection: "_Connection", frame: bytes) -> None:
        """Have a frame served in its turn."""
        self.counters.received += 1
        self._incoming.append((connection, frame))
        self._wake.set()

    # --- work

    async def _tick(self) -> None:
        while True:
            await asyncio.sleep(self._options.tick_ms / 2000)
            self._wake.set()

    async def _work(self) -> None:
        """Serve all that has come, make it durable, acknowledge."""
        leaving: list[_Connection] = []
        served: list[_Connection] = []
        while self._incoming:
            connection, frame = self._incoming.popleft()
            served.append(connection)
            if connection not in leaving and not self._serve(connection, frame):
                leaving.append(connection)
        for client in self.service.expire(now_ms=_now_ms(), uptime_ms=_uptime_ms()):
            _log.info("Expiring session 0x%x: timeout exceeded", client.session)
            if client in self.connections:
                leaving.append(self.connections[client])
        lines, self.service.lines = self.service.lines, []
        outbox, self.service.outbox = self.service.outbox, []
        if lines:
            await self._write(b"".join(lines))
        for client, data in outbox:
            if client in self.connections:
                self.counters.sent += 1
                self.connections[client].send(data)
        for connection in leaving:
            connection.hang_up()
        for connection in served:
            connection.done()

    def _serve(self, connection: "_Connection", frame: bytes) -> bool:
        """Serve one frame; False where the connection is to be closed."""
        client = connection.client
        times = {"now_ms": _now_ms(), "uptime_ms": _uptime_ms()}
        try:
            if connection.greeted:
                self.service.handle(client, frame, **times)
            else:
                connection.greeted = True
                self.service.connect(client, frame, **times)
                # The connection that had the session before loses it.
                for other in list(self.connections):
                    if other is not client and other.session == client.session:
                        self.connections[other].hang_up()
        except MalformedRequestError as error:
            _log.warning("Closing connection: client=%s %s", client.address, error)
            return False
        except HangUpError as error:
            _log.debug("Closing connection: client=%s %s", client.address, error)
            return False
        return True

    async def _write(self, data: bytes) -> None:
        try:
            await asyncio.to_thread(self._append, data)
        except OSError as error:
            raise ServerError(f"{self._path} cannot be written: {error.strerror}") from error

    def _append(self, data: bytes) -> None:
        journal_file.write(self._descriptor, data)
        size = os.fstat(self._descriptor).st_size
        if size < max(JOURNAL_BYTES_LEAST, 2 * self._snapshot_bytes):
            os.fdatasync(self._descriptor)
            return
        # No other thread changes the tree: `_work` waits for this one.
        old, self._descriptor = (
            self._descriptor,
            journal_file.replace(self._path, self.service.tree),
        )
        os.close(old)
        self._snapshot_bytes = os.fstat(self._descriptor).st_size


class _Connection(asyncio.Protocol):
    """Frames in and out of a socket, or one command of four letters."""

    def __init__(self, server: Server) -> None:
        self._server = server
        self._transport: asyncio.Transport | None = None
        self._received = bytearray()
        self._waiting = 0
        self._deadline: asyncio.TimerHandle | None = None
        self.client = Client("")
        self.greeted = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        self.client = Client(self._transport.get_extra_info("peername")[0])
        if not self._server.came(self):
            self._transport.abort()
            return
        loop = asyncio.get_running_loop()
        self._deadline = loop.call_later(CONNECT_S, self._hang_up_unless_greeted)

    def data_received(self, data: bytes) -> None:
        self._received += data
        if (
            not self.greeted
            and self._waiting == 0
            and self._received[:4].decode("latin-1") in COMMANDS
        ):
            self._command(self._received[:4].decode())
            return
        while len(self._received) >= 4:
            length = int.from_bytes(self._received[:4], "big", signed=True)
            if not 0 <= length <= FRAME_BYTES_MAX:
                _log.warning(
                    "Closing connection: client=%s sent a frame of %d bytes",
                    self.client.address,
                    length,
                )
                self.hang_up()
                return
            if len(self._received) < 4 + length:
                break
            frame = bytes(self._received[4 : 4 + length])
            del self._received[: 4 + length]
            self._waiting += 1
            self._server.received(self, frame)
        if self._waiting >= REQUESTS_MAX and self._transport is not None:
            self._transport.pause_reading()

    def connection_lost(self, exc: Exception | None) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
        self._transport = None
        self._server.went(self)

    def done(self) -> None:
        """One of its requests was served."""
        self._waiting -= 1
        if self._waiting == 0 and self._transport is not None and not self._transport.is_closing():
            self._transport.resume_reading()

    def send(self, data: bytes) -> None:
        """Send a frame, unless the client lets too much of it lie."""
        if self._transport is None:
            return
        self._transport.write(len(data).to_bytes(4, "big") + data)
        if self._transport.get_write_buffer_size() > UNSENT_BYTES_MAX:
            _log.warning("Closing connection: client=%s does not read", self.client.address)
            self._transport.abort()

    def hang_up(self) -> None:
        """Close the connection once what was sent is out."""
        if self._transport is not None:
            self._transport.close()

    def _hang_up_unless_greeted(self) -> None:
        if not self.greeted:
            self.hang_up()

    def _command(self, name: str) -> None:
        if self._transport is not None:
            server = self._server
            self._transport.write(answer(name, server.service, server.counters).encode())
            self._transport.close()


def _lock(path: Path) -> int:
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(descriptor)
        raise OSError(errno.EBUSY, "another process uses this directory", str(path)) from None
    return descriptor


def _now_ms() -> int:
    return time.time_ns() // 1_000_000


def _uptime_ms() -> int:
    return time.monotonic_ns() // 1_000_000
