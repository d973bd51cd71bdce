"""A segment that brokers of old made too long for its offsets, given to Apache and to ourselves."""

from __future__ import annotations

import shutil
from pathlib import Path
from uuid import UUID

import pytest

from barnabas_broker.log.config import LogConfig
from barnabas_broker.log.directories import LogDirectories
from barnabas_kafka.ids import TopicPartition
from tests.broker.log.samples import CLUSTER, NOW, batch_of
from tests.oracle.apache import ApacheKafka, ZooKeeper, run_tool
from tests.oracle.coordination import register

pytestmark = pytest.mark.jvm

TP = TopicPartition("sparse", 0)
REACH = 2**31
TOO_LONG = (0, 1, REACH - 1, REACH, REACH + 7, 2 * REACH + 6, 3 * REACH)
NEXT = (4 * REACH, 4 * REACH + 1)
CONFIG = LogConfig(compact=True, delete=False)


def opened(directory: Path) -> LogDirectories:
    logs = LogDirectories.take([directory])
    logs.claim(broker_id=0, cluster_id=CLUSTER)
    logs.load(lambda _: CONFIG, now_ms=NOW)
    return logs


def segments(directory: Path) -> dict[str, bytes]:
    """Every segment with its bytes."""
    return {path.name: path.read_bytes() for path in (directory / str(TP)).glob("*.log")}


def test_both_split_it_alike(tmp_path: Path) -> None:
    """The same files with the same bytes; and Apache finds no fault with ours."""
    ours, theirs = tmp_path / "ours", tmp_path / "kafka-logs"
    logs = opened(ours)
    logs.create(TP, CONFIG, UUID(int=7), NOW)
    logs.close(clean=False)
    for offsets in (TOO_LONG, NEXT):
        data = b"".join(batch_of(offset=offset, leader_epoch=0) for offset in offsets)
        (ours / str(TP) / f"{offsets[0]:020d}.log").write_bytes(data)
        for suffix in (".index", ".timeindex"):
            (ours / str(TP) / f"{offsets[0]:020d}{suffix}").unlink(missing_ok=True)
    shutil.copytree(ours, theirs)

    logs = opened(ours)
    assert logs.logs[TP].log_end_offset == NEXT[-1] + 1
    logs.close()
    with ZooKeeper(directory=tmp_path / "zookeeper") as zookeeper:
        register(zookeeper, theirs, {TP.topic: {"cleanup.policy": "compact"}})
        with ApacheKafka(directory=tmp_path, zookeeper=zookeeper.connect, heap="512M"):
            pass
    assert segments(ours) == segments(theirs)
    assert len(segments(ours)) == 4

    files = sorted((ours / str(TP)).glob("*.log"))
    indexes = [file.with_suffix(suffix) for file in files for suffix in (".index", ".timeindex")]
    printed = run_tool(
        "kafka.tools.DumpLogSegments", "--deep-iteration",
        "--files", ",".join(map(str, [*files, *indexes])),
    )  # fmt: skip
    assert printed.returncode == 0
    reported = printed.stdout + printed.stderr
    for trouble in ("Mismatches", "isvalid: false", "out of order", "Exception"):
        assert trouble not in reported, reported
