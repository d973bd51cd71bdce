"""What a cleaning leaves, under the eyes of Apache's own reader."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest

from barnabas_kafka.records.compression import Codec
from tests.broker.log.cleaner.histories import COMPACT, clean, open_compacted, survivors, write
from tests.broker.log.samples import NOW
from tests.oracle.apache import run_tool

pytestmark = pytest.mark.jvm


def test_apache_reads_a_compacted_log(tmp_path: Path) -> None:
    """Batches, indexes, gaps, delete horizons and empty batches pass its checks, and its reader
    finds the records that are there.
    """
    config = replace(COMPACT, segment_bytes=4000)
    logs, log = open_compacted(tmp_path, config)
    for number in range(300):
        value = None if number % 50 == 7 else b"v%d" % number
        pair = (b"k%d" % (number % 40), value)
        other = (b"o%d" % (number % 90), b"w%d" % number)
        producer = (7, 0, 2 * number) if number < 200 else (-1, -1, -1)
        write(log, pair, other, codec=Codec(number % 5), producer=producer, now_ms=NOW + number)
    assert clean(logs) is not None
    left = [one for one in survivors(log) if one.offset < log.active.base_offset]
    files = [segment.file.path for segment in log.segments[:-1]]
    indexes = [file.with_suffix(suffix) for file in files for suffix in (".index", ".timeindex")]
    printed = run_tool(
        "kafka.tools.DumpLogSegments", "--deep-iteration", "--print-data-log",
        "--files", ",".join(map(str, [*files, *indexes])),
    )  # fmt: skip
    assert printed.returncode == 0
    gap = re.compile(r"Non-consecutive offsets in .*|  \d+ is followed by \d+")
    assert all(gap.fullmatch(line) for line in printed.stderr.splitlines()), printed.stderr
    assert "isvalid: false" not in printed.stdout
    for trouble in ("Mismatches", "out of order"):
        assert trouble not in printed.stdout
    found = re.findall(r"^\| offset: (\d+) .*?key: (\S+)", printed.stdout, re.MULTILINE)
    assert found == [(str(one.offset), (one.key or b"").decode()) for one in left]
    assert "deleteHorizonMs: OptionalLong[" in printed.stdout
    logs.close(clean=False)
