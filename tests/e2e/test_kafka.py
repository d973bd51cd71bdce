"""The client that goes with the scenarios, against a real broker."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from barnabas_broker.testing import Broker
from e2e import kafka
from tests.waiting import ANSWER, seconds

RECORDS = [(b"key %d" % (number % 5), bytes(range(number % 256))) for number in range(300)]


def client_of(broker: Broker) -> kafka.Client:
    """How a client reaches the broker."""
    return {"bootstrap.servers": broker.bootstrap_servers}


@pytest.mark.kafka_topic(partitions=3)
def test_records_are_read_at_their_offsets(kafka_broker: Broker, kafka_topic: str) -> None:
    """Sending says where each record is, and reading finds it there."""
    moved: list[int] = []
    sent = kafka.send(
        client_of(kafka_broker),
        kafka_topic,
        RECORDS,
        moved.append,
        limit_s=seconds(ANSWER),
    )
    assert sorted(sent.values()) == sorted(RECORDS)
    assert sum(moved) == sum(len(key) + len(value) for key, value in RECORDS)
    assert kafka.read(client_of(kafka_broker), kafka_topic, limit_s=seconds(ANSWER)) == sent


def test_a_refused_record_is_an_error(kafka_broker: Broker, kafka_topic: str) -> None:
    """What is larger than client and broker take is named by its key."""
    large = [(b"the large one", b"x" * 2_000_000)]
    with pytest.raises(kafka.TransferError, match="the large one"):
        kafka.send(client_of(kafka_broker), kafka_topic, large, limit_s=seconds(ANSWER))


def test_lines_hold_any_bytes() -> None:
    """Keys and values with line ends, blanks and nothing at all come back."""
    records = [(b"", b""), (b"a b\n", b"\n\n"), (b"\x00\xff", b" ")]
    assert kafka.from_lines(kafka.to_lines(records)) == records


def test_it_runs_as_a_program_without_the_project(
    kafka_broker: Broker, kafka_topic: str, tmp_path: Path
) -> None:
    """As in a pod: the file's text is given to Python, records go through pipes."""
    program = Path(kafka.__file__).read_text("utf-8")

    def client(verb: str, stdin: bytes) -> bytes:
        servers = kafka_broker.bootstrap_servers
        command = [sys.executable, "-c", program, verb, servers, kafka_topic]
        command.append(str(seconds(ANSWER)))
        done = subprocess.run(command, input=stdin, capture_output=True, check=True, cwd=tmp_path)
        return done.stdout

    client("send", kafka.to_lines(RECORDS))
    assert sorted(kafka.from_lines(client("read", b""))) == sorted(RECORDS)
