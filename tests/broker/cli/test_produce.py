"""`barnabas produce`."""

import os
import pty
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from barnabas_broker.cli.produce import LineFormat
from barnabas_broker.testing import Broker
from tests.broker.cli.conftest import Run, run_command
from tests.waiting import RUN, seconds


def records(run: Run, topic: str) -> list[dict[str, Any]]:
    """Everything in the topic."""
    args = ("consume", topic, "--from-beginning", "--until-end", "--output", "json")
    return run(*args).json_lines()


def test_lines_become_records_in_order(run: Run, kafka_topic: str, tmp_path: Path) -> None:
    """Any line ending, the last line without one, empty lines and bytes that are no text."""
    path = tmp_path / "lines"
    path.write_bytes(b"first\r\nsecond\n\n\xff\xfe\nlast")
    assert run("produce", kafka_topic, "--file", str(path)).stderr == (
        f"Sent 5 records to {kafka_topic}.\n"
    )
    values = [record["value"] for record in records(run, kafka_topic)]
    assert values == ["first", "second", "", {"base64": "//4="}, "last"]


def test_keys_headers_and_nulls(run: Run, kafka_topic: str) -> None:
    """A null value deletes a key on a compacted topic, so it must be possible to type one."""
    options = ("--key-separator", ":", "--null-marker", "NULL", "--header", "who=me")
    run("produce", kafka_topic, *options, "--header", "no=NULL", stdin=b"k:v:w\nk:NULL\nNULL:v\n")
    found = [(record["key"], record["value"]) for record in records(run, kafka_topic)]
    assert found == [("k", "v:w"), ("k", None), (None, "v")]
    assert records(run, kafka_topic)[0]["headers"] == [["who", "me"], ["no", None]]


@pytest.mark.kafka_topic(partitions=5)
def test_a_keys_partition_is_the_one_java_clients_choose(run: Run, kafka_topic: str) -> None:
    """murmur2 of the key: what a Java producer writes and what this writes stay in order."""
    run("produce", kafka_topic, "--key-separator", "\\t", stdin=b"21\tx\nfoobar\tx\na\tx\n")
    # murmur2("21") = -973932308, ("foobar") = -790332482: vectors of Kafka's own tests.
    expected = {"21": (-973932308 & 0x7FFFFFFF) % 5, "foobar": (-790332482 & 0x7FFFFFFF) % 5}
    found = {record["key"]: record["partition"] for record in records(run, kafka_topic)}
    assert {key: found[key] for key in expected} == expected


@pytest.mark.kafka_topic(partitions=3)
@pytest.mark.parametrize("acks", ["0", "1", "all"])
def test_a_partition_can_be_chosen(run: Run, kafka_topic: str, acks: str) -> None:
    """Whatever the key, whatever the acknowledgement."""
    run("produce", kafka_topic, "--partition", "2", "--acks", acks, stdin=b"a\nb\n")
    assert {record["partition"] for record in records(run, kafka_topic)} == {2}


@pytest.mark.parametrize("compression", ["none", "gzip", "snappy", "lz4", "zstd"])
def test_compression_changes_nothing_that_is_read(
    run: Run, kafka_topic: str, compression: str
) -> None:
    """Hundreds of records in a batch come back as they were."""
    lines = b"".join(b"line %d of many\n" % number for number in range(300))
    run("produce", kafka_topic, "--compression", compression, stdin=lines)
    text = "\n".join(record["value"] for record in records(run, kafka_topic)) + "\n"
    assert text.encode() == lines


@pytest.mark.kafka_topic(partitions=1, config={"max.message.bytes": 1000})
def test_failures_are_counted_and_are_code_1(run: Run, kafka_topic: str) -> None:
    """What the broker refuses, what it has no partition for, what cannot be parsed."""
    error = run("produce", kafka_topic, stdin=b"x" * 2000, fails=1).stderr
    assert "Error: 1 of 1 records were not delivered, record 1 first: " in error
    assert "MSG_SIZE_TOO_LARGE" in error
    error = run("produce", kafka_topic, "--partition", "7", stdin=b"x", fails=1).stderr
    assert "nknown partition" in error
    error = run("produce", kafka_topic, "--key-separator", ":", stdin=b"a:b\nc\n", fails=1).stderr
    assert error.endswith("Error: line 2: no key separator ':'\n")


