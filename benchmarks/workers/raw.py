"""A client of bare sockets: frames built beforehand go out, answers are counted and checked.

It does as little as possible in user space, so that the broker is what is measured: answers are
read many at a time and only their error codes are looked at, fetched records are dropped by the
kernel (MSG_TRUNC) without being copied. Work ends at the number of requests or of seconds given,
whichever comes first.

Modes: ``produce`` with one or more requests in flight on each of some connections, beside idle
ones; ``fetch`` on one connection, one request in flight.
"""

from __future__ import annotations

import resource
import select
import socket
import struct
import time
from array import array
from collections import deque
from collections.abc import Callable, Sequence
from itertools import cycle, islice
from typing import Final

from benchmarks.workers import frames
from benchmarks.workers.protocol import Report, Spec, serve

RECEIVE_BUFFER: Final = 1 << 20
# Frames up to this size are joined, so that a whole window goes out in one call.
JOIN_UP_TO: Final = 16 << 10
STALLED_AFTER: Final = 60.0


def connect(bootstrap: str) -> socket.socket:
    """A blocking connection without Nagle's delay, that the broker has taken up.

    Awaiting an answer on each keeps a thousand of them from overflowing the listener's backlog,
    where the kernel would let them wait for whole seconds.
    """
    host, _, port = bootstrap.rpartition(":")
    connection = socket.create_connection((host, int(port)), timeout=STALLED_AFTER)
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    connection.sendall(frames.api_versions_frame())
    (size,) = struct.unpack(">i", connection.recv(4, socket.MSG_WAITALL))
    connection.recv(size, socket.MSG_WAITALL)
    return connection


class Pipeline:
    """One connection that keeps `depth` Produce requests in flight."""

    def __init__(
        self, connection: socket.socket, requests: Sequence[bytes], answer: frames.ProduceAnswer
    ) -> None:
        self.connection = connection
        self.answer = answer
        self.in_flight = 0
        self.sent_at: deque[int] = deque()
        self._partial = 0
        self._next = cycle(requests)
        self._joins = len(requests[0]) <= JOIN_UP_TO

    def send(self, count: int) -> None:
        """Send the next `count` requests."""
        self.in_flight += count
        now = time.perf_counter_ns()
        self.sent_at.extend([now] * count)
        if self._joins:
            self.connection.sendall(b"".join(islice(self._next, count)))
        else:
            for request in islice(self._next, count):
                self.connection.sendall(request)

    def receive(self, buffer: bytearray) -> int:
        """Read what has come; returns how many answers it completed. Raises on an error code."""
        answers = self._receive_many(buffer) if self.answer.partitions == 1 else self._one(buffer)
        self.in_flight -= answers
        return answers

    def _receive_many(self, buffer: bytearray) -> int:
        """Small answers: as many as there are, the last perhaps in part."""
        size = self.answer.size
        got = self.connection.recv_into(buffer)
        if not got:
            raise EOFError("the broker closed the connection")
        for byte in (self.answer.first_error, self.answer.first_error + 1):
            # That byte of every answer, whatever part of the first one came before.
            if any(buffer[(byte - self._partial) % size : got : size]):
                raise RuntimeError(f"the broker answered an error: {_beginning(buffer, got)}")
        answers, self._partial = divmod(self._partial + got, size)
        return answers

    def _one(self, buffer: bytearray) -> int:
        """An answer about many partitions: exactly one."""
        answer = self.answer
        got = self.connection.recv_into(buffer, answer.size, socket.MSG_WAITALL)
        if got != answer.size:
            raise EOFError("the broker closed the connection")
        for byte in (answer.first_error, answer.first_error + 1):
            if any(buffer[byte : answer.error_end : answer.error_distance]):
                raise RuntimeError(f"the broker answered an error: {_beginning(buffer, got)}")
        return 1


def prepare_produce(spec: Spec) -> Callable[[], Report]:
    """Connections and frames for requests of `partitions_per_request` batches each."""
    now_ms = time.time_ns() // 1_000_000
    batch, records = frames.batch_of(spec["batch_bytes"], spec["record_bytes"], now_ms=now_ms)
    per_request = spec["partitions_per_request"]
    topic = spec["topic"]
    requests = [
        frames.produce_frame(
            topic, [(p, batch) for p in range(first, first + per_request)], acks=spec["acks"]
        )
        for first in range(0, spec["partitions"], per_request)
    ]
    answer = frames.produce_answer(topic, per_request)
    allow_many_files()
    idle = [connect(spec["bootstrap"]) for _ in range(spec["idle"])]
    pipelines = [
        # Each begins at another request of the round, so that they do not all meet.
        Pipeline(connect(spec["bootstrap"]), _rotated(requests, i), answer)
        for i in range(spec["connections"])
    ]

    def work() -> Report:
        if len(pipelines) == 1 and spec["depth"] == 1:
            report = _one_at_a_time(pipelines[0], spec["requests"], spec["seconds"])
        else:
            report = _pipelined(pipelines, spec)
        for connection in idle:
            connection.close()
        done = report["requests"] * per_request
        return {**report, "bytes": done * len(batch), "records": done * records}

    return work


