"""`consume --group`: a real member of a group, which commits what it has printed."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from barnabas_broker.testing import Broker
from tests.broker.cli.conftest import Run
from tests.waiting import RUN, seconds, wait_for

COMMAND = (sys.executable, "-m", "barnabas_broker.cli")


def offsets(run: Run, group: str) -> list[tuple[int, int | None]]:
    """Partition and committed offset of all that the group has read."""
    rows = run("groups", "describe", group, "--output", "json").json()
    return [(row["partition"], row["committed"]) for row in rows]


def fill(run: Run, topic: str, count: int) -> None:
    lines = b"".join(b"%d\n" % number for number in range(count))
    run("produce", topic, "--partition", "0", stdin=lines)


@pytest.mark.kafka_topic(partitions=2)
def test_it_goes_on_where_the_group_is(run: Run, kafka_topic: str) -> None:
    """What was printed is committed, and no record beyond it."""
    fill(run, kafka_topic, 5)
    args = ("consume", kafka_topic, "--group", f"of-{kafka_topic}")
    first = run(*args, "--from-beginning", "--max-messages", "2")
    assert first.stdout.split() == ["0", "1"]
    assert (0, 2) in offsets(run, f"of-{kafka_topic}")
    rest = run(*args, "--until-end")
    assert rest.stdout.split() == ["2", "3", "4"]
    assert rest.stderr == "Read 3 records.\n"
    assert run(*args, "--until-end").stdout == ""
    rows = run("groups", "list", "--output", "json").json()
    assert {row["group"]: row["state"] for row in rows}[f"of-{kafka_topic}"] == "Empty"


@pytest.mark.kafka_topic(partitions=1)
def test_a_member_is_stopped(run: Run, kafka_broker: Broker, kafka_topic: str) -> None:
    """SIGTERM commits and leaves the group at once: another one need not wait for a session."""
    fill(run, kafka_topic, 3)
    environment = {**os.environ, "BARNABAS_BOOTSTRAP": kafka_broker.bootstrap_servers}
    args = ("consume", kafka_topic, "--group", f"of-{kafka_topic}", "--from-beginning")
    with subprocess.Popen(
        [*COMMAND, *args], env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as member:
        assert member.stdout is not None
        assert [member.stdout.readline() for _ in range(3)] == [b"0\n", b"1\n", b"2\n"]
        member.send_signal(signal.SIGTERM)
        _, err = member.communicate(timeout=seconds(RUN))
    assert (member.returncode, err) == (0, b"Read 3 records.\n")
    assert offsets(run, f"of-{kafka_topic}") == [(0, 3)]
    (row,) = run("groups", "describe", f"of-{kafka_topic}", "--state", "--output", "json").json()
    assert row["state"] == "Empty"


@pytest.mark.kafka_topic(partitions=1)
def test_a_member_without_partitions_has_nothing_to_read(
    run: Run, kafka_broker: Broker, kafka_topic: str, tmp_path: Path
) -> None:
    """With --until-end it ends, while another member has the only partition."""
    fill(run, kafka_topic, 1)
    environment = {**os.environ, "BARNABAS_BOOTSTRAP": kafka_broker.bootstrap_servers}
    args = ("consume", kafka_topic, "--group", f"of-{kafka_topic}", "--from-beginning")
    read = tmp_path / "read"
    with read.open("wb") as out:
        other = subprocess.Popen([*COMMAND, *args], env=environment, stdout=out)
    try:
        wait_for("the other member's record", read.read_bytes, until=lambda data: data == b"0\n")
        assert run(*args, "--until-end").stdout == ""
    finally:
        other.terminate()
        assert other.wait(seconds(RUN)) == 0


@pytest.mark.parametrize(
    ("args", "reported"),
    [
        (["--partition", "0"], "the group says who reads which partition"),
        (["--offset", "4"], "`barnabas groups reset-offsets` sets the others"),
        (["--offset", "@1000"], "`barnabas groups reset-offsets` sets the others"),
    ],
)
def test_options_that_conflict_with_a_group_are_refused(
    run: Run, args: list[str], reported: str
) -> None:
    """Is refused beside it."""
    assert reported in run("consume", "t", "--group", "g", *args, fails=2).stderr


def test_a_topic_that_is_not_there(run: Run) -> None:
    """Is told at once."""
    reported = run("consume", "nothing.here", "--group", "g", fails=1).stderr
    assert reported.startswith("Error: cannot read nothing.here: ")
