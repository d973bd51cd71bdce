"""One data directory, two brokers: what Barnabas writes Apache reads, and the other way round."""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.clients.brokers import Barnabas
from tests.oracle import filling
from tests.oracle.apache import ApacheKafka, ZooKeeper, run_tool
from tests.oracle.coordination import register

pytestmark = pytest.mark.jvm

DUMP = "kafka.tools.DumpLogSegments"
NAMES = list(filling.TOPICS)


@dataclass(frozen=True)
class Written:
    """A data directory nobody has open, and what its writer told about it."""

    directory: Path
    reported: dict[str, Any]


def _filled_by_barnabas(directory: Path, *, kill: bool) -> Written:
    with Barnabas(directory, {"broker.id": "0"}) as barnabas:
        filling.create(barnabas.bootstrap, filling.TOPICS)
        filling.fill(barnabas.bootstrap)
        reported = filling.account(barnabas.bootstrap, NAMES)
        if kill:
            barnabas.kill()
    return Written(barnabas.log_dirs[0], reported)


@pytest.fixture(scope="module")
def by_barnabas(tmp_path_factory: pytest.TempPathFactory) -> Written:
    """Filled by Barnabas, which was then stopped."""
    return _filled_by_barnabas(tmp_path_factory.mktemp("by-barnabas"), kill=False)


@pytest.fixture(scope="module")
def by_apache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Written, ApacheKafka]]:
    """Filled by Apache 3.9.1, which is stopped and may be started again."""
    with ApacheKafka(directory=tmp_path_factory.mktemp("by-apache"), heap="512M") as apache:
        filling.create(apache.bootstrap, filling.TOPICS)
        filling.fill(apache.bootstrap)
        reported = filling.account(apache.bootstrap, NAMES)
        apache.stop()
        yield Written(apache.log_dirs[0], reported), apache


def dump(files: list[Path], *options: str) -> str:
    """What DumpLogSegments prints about the files."""
    done = run_tool(DUMP, *options, "--files", ",".join(map(str, files)))
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    return done.stdout


def test_apache_dumps_the_segments(by_barnabas: Written) -> None:
    """Every batch is valid and every record is the one that was served, also inside compression."""
    reported = by_barnabas.reported["codecs-0"]["records"]
    files = sorted((by_barnabas.directory / "codecs-0").glob("*.log"))
    printed = dump(files, "--deep-iteration", "--print-data-log")
    assert "isvalid: false" not in printed
    assert {"NONE", "GZIP", "SNAPPY", "LZ4", "ZSTD"} == {
        name.upper() for name in re.findall(r"compresscodec: (\w+)", printed)
    }
    found = re.findall(r"^\| offset: (\d+) .*? payload: (.*)$", printed, re.MULTILINE)
    served = [(str(offset), value) for offset, _, _, value, _ in reported]
    assert found == [(offset, value.decode()) for offset, value in served if value is not None]


def test_apache_finds_the_indexes_sound(by_barnabas: Written) -> None:
    """Offset and time indexes of all segments agree with their logs and pass its sanity check."""
    logs = sorted((by_barnabas.directory / "rolled-0").glob("*.log"))
    assert len(logs) > 3
    indexes = [log.with_suffix(suffix) for log in logs for suffix in (".index", ".timeindex")]
    assert all(index.exists() for index in indexes)
    printed = dump([*logs, *indexes], "--deep-iteration")
    for trouble in ("Mismatches", "mismatch", "Non-consecutive", "out of order", "false"):
        assert f"{trouble} in" not in printed, printed[-3000:]
    assert len(re.findall(r"^offset: \d+ position: \d+", printed, re.MULTILINE)) > 20
    assert len(re.findall(r"^timestamp: \d+ offset: \d+", printed, re.MULTILINE)) > 20
    checked = dump(indexes, "--index-sanity-check")
    assert checked.count("passed sanity check.") == len(indexes)


def test_apache_reads_the_producer_snapshots(by_barnabas: Written) -> None:
    """Each roll left a snapshot of the idempotent producer's state."""
    snapshots = sorted((by_barnabas.directory / "idempotent-0").glob("*.snapshot"))
    assert len(snapshots) >= 2
    printed = dump(snapshots)
    assert len(re.findall(r"producerId: \d+ producerEpoch: 0", printed)) == len(snapshots)