def _one_at_a_time(pipeline: Pipeline, limit: int, seconds: float) -> Report:
    """One request in flight on one blocking connection: the latency a waiting caller sees."""
    buffer = bytearray(RECEIVE_BUFFER)
    latencies = array("q")
    begin = time.perf_counter_ns()
    end = begin + int(seconds * 1e9)
    now = begin
    while len(latencies) < limit and now < end:
        sent = now
        pipeline.send(1)
        while pipeline.in_flight:
            pipeline.receive(buffer)
        now = time.perf_counter_ns()
        latencies.append(now - sent)
    return _report(latencies, now - begin)


def _pipelined(pipelines: Sequence[Pipeline], spec: Spec) -> Report:
    """Every connection kept full until the work is done, then drained."""
    buffer = bytearray(RECEIVE_BUFFER)
    latencies = array("q")
    poller = select.epoll()
    by_descriptor = {pipeline.connection.fileno(): pipeline for pipeline in pipelines}
    for descriptor in by_descriptor:
        poller.register(descriptor, select.EPOLLIN)
    to_send = spec["requests"]
    begin = now = time.perf_counter_ns()
    end = begin + int(spec["seconds"] * 1e9)
    for pipeline in pipelines:
        pipeline.send(min(spec["depth"], to_send))
        to_send -= min(spec["depth"], to_send)
    in_flight = sum(pipeline.in_flight for pipeline in pipelines)
    while in_flight:
        ready = poller.poll(STALLED_AFTER)
        if not ready:
            raise TimeoutError(f"no answer for {STALLED_AFTER:g} s, {in_flight} in flight")
        for descriptor, _ in ready:
            pipeline = by_descriptor[descriptor]
            answers = pipeline.receive(buffer)
            now = time.perf_counter_ns()
            latencies.extend(now - pipeline.sent_at.popleft() for _ in range(answers))
            more = min(answers, to_send) if now < end else 0
            if more:
                pipeline.send(more)
                to_send -= more
            in_flight += more - answers
    poller.close()
    return _report(latencies, now - begin)


def prepare_fetch(spec: Spec) -> Callable[[], Report]:
    """Frames that walk a preloaded partition of equal batches in steps of about `max_bytes`."""
    topic, max_bytes = spec["topic"], spec["max_bytes"]
    step = max(1, max_bytes // spec["batch_bytes"]) * spec["batch_records"]
    offsets = range(0, max(1, spec["end_offset"] - step + 1), step)
    requests = [
        frames.fetch_frame(topic, partition=0, offset=offset, max_bytes=max_bytes)
        for offset in offsets
    ]
    answer = frames.fetch_answer(topic)
    connection = connect(spec["bootstrap"])
    head = bytearray(answer.head)
    # Never written to: with MSG_TRUNC the kernel drops what would have gone here.
    nowhere = bytearray(max_bytes + (1 << 20))

    def fetch_one(request: bytes) -> int:
        connection.sendall(request)
        _receive_head(connection, head)
        (size,) = struct.unpack_from(">i", head, 0)
        errors = (
            struct.unpack_from(">h", head, answer.request_error)[0],
            struct.unpack_from(">h", head, answer.partition_error)[0],
        )
        (volume,) = struct.unpack_from(">i", head, answer.records_length)
        if any(errors) or volume <= 0:
            raise RuntimeError(f"fetch answered errors {errors} and {volume} bytes of records")
        rest = size + 4 - answer.head
        while rest:
            got = connection.recv_into(nowhere, min(rest, len(nowhere)), socket.MSG_TRUNC)
            if not got:
                raise EOFError("the broker closed the connection")
            rest -= got
        return int(volume)

    def work() -> Report:
        latencies = array("q")
        volume = 0
        begin = now = time.perf_counter_ns()
        end = begin + int(spec["seconds"] * 1e9)
        for request in cycle(requests):
            volume += fetch_one(request)
            before, now = now, time.perf_counter_ns()
            latencies.append(now - before)
            if now >= end:
                break
        return {**_report(latencies, now - begin), "bytes": volume}

    return work


def prepare(spec: Spec) -> Callable[[], Report]:
    """The work that the specification's mode asks for."""
    return prepare_produce(spec) if spec["mode"] == "produce" else prepare_fetch(spec)


def _rotated(requests: list[bytes], by: int) -> list[bytes]:
    by %= len(requests)
    return requests[by:] + requests[:by]


def _receive_head(connection: socket.socket, head: bytearray) -> None:
    got = connection.recv_into(head, len(head), socket.MSG_WAITALL)
    if got != len(head):
        raise EOFError("the broker closed the connection")


def _report(latencies: array[int], nanoseconds: int) -> Report:
    ordered = sorted(latencies)
    return {
        "requests": len(ordered),
        "seconds": nanoseconds / 1e9,
        "p50_us": ordered[len(ordered) // 2] / 1e3,
        "p99_us": ordered[min(len(ordered) - 1, len(ordered) * 99 // 100)] / 1e3,
        "max_us": ordered[-1] / 1e3,
    }


def _beginning(buffer: bytearray, got: int) -> str:
    return f"response begins {bytes(buffer[: min(got, 80)]).hex()}"


def allow_many_files() -> None:
    """Have as many connections as the system allows."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft < hard:
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


if __name__ == "__main__":
    serve(prepare)
