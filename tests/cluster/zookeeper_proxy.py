"""A TCP proxy between brokers and a ZooKeeper that loses one message of one transaction.

It cuts both streams into ZooKeeper's frames: a length of four bytes, then, but for the first frame
of a connection, the xid in four bytes and, in requests, the type of the operation in four more. The
connection that lost a message is closed on both sides, so that the client knows that there will be
no answer, and not whether the transaction was carried out.
"""

from __future__ import annotations

import socket
import struct
import threading
from contextlib import suppress
from enum import Enum
from types import TracebackType
from typing import Final, Self

MULTI: Final = 14
"""`ZooDefs.OpCode.multi`: the type of a transaction."""
SET_DATA: Final = struct.pack(">i", 5)
"""`ZooDefs.OpCode.setData` within a transaction, before "no", "no error" and the path."""


class Lost(Enum):
    """Which message of a transaction is lost."""

    REQUEST = "request"
    ANSWER = "answer"


class _Loss:
    """One loss that was ordered: of the first transaction that writes a path."""

    def __init__(self, lost: Lost, path: str) -> None:
        self.lost = lost
        self.done = threading.Event()
        name = path.encode()
        self._written = struct.pack(">i", len(name)) + name

    def hits(self, request: bytes) -> bool:
        """Whether a request is such a transaction."""
        found = request.find(self._written)
        return _type_of(request) == MULTI and request[found - 9 : found - 5] == SET_DATA


class ZooKeeperProxy:
    """Listens from the start; set `target` before clients connect. Use as a context."""

    def __init__(self) -> None:
        self.target: tuple[str, int] = ("", 0)
        self._server = socket.create_server(("127.0.0.1", 0))
        self._loss: _Loss | None = None
        self._lock = threading.Lock()
        self._open: set[socket.socket] = set()
        self._threads = [threading.Thread(target=self._accept)]

    @property
    def connect(self) -> str:
        """What clients take for the address of ZooKeeper."""
        host, port = self._server.getsockname()
        return f"{host}:{port}"

    def __enter__(self) -> Self:
        self._threads[0].start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._server.shutdown(socket.SHUT_RDWR)
        self._server.close()
        with self._lock:
            _cut(*self._open)
        for thread in self._threads:
            thread.join()

    def lose(self, lost: Lost, path: str) -> threading.Event:
        """Lose a message of the next transaction that writes this znode; set once it is lost."""
        loss = _Loss(lost, path)
        with self._lock:
            self._loss = loss
        return loss.done

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                client, _ = self._server.accept()
                try:
                    server = socket.create_connection(self.target)
                except OSError:
                    client.close()
                    continue
                _Connection(self, client, server).start(self._threads)

    def opened(self, *ends: socket.socket) -> None:
        """Both sides of a connection are in use."""
        with self._lock:
            self._open.update(ends)

    def closed(self, *ends: socket.socket) -> None:
        """They are not any more."""
        with self._lock:
            self._open.difference_update(ends)
            for end in ends:
                end.close()

    def take(self, request: bytes) -> _Loss | None:
        """The loss that was ordered, if this request is what it is of; it is ordered no more."""
        with self._lock:
            loss = self._loss
            if loss is None or not loss.hits(request):
                return None
            self._loss = None
            return loss


class _Connection:
    """One client's connection, and the one that is made for it."""

    def __init__(self, proxy: ZooKeeperProxy, client: socket.socket, server: socket.socket) -> None:
        self._proxy = proxy
        self._client, self._server = client, server
        self._doomed: dict[int, _Loss] = {}

    def start(self, threads: list[threading.Thread]) -> None:
        """Pass on in both directions."""
        self._proxy.opened(self._client, self._server)
        back = threading.Thread(target=self._answers)
        forth = threading.Thread(target=self._requests, args=(back,))
        threads.append(forth)
        forth.start()

    def _requests(self, back: threading.Thread) -> None:
        back.start()
        with suppress(OSError, EOFError):
            _send(self._server, _receive(self._client))
            while True:
                request = _receive(self._client)
                loss = self._proxy.take(request)
                if loss is not None and loss.lost is Lost.REQUEST:
                    _cut(self._client, self._server)
                    loss.done.set()
                    break
                if loss is not None:
                    self._doomed[_xid_of(request)] = loss
                _send(self._server, request)
        _cut(self._client, self._server)
        back.join()
        self._proxy.closed(self._client, self._server)

    def _answers(self) -> None:
        with suppress(OSError, EOFError):
            _send(self._client, _receive(self._server))
            while True:
                answer = _receive(self._server)
                loss = self._doomed.get(_xid_of(answer))
                if loss is not None:
                    _cut(self._client, self._server)
                    loss.done.set()
                    break
                _send(self._client, answer)
        _cut(self._client, self._server)


def _xid_of(frame: bytes) -> int:
    return int.from_bytes(frame[:4], "big", signed=True)


def _type_of(request: bytes) -> int:
    return int.from_bytes(request[4:8], "big", signed=True)


def _receive(source: socket.socket) -> bytes:
    return _exactly(source, int.from_bytes(_exactly(source, 4), "big"))


def _exactly(source: socket.socket, size: int) -> bytes:
    data = b""
    while len(data) < size:
        more = source.recv(size - len(data))
        if not more:
            raise EOFError
        data += more
    return data


def _send(target: socket.socket, frame: bytes) -> None:
    target.sendall(len(frame).to_bytes(4, "big") + frame)


def _cut(*ends: socket.socket) -> None:
    for end in ends:
        with suppress(OSError):
            end.shutdown(socket.SHUT_RDWR)
