"""Commands as a shell starts them: streams that are closed or full, arguments that are no text."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
from pathlib import Path

import pytest

from barnabas_broker.testing import Broker
from tests.broker.cli.test_mistakes import BIN
from tests.waiting import RUN, seconds

LISTS = ("barnabas topics list", "kafka-topics --list --bootstrap-server {broker}")


def run(broker: Broker, typed: str, *, end: str = "", **environment: str) -> tuple[int, str, str]:
    """Exit code and output of a command; `end` is what the shell does with its streams."""
    line = typed.format(broker=broker.bootstrap_servers)
    done = subprocess.run(
        ["/bin/sh", "-c", f"{BIN}/{line} {end}"],
        env={**os.environ, "BARNABAS_BOOTSTRAP": broker.bootstrap_servers, **environment},
        stdin=subprocess.DEVNULL, capture_output=True, text=True, errors="replace",
        timeout=seconds(RUN), check=False,
    )  # fmt: skip
    assert "Traceback" not in done.stderr
    return done.returncode, done.stdout, done.stderr


@pytest.mark.parametrize("typed", [*LISTS, "barnabas --help", "barnabas completion bash"])
def test_output_to_a_full_disk_is_one_line_of_error(
    kafka_broker: Broker, kafka_topic: str, typed: str
) -> None:
    """Of a listing as of a help; nothing is written as if it had been."""
    code, _, error = run(kafka_broker, typed, end="> /dev/full")
    assert (code, error) == (1, "Error: No space left on device\n")


@pytest.mark.parametrize(
    "typed",
    [
        *LISTS,
        "barnabas consume {{topic}} --until-end",
        "kafka-console-consumer --bootstrap-server {broker} --topic {{topic}} --timeout-ms 10",
    ],
)
def test_closed_output_takes_everything(kafka_broker: Broker, kafka_topic: str, typed: str) -> None:
    """As /dev/null does."""
    command = typed.replace("{{topic}}", kafka_topic)
    code, _, _ = run(kafka_broker, command, end=">&-")
    assert code == 0


@pytest.mark.parametrize(
    "typed",
    [
        "barnabas produce {{topic}}",
        "kafka-console-producer --bootstrap-server {broker} --topic {{topic}}",
    ],
)
def test_closed_input_is_empty(kafka_broker: Broker, kafka_topic: str, typed: str) -> None:
    """There is nothing to send."""
    command = typed.replace("{{topic}}", kafka_topic)
    code, _, _ = run(kafka_broker, command, end="<&-")
    assert code == 0


@pytest.mark.parametrize(
    ("typed", "expected"),
    [
        ("barnabas topics describe", 2),
        ("barnabas topics create", 2),
        ("kafka-topics --bootstrap-server {broker} --describe --topic", 1),
    ],
)
def test_an_argument_that_is_no_text_is_refused(
    kafka_broker: Broker, typed: str, expected: int
) -> None:
    """The client library crashed on it; in a locale without UTF-8 the remedy is said."""
    code, _, error = run(kafka_broker, typed, end='"$(printf "\\377")"')
    assert (code, error) == (expected, "Error: '\\udcff': an argument is no text in UTF-8\n")
    ascii_only = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    code, _, error = run(kafka_broker, typed, end='"$(printf "\\303\\274")"', **ascii_only)
    assert code == expected
    assert "an argument is no text in ASCII; set LC_ALL=C.UTF-8" in error


def test_kafka_topics_refuses_counts_in_apaches_words(kafka_broker: Broker) -> None:
    """On standard output, where Apache's tool prints it; -1 was taken for the broker's default."""
    create = "kafka-topics --bootstrap-server {broker} --create --topic t"
    for option, text in (
        ("--partitions 0", "The partitions must be greater than 0"),
        ("--partitions -1", "The partitions must be greater than 0"),
        ("--replication-factor 99999", "The replication factor must be between 1 and 32767 inc"),
    ):
        code, output, _ = run(kafka_broker, f"{create} {option}")
        assert code == 1
        assert output.startswith(f"Error while executing topic command : {text}")


@pytest.mark.parametrize(
    "typed",
    [
        "barnabas topics list -b {address}",
        "barnabas produce orders -b {address}",
        "barnabas perf produce orders -b {address}",
        "kafka-topics --list --bootstrap-server {address}",
        "kafka-consumer-groups --list --bootstrap-server {address}",
    ],
)
def test_ctrl_c_ends_a_command_as_the_signal_does(typed: str) -> None:
    """At once and without a word, while a broker does not answer: a shell's loop ends with it."""
    with socket.create_server(("127.0.0.1", 0)) as broker:
        program, *words = typed.format(address=f"127.0.0.1:{broker.getsockname()[1]}").split()
        command = [str(BIN / program), *words]
        with subprocess.Popen(command, stdin=subprocess.PIPE, stderr=subprocess.PIPE) as process:
            assert process.stdin is not None
            process.stdin.write(b"a line\n")
            process.stdin.flush()
            broker.settimeout(seconds(RUN))
            connections = [broker.accept() for _ in range(2)]  # One to try the port; the client's.
            process.send_signal(signal.SIGINT)
            said = process.communicate(timeout=seconds(RUN))[1]
        for connection, _ in connections:
            connection.close()
    assert (process.returncode, said) == (-signal.SIGINT, b"")


def test_ctrl_c_while_modules_are_loaded_ends_without_a_traceback(tmp_path: Path) -> None:
    """Which takes long where the machine is busy or its disk cold."""
    gate = tmp_path / "gate"
    os.mkfifo(gate)
    (tmp_path / "click.py").write_text(f"open({str(gate)!r}).read()")
    environment = {**os.environ, "PYTHONPATH": str(tmp_path)}
    command = [str(BIN / "barnabas"), "--help"]
    with (
        subprocess.Popen(command, env=environment, stderr=subprocess.PIPE) as process,
        gate.open("w"),  # When the other end is open.
    ):
        process.send_signal(signal.SIGINT)
        said = process.communicate(timeout=seconds(RUN))[1]
    assert (process.returncode, said) == (-signal.SIGINT, b"")
