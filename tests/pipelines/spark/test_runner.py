"""A pipeline as a process: killed, stopped, watched, and refused."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from barnabas_broker.testing import Broker
from barnabas_broker.testing.plugin import BrokerFactory
from tests.pipelines.spark.archives import Sender, numbered, rows_of
from tests.pipelines.spark.running import Pipeline, run, write_pipeline
from tests.waiting import wait_for

BATCH = 1_500


@pytest.mark.kafka_topic(partitions=3)
def test_kill_9_loses_nothing_and_repeats_nothing(
    kafka_broker: Broker, sender: Sender, kafka_topic: str, tmp_path: Path, data: Path
) -> None:
    """Killed while a batch is written, when it is written, when it has appeared, and told to stop;
    each time with more records waiting. A reader who knows nothing of Spark finds each record once,
    all along.
    """
    file = write_pipeline(tmp_path, kafka_topic, batch=BATCH)
    bootstrap = kafka_broker.bootstrap_servers
    moments = ("batch 1: writing", "batch 3: written", "batch 5: published", "batch 7: writing")
    for number, moment in enumerate(moments):
        for partition in range(3):
            sender.send(kafka_topic, partition, numbered(2_000, first=number * 2_000))
        with Pipeline(file, data, bootstrap, "--once") as pipeline:
            pipeline.await_line(moment)
            if number == 1:
                pipeline.kill_python()
            elif number == 3:
                assert pipeline.terminate() == 0, "".join(pipeline.said)
                assert (data / "records" / "batch=7").exists()
            else:
                pipeline.kill()
        found = rows_of(data / "records")
        assert len(found) == len(set(found))
        assert set(found) <= set(sender.sent)
    run(file, data, bootstrap)
    assert sorted(rows_of(data / "records")) == sorted(sender.sent)
    assert not list((data / "records" / "_staging").glob("*/batch=*"))


def test_a_pipeline_reports_its_status_and_stops_on_sigterm(
    kafka_broker: Broker, sender: Sender, kafka_topic: str, tmp_path: Path, data: Path
) -> None:
    """/status and the file say the same; SIGTERM ends it with 0; the next run goes on."""
    file = write_pipeline(tmp_path, kafka_topic)
    bootstrap = kafka_broker.bootstrap_servers
    for round_ in range(2):
        with Pipeline(file, data, bootstrap) as pipeline:
            address = pipeline.await_address()
            pipeline.await_line("records-to-parquet: ")
            sender.send(kafka_topic, 0, numbered(100, first=round_ * 100))
            rows = int(pipeline.await_line(r"INFO batch \d+: (\d+) rows")[1])
            while rows < 100:
                rows += int(pipeline.await_line(r"INFO batch \d+: (\d+) rows")[1])
            status = _told_twice(pipeline, address, data)
            assert status | {"phase": "Running", "rows": 100, "lag": 0} == status
            assert status["lastBatchId"] >= round_
            assert status["batches"] >= 1
            second = _refused(file, data, bootstrap)
            assert second == (
                f"Error: another pipeline is at work in {data}: stop it, or use another --data\n"
            )
            assert pipeline.terminate() == 0, "".join(pipeline.said)
            assert "Traceback" not in "".join(pipeline.said)
        assert json.loads((data / "status.json").read_text())["phase"] == "Stopped"
    assert sorted(rows_of(data / "records")) == sorted(sender.sent)


def test_a_pipeline_waits_for_broker_and_topics(
    kafka_broker_factory: BrokerFactory, tmp_path: Path, data: Path
) -> None:
    """Applied all at once, the pipeline is there first; its phase says what it waits for. Later a
    broker that is killed and started again does not end it.
    """
    broker = kafka_broker_factory({"auto.create.topics.enable": False})
    bootstrap = broker.bootstrap_servers
    broker.stop()
    file = write_pipeline(tmp_path, "late")
    with Pipeline(file, data, bootstrap, "--wait", "100") as pipeline:
        address = pipeline.await_address()
        pipeline.await_line("waiting: no broker answers at")
        broker.start()
        pipeline.await_line("waiting: the cluster at .* has no topic late")
        assert pipeline.status(address)["phase"] == "WaitingForTopics"
        broker.create_topic("late")
        sender = Sender(bootstrap)
        sender.send("late", 0, numbered(1))
        pipeline.await_line("INFO batch 0: 1 rows")
        assert pipeline.status(address)["phase"] == "Running"
        broker.kill()
        broker.start()
        sender.send("late", 0, numbered(1, first=1))
        pipeline.await_line("INFO batch 1: 1 rows")
        assert pipeline.terminate() == 0, "".join(pipeline.said)
    assert sorted(rows_of(data / "records")) == sorted(sender.sent)


def test_a_pipeline_stops_while_its_broker_hangs(
    kafka_broker_factory: BrokerFactory, tmp_path: Path, data: Path
) -> None:
    """Its source would wait a minute for the answer, which is all the time that a pod has."""
    broker = kafka_broker_factory({})
    broker.create_topic("records")
    sender = Sender(broker.bootstrap_servers)
    sender.send("records", 0, numbered(1))
    with Pipeline(write_pipeline(tmp_path, "records"), data, broker.bootstrap_servers) as pipeline:
        pipeline.await_line("INFO batch 0: 1 rows")
        os.kill(broker.pid, signal.SIGSTOP)
        try:
            wait_for("a request to the broker", lambda: _unread_bytes(broker))
            assert pipeline.terminate() == 0, "".join(pipeline.said)
        finally:
            os.kill(broker.pid, signal.SIGCONT)
    said = "".join(pipeline.said)
    assert "the query does not stop: it waits for a broker that does not answer" in said
    assert "its JVM is killed" in said
    assert json.loads((data / "status.json").read_text())["phase"] == "Stopped"
    assert sorted(rows_of(data / "records")) == sorted(sender.sent)


def _unread_bytes(broker: Broker) -> int:
    """What clients have sent to a broker and it has not read."""
    port = int(broker.bootstrap_servers.rpartition(":")[2])
    rows = (line.split() for line in Path("/proc/net/tcp").read_text("ascii").splitlines()[1:])
    ours = (row for row in rows if int(row[1].rpartition(":")[2], 16) == port)
    return sum(int(row[4].rpartition(":")[2], 16) for row in ours)


def test_a_checkpoint_and_its_output_stay_together(
    kafka_broker: Broker, sender: Sender, kafka_topic: str, tmp_path: Path, data: Path
) -> None:
    """Without its checkpoint the output would be written over: refused, with the way out."""
    file = write_pipeline(tmp_path, kafka_topic)
    sender.send(kafka_topic, 0, numbered(10))
    run(file, data, kafka_broker.bootstrap_servers)
    (data / "checkpoint" / "records-to-parquet").rename(tmp_path / "lost")
    said = _refused(file, data, kafka_broker.bootstrap_servers)
    assert f"Error: {data}/records was written with another checkpoint" in said
    assert json.loads((data / "status.json").read_text())["phase"] == "Failed"
    assert sorted(rows_of(data / "records")) == sorted(sender.sent)


def test_an_unusable_pipeline_is_one_line_before_spark_starts(tmp_path: Path, data: Path) -> None:
    """What, where, and what to do; exit code 1."""
    file = write_pipeline(tmp_path, "any")
    (tmp_path / "file").write_text("")
    nobody = "127.0.0.1:1"
    assert _refused(file, data, nobody) == (
        "Error: no broker answers at 127.0.0.1:1 (Connection refused):"
        " start it, or name another with --bootstrap\n"
    )
    assert f"Error: cannot write to {tmp_path}/file/" in _refused(file, tmp_path / "file", nobody)
    java = _refused(file, data, nobody, JAVA_HOME=str(tmp_path), PATH="")
    assert java.startswith("Error: pipelines need Java 17 or newer (found none): install a JRE")


def test_an_installation_can_be_tested() -> None:
    """What an image runs after it was trimmed."""
    command = [sys.executable, "-m", "barnabas_pipelines", "selftest"]
    out = subprocess.run(command, capture_output=True, check=True, text=True)
    assert out.stdout.startswith("Spark starts, has the Kafka connector")


def _told_twice(pipeline: Pipeline, address: str, data: Path) -> Any:
    """What /status and the file both say: Spark may report between two looks at them."""
    while json.loads((data / "status.json").read_text()) != (reported := pipeline.status(address)):
        pass
    return reported


def _refused(file: Path, data: Path, bootstrap: str, **environment: str) -> str:
    """What a run says that must fail with 1, without Spark's own lines and the log's."""
    command = [sys.executable, "-m", "barnabas_pipelines", "run", str(file), "--once"]
    command += ["--data", str(data), "--bootstrap", bootstrap, "--status", "127.0.0.1:0"]
    command += ["--wait", "0"]
    out = subprocess.run(
        command, capture_output=True, check=False, text=True, env={**os.environ, **environment}
    )
    assert out.returncode == 1, out.stderr
    assert "Traceback" not in out.stderr
    return "".join(line for line in out.stderr.splitlines(keepends=True) if "Error" in line)