@pytest.mark.parametrize(
    ("line_format", "line", "record"),
    [
        (LineFormat(), b"k\tv", ([], None, b"k\tv")),
        (LineFormat(parse_key=True), b"k\tv\tw", ([], b"k", b"v\tw")),
        (LineFormat(parse_key=True, ignore_error=True), b"kv", ([], None, b"kv")),
        (
            LineFormat(parse_key=True, parse_headers=True, null_marker=b"-"),
            b"a:1,b:-\t-\tv",
            ([("a", b"1"), ("b", None)], None, b"v"),
        ),
        (
            LineFormat(parse_headers=True, null_marker=b"-"),
            b"-\tv",
            ([], None, b"v"),
        ),
        (
            LineFormat(parse_headers=True, headers_delimiter=b"|", headers_separator=b";"),
            b"a:1;b:2:3|v",
            ([("a", b"1"), ("b", b"2:3")], None, b"v"),
        ),
    ],
)
def test_line_formats(line_format: LineFormat, line: bytes, record: object) -> None:
    """The reader of Kafka's console producer, property by property."""
    assert line_format.parse(line) == record


def test_properties_of_kafkas_console_producer(run: Run, kafka_topic: str) -> None:
    """Its names are accepted, others are refused with the list."""
    properties = ("--property", "parse.key=true", "--property", "key.separator=|")
    run("produce", kafka_topic, *properties, "--quiet", stdin=b"k|v\n")
    assert [record["key"] for record in records(run, kafka_topic)] == ["k"]
    error = run("produce", kafka_topic, "--property", "parse.kay=true", fails=2).stderr
    assert "parse.key" in error


def test_a_failure_reports_the_records_sent_before(run: Run, kafka_topic: str) -> None:
    """So that it is not sent twice: how many, and which record or line was wrong."""
    failed = run("produce", kafka_topic, "--key-separator", ":", stdin=b"a:1\nb:2\nc\n", fails=1)
    assert failed.stderr.splitlines() == [
        f"Sent 2 of 2 records to {kafka_topic}.",
        "Error: line 3: no key separator ':'",
    ]
    run("configs", "alter", "--entity-type", "topics", "--entity-name", kafka_topic,
        "--add", "max.message.bytes=1000")  # fmt: skip
    lines = b"small\n" + b"x" * 5000 + b"\n"
    failed = run("produce", kafka_topic, "-X", "batch.num.messages=1", stdin=lines, fails=1)
    sent, error = failed.stderr.splitlines()
    assert sent == f"Sent 1 of 2 records to {kafka_topic}."
    assert error.startswith("Error: 1 of 2 records were not delivered, record 2 first: ")


def test_a_prompt_on_a_terminal(run: Run, kafka_broker: Broker, kafka_topic: str) -> None:
    """On standard error, for each line that is typed; Ctrl-D ends them."""
    ours, theirs = pty.openpty()
    args = [sys.executable, "-m", "barnabas_broker.cli", "produce", kafka_topic,
            "-b", kafka_broker.bootstrap_servers]  # fmt: skip
    with subprocess.Popen(args, stdin=theirs, stderr=subprocess.PIPE) as producer:
        os.close(theirs)
        os.write(ours, b"typed\n\x04")
        _, err = producer.communicate(timeout=seconds(RUN))
    os.close(ours)
    assert producer.returncode == 0
    assert err.decode() == (
        f"One record a line; Ctrl-D ends them.\n> > \nSent 1 record to {kafka_topic}.\n"
    )
    assert [record["value"] for record in records(run, kafka_topic)] == ["typed"]


def test_a_topic_that_no_broker_creates(kafka_broker_factory: Any) -> None:
    """What creates it, or the one that was meant."""
    broker = kafka_broker_factory({"auto.create.topics.enable": False})
    address = broker.bootstrap_servers
    reported = run_command("produce", "orders", bootstrap=address, stdin=b"a\n", fails=1).stderr
    assert reported.endswith("create it with `barnabas topics create orders`\n")
    broker.create_topic("orders")
    reported = run_command("produce", "ordres", bootstrap=address, stdin=b"a\n", fails=1).stderr
    assert reported.endswith("the broker does not create any; did you mean orders?\n")


@pytest.mark.parametrize("command", ["barnabas produce {}", "kafka-console-producer --topic {}"])
def test_nothing_to_send_creates_no_topic(kafka_broker: Broker, command: str) -> None:
    """A record creates it where brokers create topics, as of Kafka's console producer."""
    address = kafka_broker.bootstrap_servers
    topic = f"nothing-{command.split()[0]}"
    program, *words = command.format(topic).split()
    line = [str(Path(sys.executable).parent / program), *words, "--bootstrap-server", address]
    for typed, listed in ((b"", False), (b"a\n", True)):
        subprocess.run(line, input=typed, timeout=seconds(RUN), check=True)
        assert (topic in run_command("topics", "list", bootstrap=address).stdout) is listed
