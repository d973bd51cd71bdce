"""What the kernel is asked to do for a fetch, as strace sees it from outside the broker."""

from __future__ import annotations

import re
import signal
import subprocess
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from barnabas_kafka.protocol.messages.fetch import FetchResponse
from barnabas_kafka.records.builder import build_batch
from tests.broker.server.running import Wire, fetch_request
from tests.clients import START_MS
from tests.clients.brokers import Barnabas
from tests.waiting import START, seconds

READING = "read,pread64,readv,preadv,preadv2,mmap,sendfile,splice"
PROBED_BYTES = 256 << 10
_CALL = re.compile(r"(?:\[pid +\d+\] |\d+ +)?(\w+)\((.*)\) += (-?\d+)")


@contextmanager
def traced(pid: int, output: Path) -> Iterator[None]:
    """Record the calls of all threads of a process that may read a file, each in a file of its own:
    in one, calls at the same time would be cut in two.
    """
    command = ["strace", "-ff", "-y", "-e", f"trace={READING}", "-o", str(output), "-p", str(pid)]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as strace:
        assert strace.stderr is not None
        assert "attached" in (first := strace.stderr.readline()), first
        try:
            yield
        finally:
            strace.send_signal(signal.SIGINT)
            strace.wait(seconds(START))


def test_fetches_send_files_and_read_none(tmp_path: Path) -> None:
    """Records of a plain topic go from the page cache to the socket; none enter the broker.

    From the first offset to the last, in responses of 64 KiB and of a megabyte. The one thing
    asked of the file is a byte for every 256 KiB, with RWF_NOWAIT: whether it is in memory.
    """
    batch = build_batch([(START_MS, None, bytes(1000), ()) for _ in range(60)])
    with Barnabas(tmp_path / "broker") as broker:
        port = int(broker.bootstrap.rpartition(":")[2])
        with Wire(port) as wire:
            wire.create_topic("t")
            for _ in range(400):
                wire.produce("t", batch)
            sent = 0
            with traced(broker.pid, tmp_path / "trace"):
                for most in (64 << 10, 1 << 20):
                    sent += _read_all(wire, partition_max_bytes=most)
    assert sent == 2 * 400 * len(batch)
    calls: Counter[str] = Counter()
    for line in [
        line for file in tmp_path.glob("trace.*") for line in file.read_text().splitlines()
    ]:
        found = _CALL.search(line)
        if found is None or ".log>" not in found[2]:
            continue
        name, arguments, result = found[1], found[2], int(found[3])
        if name == "preadv2":
            assert "RWF_NOWAIT" in arguments
            assert result == 1
        calls[name] += max(result, 0)
    assert calls.keys() == {"sendfile", "preadv2"}
    assert calls["sendfile"] == sent
    assert calls["preadv2"] <= 2 * 400 + sent // PROBED_BYTES


def _read_all(wire: Wire, **limits: int) -> int:
    """Fetch a partition from its start to its end, one request at a time; returns the bytes."""
    offset = size = 0
    while True:
        response: FetchResponse = wire.ask(fetch_request([("t", 0, offset)], **limits), 12)
        (data,) = response.responses[0].partitions
        assert data.error_code == 0
        records = bytes(data.records or b"")  # type: ignore[arg-type]
        if not records:
            return size
        size += len(records)
        position = 0
        while position < len(records):
            offset = int.from_bytes(records[position : position + 8], "big") + 60
            position += 12 + int.from_bytes(records[position + 8 : position + 12], "big")
