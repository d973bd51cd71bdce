"""The demonstration: small, on a real broker, and wrong on purpose."""

import json
import os
import shlex
import shutil
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml
from confluent_kafka import Producer
from rich.console import Console

from barnabas_broker.testing import Broker
from tests.waiting import ANSWER, seconds, wait_for
from tools import demo
from tools.demo_input import Stream, kinds

RECORDS = [(b"key %d" % (number % 7), b"value %d" % number * number) for number in range(200)]


@pytest.fixture
def stream(kafka_broker: Broker, kafka_topic: str) -> Stream:
    """Two hundred records in three partitions, and the topic that the producer is warmed up on."""
    assert kafka_broker.running
    return Stream(kafka_topic, "records", RECORDS, "zstd")


@pytest.mark.kafka_topic(partitions=3)
def test_every_sent_record_is_received(kafka_broker: Broker, stream: Stream) -> None:
    """Every record is accounted for by partition and offset, and the bars reach their ends."""
    moved: list[int] = []
    sent, _ = demo.send(kafka_broker.bootstrap_servers, stream, moved.append)
    assert len(sent) == len(RECORDS)
    assert sum(moved) == stream.size
    moved.clear()
    demo.read_back(kafka_broker.bootstrap_servers, stream, sent, moved.append)
    assert sum(moved) == stream.size


@pytest.mark.kafka_topic(partitions=3)
def test_differences_are_found(kafka_broker: Broker, stream: Stream) -> None:
    """A changed byte, a lost record, a record too many: each is an error that says where."""
    bootstrap = kafka_broker.bootstrap_servers
    sent, _ = demo.send(bootstrap, stream, lambda _: None)
    (where, fingerprint) = next(iter(sent.items()))
    changed = {**sent, where: fingerprint[::-1]}
    with pytest.raises(demo.DemoError, match="differs from what was sent"):
        demo.read_back(bootstrap, stream, changed, lambda _: None)
    with pytest.raises(demo.DemoError, match=r"1 records of .* are missing, the first is 0@999"):
        demo.read_back(bootstrap, stream, {**sent, (0, 999): b""}, lambda _: None)
    producer = Producer({"bootstrap.servers": bootstrap})
    producer.produce(stream.topic, b"stray", partition=1)
    assert producer.flush(seconds(ANSWER)) == 0
    with pytest.raises(demo.DemoError, match="was never sent"):
        demo.read_back(bootstrap, stream, sent, lambda _: None)


def test_a_refused_record_is_an_error(kafka_broker: Broker, kafka_topic: str) -> None:
    """The broker's limit is the default one here, and the record is above it."""
    large = Stream(kafka_topic, "large", [(b"k", b"x" * 2_000_000)])
    with pytest.raises(demo.DemoError, match=f"1 records of {kafka_topic} refused"):
        demo.send(kafka_broker.bootstrap_servers, large, lambda _: None)


def test_digests_distinguish_key_and_value() -> None:
    """Null is not empty, and where the key ends matters."""
    pairs = [(b"ab", b"c"), (b"a", b"bc"), (None, b"abc"), (b"", b"abc"), (b"abc", None)]
    assert len({demo.digest(key, value) for key, value in pairs}) == len(pairs)


FEW = [Stream("demo.few", "few", RECORDS)]
CONSOLE = Console(highlight=False, width=200)


def test_there_is_a_topic_for_everything_that_is_streamed() -> None:
    """The manifest and what is looked for on the machine agree."""
    documents = yaml.safe_load_all(demo.MANIFEST.read_text(encoding="utf-8"))
    topics = {each["spec"].get("topicName") for each in documents}
    assert topics >= kinds().keys() | {demo.ROUND_TRIP_TOPIC}


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[demo.Cluster]:
    """The demonstration's cluster, with one small topic; gone after the test."""
    documents = list(yaml.safe_load_all(demo.MANIFEST.read_text(encoding="utf-8")))
    topics = {each["spec"].get("topicName"): each for each in documents}
    topic = topics["demo.tables"]
    topic["spec"]["topicName"] = "demo.few"
    with socket.create_server(("127.0.0.1", 0)) as free:
        documents[0]["spec"]["listeners"][0]["port"] = free.getsockname()[1]
    manifest = tmp_path / "few.yaml"
    wanted = [documents[0], topic, topics[demo.ROUND_TRIP_TOPIC]]
    manifest.write_text(yaml.safe_dump_all(wanted))
    cluster = demo.Cluster(manifest, tmp_path / "state")
    yield cluster
    cluster.down()
    shutil.rmtree(cluster.directory, ignore_errors=True)