@pytest.mark.parametrize("end", ["stopped", "killed"])
def test_apache_serves_what_barnabas_wrote(end: str, by_barnabas: Written, tmp_path: Path) -> None:
    """The same records, offsets, watermarks and times; Apache appends and reads on.

    What a killed Barnabas leaves Apache recovers as it would its own. (Where a log begins after a
    deletion of records is noted once a minute: a kill before that brings them back, by Kafka too.)
    """
    written, names = by_barnabas, NAMES
    if end == "killed":
        written = _filled_by_barnabas(tmp_path / "killed", kill=True)
        names = [name for name in NAMES if name != "beheaded"]
    shutil.copytree(written.directory, tmp_path / "kafka-logs")
    with ZooKeeper(directory=tmp_path / "zookeeper") as zookeeper:
        register(zookeeper, tmp_path / "kafka-logs")
        with ApacheKafka(directory=tmp_path, zookeeper=zookeeper.connect, heap="512M") as apache:
            reported = filling.account(apache.bootstrap, names)
            assert reported == {partition: written.reported[partition] for partition in reported}
            filling.fill(apache.bootstrap)
            after = filling.account(apache.bootstrap, names)
            assert _extends(after, reported)


def test_barnabas_serves_what_apache_wrote(
    by_apache: tuple[Written, ApacheKafka], tmp_path: Path
) -> None:
    """The same records, offsets, watermarks and times; Barnabas appends and Apache reads on."""
    written, apache = by_apache
    copy = tmp_path / "kafka-logs"
    shutil.copytree(written.directory, copy)
    with Barnabas(tmp_path, {"broker.id": "0"}) as barnabas:
        assert filling.account(barnabas.bootstrap, NAMES) == written.reported
        filling.fill(barnabas.bootstrap)
        after = filling.account(barnabas.bootstrap, NAMES)
        assert _extends(after, written.reported)
    shutil.rmtree(written.directory)
    shutil.copytree(copy, written.directory)
    apache.start()
    assert filling.account(apache.bootstrap, NAMES) == after


def _extends(after: dict[str, Any], before: dict[str, Any]) -> bool:
    """Whether only appends lie between two accounts (one topic lost its head again)."""
    return all(
        after[name]["records"][: len(reported["records"])] == reported["records"]
        and (len(after[name]["records"]) > len(reported["records"]) or name.startswith("empty"))
        for name, reported in before.items()
        if name != "beheaded-0"
    )


@pytest.fixture(scope="module")
def by_old_apache(tmp_path_factory: pytest.TempPathFactory) -> Written:
    """Filled by Apache 2.8.2 in the formats of 0.9 and 0.10, one topic per format and codec."""
    topics = {
        f"v{magic}-{codec}": {"message.format.version": release} | filling.SMALL_SEGMENTS
        for magic, release in ((0, "0.9.0"), (1, "0.10.0"))
        for codec in filling.OLD_CODECS
    }
    directory = tmp_path_factory.mktemp("by-old-apache")
    with ApacheKafka("2.8.2", directory=directory, heap="512M") as apache:
        filling.create(apache.bootstrap, topics)
        for name in topics:
            codec = name.split("-")[1]
            settings = {"compression.type": codec}
            filling.send(apache.bootstrap, name, 400, settings, headers=False)
        # 2.8 refuses questions for times in its oldest format, newer brokers answer them.
        reported = filling.account(apache.bootstrap, topics, times=False)
        apache.stop()
        return Written(_kept(apache.log_dirs[0], directory), reported)


def _kept(log_directory: Path, directory: Path) -> Path:
    return Path(shutil.copytree(log_directory, directory / "kept"))


def test_barnabas_serves_segments_of_the_old_formats(
    by_old_apache: Written, tmp_path: Path
) -> None:
    """Message sets of magic 0 and 1, compressed ones too, as Apache 2.8.2 itself serves them."""
    first = sorted((by_old_apache.directory / "v0-gzip-0").glob("*.log"))[0]
    assert first.read_bytes()[16] == 0, "the segment is not of magic 0"
    shutil.copytree(by_old_apache.directory, tmp_path / "kafka-logs")
    names = sorted({name.rpartition("-")[0] for name in by_old_apache.reported})
    with Barnabas(tmp_path, {"broker.id": "0"}) as barnabas:
        reported = filling.account(barnabas.bootstrap, names, times=False)
        for name, expected in by_old_apache.reported.items():
            assert reported[name] == expected, name
