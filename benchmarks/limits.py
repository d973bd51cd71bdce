"""What the machine can do at most: page-cache writes, loopback sends, sendfile, checksums.

Measured in the same run as the brokers, because figures of a shared or virtual machine hold only
for the moment. Each limit is the best of a few short passes, single-threaded, with a child process
as the receiver where there are two ends.
"""

from __future__ import annotations

import os
import socket
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path
from typing import Final

from barnabas_kafka.records.crc import crc32c
from benchmarks.model import MB, MIB, Scale

PASSES: Final = 3


@dataclass(frozen=True, slots=True)
class Limit:
    """One physical limit: MB/s by wall clock, and this process's CPU per MB."""

    name: str
    mb_per_s: float
    cpu_ms_per_mb: float


def measure(directory: Path, scale: Scale) -> list[Limit]:
    """All limits; files go to `directory` and are removed."""
    volume = scale.of(256 * MIB, 16 * MIB)
    return [
        *(_write(directory, size, volume) for size in (64 << 10, MIB)),
        *(_send(size, volume * 2) for size in (64 << 10, MIB)),
        *(_sendfile(directory, size, volume * 2) for size in (64 << 10, MIB)),
        *(_checksum(size, volume) for size in (1 << 10, 64 << 10, MIB)),
    ]


def _best(name: str, volume: int, work: Callable[[], None]) -> Limit:
    fastest = least_cpu = float("inf")
    for _ in range(PASSES):
        cpu, wall = time.process_time(), time.perf_counter()
        work()
        fastest = min(fastest, time.perf_counter() - wall)
        least_cpu = min(least_cpu, time.process_time() - cpu)
    return Limit(name, volume / MB / fastest, least_cpu * 1e3 / (volume / MB))


def _write(directory: Path, size: int, volume: int) -> Limit:
    chunk = os.urandom(size)

    def work() -> None:
        with tempfile.TemporaryFile(dir=directory) as file:
            descriptor = file.fileno()
            for position in range(0, volume, size):
                os.pwrite(descriptor, chunk, position)

    return _best(f"pwrite to a new file, {_title(size)}", volume, work)


def _send(size: int, volume: int) -> Limit:
    chunk = memoryview(os.urandom(size))

    def work() -> None:
        for _ in range(0, volume, size):
            connection.sendall(chunk)

    with _drain() as connection:
        return _best(f"loopback send, {_title(size)}", volume, work)


def _sendfile(directory: Path, size: int, volume: int) -> Limit:
    with tempfile.TemporaryFile(dir=directory) as file, _drain() as connection:
        file.write(os.urandom(size))
        file.flush()
        source, destination = file.fileno(), connection.fileno()

        def work() -> None:
            for _ in range(0, volume, size):
                sent = 0
                while sent < size:
                    sent += os.sendfile(destination, source, sent, size - sent)

        return _best(f"loopback sendfile, {_title(size)}", volume, work)


def _checksum(size: int, volume: int) -> Limit:
    chunk = memoryview(os.urandom(size))

    def work() -> None:
        for _ in range(0, volume, size):
            crc32c(chunk)

    return _best(f"crc32c, {_title(size)}", volume, work)


@contextmanager
def _drain() -> Iterator[socket.socket]:
    """A loopback connection whose other end is a process that drops everything."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        child = get_context("fork").Process(target=_swallow, args=(server,), daemon=True)
        child.start()
        try:
            with socket.create_connection(server.getsockname()) as connection:
                yield connection
        finally:
            child.join(10)
            if child.is_alive():
                child.kill()
                child.join()


def _swallow(server: socket.socket) -> None:
    connection, _ = server.accept()
    nowhere = bytearray(4 * MIB)
    while connection.recv_into(nowhere, len(nowhere), socket.MSG_TRUNC):
        pass


def _title(size: int) -> str:
    return f"{size >> 20} MiB" if size >= MIB else f"{size >> 10} KiB"