def test_the_whole_of_it_leaves_nothing_running(
    cluster: demo.Cluster, capsys: pytest.CaptureFixture[str]
) -> None:
    """Exit code 0, a report, no process and no file left."""
    assert demo.run(CONSOLE, cluster, lambda: FEW, keep=False) == 0
    out = capsys.readouterr().out
    assert "All 200 records" in out
    for word in ("start-up", "round trip", "p50", "p99", "memory"):
        assert word in out
    _, stopped, commands = out.partition("The cluster is stopped and its files are deleted.")
    assert stopped
    assert runs(command_with("local status", commands)).returncode == 0
    manifest = shlex.split(command_with("local up", commands))[-1]
    assert Path(manifest).is_file()
    assert not cluster.directory.exists()
    assert not _answers(cluster)


def test_keep_leaves_a_cluster_and_says_where(
    cluster: demo.Cluster, capsys: pytest.CaptureFixture[str]
) -> None:
    """KEEP=1 is for trying things on what was just streamed in."""
    assert demo.run(CONSOLE, cluster, lambda: FEW, keep=True) == 0
    out = capsys.readouterr().out
    assert f"goes on at {cluster.bootstrap_servers}" in out
    assert _answers(cluster)
    assert "Ready" in runs(command_with("local status", out)).stdout
    consume = command_with("consume", out).replace("demo.packages", "demo.few")
    assert len(runs(consume).stdout.splitlines()) == 3
    assert runs(command_with("local down", out)).returncode == 0
    assert not _answers(cluster)


def test_ctrl_c_leaves_nothing(cluster: demo.Cluster, capsys: pytest.CaptureFixture[str]) -> None:
    """In the middle of it, with a second Ctrl-C while the cluster stops."""

    def interrupted() -> list[Stream]:
        os.kill(os.getpid(), signal.SIGINT)
        raise AssertionError("unreachable")

    down = cluster.down

    def impatient() -> None:
        os.kill(os.getpid(), signal.SIGINT)
        down()

    cluster.down = impatient  # type: ignore[method-assign]
    assert demo.run(CONSOLE, cluster, interrupted, keep=True) == 130
    cluster.down = down  # type: ignore[method-assign]
    assert not cluster.directory.exists()
    assert not _answers(cluster)
    out = capsys.readouterr().out
    assert out.index("Interrupted; stopping") < out.index("is stopped and its files are deleted")


def test_ctrl_c_during_the_start_leaves_nothing(tmp_path: Path) -> None:
    """The command that starts brokers comes to its end first: all that it started is known then."""
    command = [sys.executable, "-m", "tools.demo"]
    log = tmp_path / "output"
    with log.open("w") as output:
        process = subprocess.Popen(
            command,
            cwd=demo.ROOT,
            env=os.environ | {"TMPDIR": str(tmp_path)},
            stdout=output,
            stderr=subprocess.STDOUT,
        )
    (directory,) = wait_for(
        "the demonstration's directory",
        lambda: [path for path in tmp_path.iterdir() if path.is_dir()],
        until=bool,
    )
    process.send_signal(signal.SIGINT)
    assert process.wait() == 130, log.read_text()
    assert not directory.exists()
    assert "The cluster is stopped" in log.read_text()


def test_a_mismatch_is_a_failure_whatever_keep_says(
    cluster: demo.Cluster, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """One clear line, exit code 1, nothing left running."""
    monkeypatch.setattr(demo, "digest", lambda key, value: os.urandom(16))
    assert demo.run(CONSOLE, cluster, lambda: FEW, keep=True) == 1
    assert "The demonstration failed: demo.few-0@0 differs" in capsys.readouterr().out
    assert not _answers(cluster)


def test_a_cluster_that_cannot_start_is_a_failure(
    cluster: demo.Cluster, capsys: pytest.CaptureFixture[str]
) -> None:
    """What `barnabas local up` says is what the demonstration says."""
    cluster.manifest.write_text(json.dumps({"kind": "KafkaConnector"}))
    assert demo.run(CONSOLE, cluster, lambda: FEW, keep=False) == 1
    assert "kind: is KafkaConnector" in capsys.readouterr().out


def command_with(words: str, text: str) -> str:
    """The printed command that has the words, as a user would copy it."""
    return next(line for line in text.splitlines() if line.startswith("  ") and words in line)


def runs(command: str) -> subprocess.CompletedProcess[str]:
    """Paste a command into a shell."""
    return subprocess.run(["sh", "-c", command], capture_output=True, text=True, check=True)


def _answers(cluster: demo.Cluster) -> bool:
    host, port = cluster.bootstrap_servers.split(":")
    with socket.socket() as attempt:
        return attempt.connect_ex((host, int(port))) == 0
