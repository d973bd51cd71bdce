"""`barnabas dump-log`."""

from pathlib import Path

import pytest
from confluent_kafka import Producer

from barnabas_broker.testing import Broker
from tests.broker.cli.conftest import Run
from tests.waiting import ANSWER, seconds

FIRST = "00000000000000000000"


@pytest.fixture
def stopped(kafka_broker_factory: object) -> Path:
    """The partition directory of a stopped broker: two batches, one compressed and idempotent."""
    assert callable(kafka_broker_factory)
    broker: Broker = kafka_broker_factory()
    broker.create_topic("t", partitions=1)
    for extra in ({}, {"compression.type": "zstd", "enable.idempotence": True, "linger.ms": 5000}):
        producer = Producer({"bootstrap.servers": broker.bootstrap_servers, **extra})
        for number in range(3):
            producer.produce("t", b"value %d" % number, b"key", headers=[("h", b"1")], timestamp=9)
            if not extra:
                producer.flush(seconds(ANSWER))
        assert producer.flush(seconds(ANSWER)) == 0
    broker.stop()
    return broker.log_dir / "t-0"


def test_batches_and_records(run: Run, stopped: Path) -> None:
    """Batches alone, records without and with their contents."""
    log = str(stopped / f"{FIRST}.log")
    rows = run("dump-log", log, "--output", "json").json_lines()
    assert rows[0] == {"file": log, "log_starting_offset": 0}
    assert [row["count"] for row in rows[1:]] == [1, 1, 1, 3]
    assert [row["codec"] for row in rows[1:]] == ["none", "none", "none", "zstd"]
    assert all(row["valid"] for row in rows[1:])
    assert rows[4]["producer_id"] >= 0
    rows = run("dump-log", log, "--deep", "--output", "json").json_lines()
    records = [row for row in rows if row.get("record")]
    assert [record["offset"] for record in records] == list(range(6))
    assert "payload" not in records[0]
    rows = run("dump-log", log, "--print-data-log", "--output", "json").json_lines()
    record = rows[-1]
    assert (record["key"], record["payload"], record["headers"]) == ("key", "value 2", [["h", "1"]])
    text = run("dump-log", log, "--print-data-log").stdout.splitlines()
    assert text[:2] == [f"Dumping {log}", "Log starting offset: 0"]
    assert text[3] == (
        "| offset: 0 CreateTime: 9 keySize: 3 valueSize: 7 sequence: -1 headerKeys: [h] "
        "key: key payload: value 0"
    )


def test_the_other_files(run: Run, stopped: Path) -> None:
    """Indexes, producer snapshot and leader epochs, several at once."""
    files = sorted(str(path) for path in stopped.iterdir() if path.name != "partition.metadata")
    rows = run("dump-log", *files, "--output", "json").json_lines()
    kinds = {Path(row["file"]).suffix or Path(row["file"]).name: row for row in rows}
    assert kinds["leader-epoch-checkpoint"]["start_offset"] == 0
    assert kinds[".snapshot"]["last_sequence"] == 2
    assert kinds[".timeindex"]["timestamp"] == 9
    for option in ("--index-sanity-check", "--verify-index-only"):
        indexes = [name for name in files if name.endswith("index")]
        assert "PROBLEM" not in run("dump-log", *indexes, option).stdout


def test_summary_of_a_segment(run: Run, stopped: Path) -> None:
    """Records, batches, sizes, times and codecs, from the segment or from the broker's notes."""
    log = stopped / f"{FIRST}.log"
    [found] = [
        row
        for row in run("dump-log", str(log), "--summary", "--output", "json").json_lines()
        if "records" in row
    ]
    assert (found["records"], found["batches"], found["codecs"]) == (6, 4, "none,zstd")
    assert (found["first_timestamp"], found["last_timestamp"]) == (9, 9)
    assert found["stored_bytes"] == log.stat().st_size
    [noted] = run("dump-log", str(stopped / "barnabas-segments"), "--output", "json").json_lines()
    for name in ("records", "batches", "raw_bytes", "stored_bytes", "first_timestamp", "codecs"):
        assert noted[name] == found[name], name


def test_damage_is_found_and_is_code_1(run: Run, stopped: Path) -> None:
    """A changed byte, a torn tail, an index that points into nothing."""
    log = stopped / f"{FIRST}.log"
    whole = log.read_bytes()
    log.write_bytes(whole[:70] + bytes([whole[70] ^ 1]) + whole[71:])
    result = run("dump-log", str(log), fails=1)
    assert "PROBLEM at position 0: the checksum does not match" in result.stdout
    assert result.stderr == "Error: 1 problem found\n"
    log.write_bytes(whole[:-5])
    assert "PROBLEM" in run("dump-log", str(log), fails=1).stdout
    log.write_bytes(whole)
    index = stopped / f"{FIRST}.index"
    index.write_bytes((5).to_bytes(4, "big") + (3).to_bytes(4, "big"))
    result = run("dump-log", str(index), "--verify-index-only", fails=1)
    assert "PROBLEM" in result.stdout
    index.write_bytes(b"torn")
    assert "PROBLEM" in run("dump-log", str(index), "--index-sanity-check", fails=1).stdout


def test_other_files_are_wrong_usage(run: Run, tmp_path: Path) -> None:
    """What it cannot read it does not guess at."""
    path = tmp_path / "notes.txt"
    path.write_text("x")
    assert "is none of .log" in run("dump-log", str(path), fails=2).stderr
    run("dump-log", str(tmp_path / "missing.log"), fails=2)
    lonely = tmp_path / f"{FIRST}.index"
    lonely.write_bytes(b"")
    assert "cannot read" in run("dump-log", str(lonely), fails=1).stderr
