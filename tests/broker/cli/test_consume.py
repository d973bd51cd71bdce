"""`barnabas consume`."""

import subprocess
import sys
import time
from types import SimpleNamespace

import pytest

from barnabas_broker.cli import consume
from barnabas_broker.cli.errors import READER_LEFT
from barnabas_broker.testing import Broker
from tests.broker.cli.conftest import Run
from tests.waiting import RUN, seconds


@pytest.fixture
def filled(run: Run, kafka_topic: str) -> str:
    """A topic with the records 0 to 9 in partition 0."""
    run("produce", kafka_topic, "--partition", "0", stdin=b"".join(b"%d\n" % n for n in range(10)))
    return kafka_topic


@pytest.mark.parametrize(
    ("args", "values"),
    [
        (["--from-beginning", "--until-end"], range(10)),
        (["--offset", "earliest", "--max-messages", "3"], range(3)),
        (["--offset", "7", "--until-end"], range(7, 10)),
        (["--offset", "10", "--until-end"], []),
        (["--offset", "latest", "--until-end"], []),
        (["--offset", "@1000", "--max-messages", "2"], range(2)),
        (["--offset", "@2100-01-01", "--until-end"], []),
    ],
)
def test_start_and_end_by_offset_time_and_count(
    run: Run, filled: str, args: list[str], values: range | list[int]
) -> None:
    """By offset, by time, by count, and at the end."""
    result = run("consume", filled, *args)
    assert result.stdout.split() == [str(value) for value in values]
    assert result.stderr == f"Read {len(values)} records.\n"


def test_it_stops_when_no_record_comes_for_long(
    run: Run, filled: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The last record is read, and an hour passes without another one."""
    hours = [0]
    note = consume.Progress.note

    def noted(progress: consume.Progress, partition: int, offset: int) -> None:
        note(progress, partition, offset)
        hours[0] = 1

    clock = SimpleNamespace(monotonic=lambda: 3600 * hours[0] + time.monotonic())
    monkeypatch.setattr(consume.Progress, "note", noted)
    monkeypatch.setattr(consume, "time", clock)
    result = run("consume", filled, "--partition", "0", "--offset", "9", "--idle-timeout", "1800")
    assert (result.stdout, result.stderr) == ("9\n", "Read 1 record.\n")


@pytest.mark.kafka_topic(partitions=4)
def test_partitions_are_read_to_the_end_of_each(run: Run, kafka_topic: str) -> None:
    """Empty partitions do not keep it waiting; unchosen ones are not read."""
    for partition in ("0", "2", "3"):
        run("produce", kafka_topic, "--partition", partition, stdin=partition.encode() * 2)
    args = ("--from-beginning", "--until-end", "--print", "partition,value")
    lines = run("consume", kafka_topic, *args).stdout.splitlines()
    assert sorted(lines) == ["Partition:0\t00", "Partition:2\t22", "Partition:3\t33"]
    lines = run("consume", kafka_topic, "--partition", "1-2", *args).stdout.splitlines()
    assert lines == ["Partition:2\t22"]


def test_records_deleted_meanwhile_and_offsets_outside_are_errors(run: Run, filled: str) -> None:
    """Beginning somewhere else than asked would hide that records are missing."""
    error = run("consume", filled, "--offset", "11", "--until-end", fails=1).stderr
    assert f"{filled}-0 has offsets 0 to 10, not 11" in error
    run("consume", filled, "--offset", "soon", fails=2)
    run("consume", filled, "--print", "colour", fails=2)
    assert "no partition 5" in run("consume", filled, "--partition", "5", fails=1).stderr
    assert "UNKNOWN_TOPIC" in run("consume", "missing", "--until-end", fails=1).stderr


def test_a_missing_topic_is_not_made_by_reading_it(run: Run) -> None:
    """Even where the broker creates topics by itself: a typing error is not a topic."""
    run("consume", "typo", "--until-end", fails=1)
    assert "typo" not in run("topics", "list").stdout.split()


def test_a_reader_that_has_seen_enough(kafka_broker: Broker, filled: str) -> None:
    """`barnabas consume … | head -1` ends quietly, as SIGPIPE would end it."""
    command = [sys.executable, "-m", "barnabas_broker.cli", "consume", filled, "--from-beginning"]
    command += ["-b", kafka_broker.bootstrap_servers]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        assert process.stdout.readline() == b"0\n"
        process.stdout.close()
        # The next record finds the pipe closed.
        produced = [*command[:3], "produce", filled, "--quiet", *command[-2:]]
        subprocess.run(produced, input=b"more\n", check=True, timeout=seconds(RUN))
        assert process.wait(seconds(RUN)) == READER_LEFT
        assert b"Traceback" not in process.stderr.read()
