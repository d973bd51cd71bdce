"""Pipelines as KafkaUsers of a secured broker: they are given the files of their Secrets."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, Final

import psutil
import pytest
from confluent_kafka import Producer

from barnabas_pipelines import session
from tests.operator import examples
from tests.operator.secured_broker import SecuredBroker
from tests.pipelines.spark.archives import rows_of
from tests.pipelines.spark.running import Pipeline, write_pipeline
from tests.waiting import ANSWER, seconds, wait_for

READER: Final = "archivist"
WRITER: Final = "writer"
SECRETS: Final = ("password", "user.key", "user.password")
# All that a Spark program needs to know of the cluster is in the Secret.
PLAIN: Final = """
import json, sys
from pyspark.sql import SparkSession
topic, jars, *secrets = sys.argv[1:]
spark = (
    SparkSession.builder.master("local[1]").config("spark.driver.extraClassPath", jars)
    .config("spark.ui.enabled", "false").getOrCreate()
)
for number, file in enumerate(secrets):
    options = json.load(open(file))
    values = spark.createDataFrame([(f"{number}-{each}",) for each in range(10)], ["value"])
    values.write.format("kafka").options(**options).option("topic", topic).save()
    read = spark.read.format("kafka").options(**options).option("subscribe", topic).load()
    found = sorted(bytes(row.value).decode() for row in read.collect())
    streamed = (
        spark.readStream.format("kafka").options(**options).option("subscribe", topic)
        .option("startingOffsets", "earliest").load()
        .writeStream.format("memory").queryName(f"q{number}").trigger(availableNow=True).start()
    )
    streamed.awaitTermination()
    print(json.dumps([found, spark.table(f"q{number}").count()]))
spark.stop()
"""


@pytest.fixture(scope="module")
def secured(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SecuredBroker]:
    """A broker with TLS, passwords, certificates and ACLs, and a user who may write everything."""
    with SecuredBroker(tmp_path_factory.mktemp("tls")) as running:
        running.apply(user(WRITER, type="producer", topic="", patternType="prefixed"))
        yield running


def user(name: str, authentication: str = "scram-sha-512", **role: str) -> examples.Document:
    """A KafkaUser with one role."""
    roles = [{**role, "topic": role["topic"] or "of-"}] if role else []
    return examples.user(
        name, authentication={"type": authentication}, authorization={"roles": roles}
    )


def rotated(document: examples.Document, value: str) -> examples.Document:
    """The same user, who is to have another password."""
    document["metadata"]["annotations"] = {"barnabas.io/rotate": value}
    return document


def send(secured: SecuredBroker, topic: str, values: Iterable[str]) -> None:
    """Send records, as a client that is given its Secret."""
    settings = json.loads(secured.secret(WRITER)["librdkafka.json"])
    producer = Producer({**settings, "log_level": 0})
    for value in values:
        producer.produce(topic, value.encode())
    assert producer.flush(seconds(ANSWER)) == 0


def phase(pipeline: Pipeline, address: str, wanted: str) -> str:
    """Wait for a phase: brokers of a busy machine may not answer in between."""
    return wait_for(
        f"the phase {wanted}",
        lambda: str(pipeline.status(address)["phase"]),
        until=lambda found: found == wanted,
    )


def landed(data: Path) -> list[str]:
    """The values in the files."""
    return sorted((row.value or b"").decode() for row in rows_of(data / "records"))


def hidden(secured: SecuredBroker, name: str) -> set[bytes]:
    """What nobody else may know of a Secret."""
    data = secured.secret(name)
    texts = [data[key] for key in SECRETS if key in data]
    return {line.encode() for text in texts for line in text.splitlines() if "-----" not in line}


def reported(pipeline: Pipeline, *places: Path) -> bytes:
    """Arguments and variables of its processes, what they have said, and files."""
    processes = [psutil.Process(pipeline.pid), *psutil.Process(pipeline.pid).children()]
    assert len(processes) > 1
    found = [
        Path(f"/proc/{each.pid}/{file}") for each in processes for file in ("cmdline", "environ")
    ]
    for place in places:
        found += [each for each in place.rglob("*") if each.is_file()]
    return b"".join(each.read_bytes() for each in found) + "".join(pipeline.said).encode()


@pytest.mark.parametrize("authentication", ["scram-sha-512", "tls"])
def test_a_pipeline_authenticates_as_its_user_and_leaks_no_secret(
    authentication: str,
    secured: SecuredBroker,
    tmp_path: Path,
    data: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Over TLS, with a password or a certificate. Neither arguments, variables, logs, status,
    checkpoint nor Spark's record of everything that it did have any of them.
    """
    topic, name = f"of-{authentication}", f"{READER}-{authentication}"
    secured.create_topic(topic, partitions=2)
    secured.apply(user(name, authentication, type="consumer", topic=topic))
    directory, events, conf = (tmp_path / each for each in ("secret", "events", "conf"))
    for each in (directory, events, conf):
        each.mkdir()
    secured.mount(name, directory)
    lines = ("spark.eventLog.enabled true", f"spark.eventLog.dir {events.as_uri()}")
    (conf / "spark-defaults.conf").write_text("\n".join(lines))
    monkeypatch.setenv("SPARK_CONF_DIR", str(conf))
    sent = [f"{authentication} {n}" for n in range(100)]
    send(secured, topic, sent)
    file = write_pipeline(tmp_path, topic, user=name)
    with Pipeline(file, data, None, "--kafka-user", str(directory)) as pipeline:
        address = pipeline.await_address()
        pipeline.await_line(r"INFO batch \d+: 100 rows")
        assert pipeline.status(address)["phase"] == "Running"
        shown = reported(pipeline, data, events)
        assert pipeline.terminate() == 0, "".join(pipeline.said)
    assert b"jaas" in shown or authentication == "tls"
    assert [each for each in hidden(secured, name) if each in shown] == []
    assert any(events.iterdir())
    assert landed(data) == sorted(sent)


def test_a_rotated_password_ends_no_pipeline(
    secured: SecuredBroker, tmp_path: Path, data: Path
) -> None:
    """One process goes on while the password is changed: with the new one in its files before a
    connection is lost, and after one was refused. Each record is in the files once.
    """
    topic = "of-rotation"
    secured.create_topic(topic)
    reader = user(READER, type="consumer", topic=topic)
    secured.apply(reader)
    directory = tmp_path / "secret"
    directory.mkdir()
    secured.mount(READER, directory)
    file = write_pipeline(tmp_path, topic, user=READER)
    options = ("--kafka-user", str(directory), "--wait", "inf")
    with Pipeline(file, data, None, *options) as pipeline:
        address = pipeline.await_address()
        send(secured, topic, ["first"])
        pipeline.await_line(r"INFO batch \d+: 1 rows")

        secured.apply(rotated(reader, "1"))
        secured.mount(READER, directory)
        pipeline.await_line(f"the Secret of KafkaUser {READER} has changed: the query is started")
        secured.broker.stop()
        secured.broker.start()
        send(secured, topic, ["second"])
        pipeline.await_line(r"INFO batch \d+: 1 rows")

        secured.apply(rotated(reader, "2"))
        secured.broker.stop()
        secured.broker.start()
        send(secured, topic, ["third"])
        pipeline.await_line("do not trust each other|the brokers refuse")
        assert phase(pipeline, address, "WaitingForAuthentication")
        secured.mount(READER, directory)
        pipeline.await_line(r"INFO batch \d+: 1 rows")
        assert phase(pipeline, address, "Running")
        assert pipeline.terminate() == 0, "".join(pipeline.said)
    assert landed(data) == ["first", "second", "third"]


def test_a_pipeline_waits_for_its_acls_and_recovers(
    secured: SecuredBroker, tmp_path: Path, data: Path
) -> None:
    """It says which role it needs. Without the ACL that it had it waits again."""
    topic = "of-acls"
    secured.create_topic(topic)
    name = f"{READER}-acls"
    reader = user(name, type="consumer", topic=topic)
    secured.apply(user(name))
    directory = tmp_path / "secret"
    directory.mkdir()
    secured.mount(name, directory)
    file = write_pipeline(tmp_path, topic, user=name)
    options = ("--kafka-user", str(directory), "--wait", "inf")
    with Pipeline(file, data, None, *options) as pipeline:
        address = pipeline.await_address()
        pipeline.await_line("waiting: KafkaUser .* may not read")
        assert phase(pipeline, address, "WaitingForAuthorization")
        role = f"{{type: consumer, topic: {topic}}}"
        assert role in pipeline.status(address)["message"]
        secured.apply(reader)
        send(secured, topic, ["first"])
        pipeline.await_line(r"INFO batch \d+: 1 rows")

        secured.apply(user(name))
        send(secured, topic, ["second"])
        pipeline.await_line("may not read")
        assert phase(pipeline, address, "WaitingForAuthorization")
        secured.apply(reader)
        pipeline.await_line(r"INFO batch \d+: 1 rows")
        assert pipeline.terminate() == 0, "".join(pipeline.said)
    assert landed(data) == ["first", "second"]


def test_a_refused_user_ends_a_pipeline_that_does_not_wait(
    secured: SecuredBroker, tmp_path: Path, data: Path
) -> None:
    """A person is told in one line, and nothing of the password."""
    topic, name = "of-nobody", f"{READER}-gone"
    secured.create_topic(topic)
    secured.apply(user(name, type="consumer", topic=topic))
    directory = tmp_path / "secret"
    directory.mkdir()
    secured.mount(name, directory)
    secured.remove(name)
    file = write_pipeline(tmp_path, topic, user=name)
    options = ("--kafka-user", str(directory), "--once", "--wait", "0")
    with Pipeline(file, data, None, *options) as pipeline:
        assert pipeline.wait() == 1
        said = "".join(pipeline.said)
    assert f"and KafkaUser {name} do not trust each other: Authentication failed" in said
    assert "Traceback" not in said


def test_a_spark_program_needs_nothing_but_the_secret(
    secured: SecuredBroker, tmp_path: Path
) -> None:
    """Plain PySpark with the options of spark.json writes and reads, in batches and streams."""
    topic = "of-plain-spark"
    secured.create_topic(topic, partitions=2)
    files = []
    for authentication in ("scram-sha-512", "tls"):
        name = f"plain-{authentication}"
        document = user(name, authentication)
        document["spec"]["authorization"] = {
            "roles": [
                {"type": "producer", "topic": topic},
                {"type": "consumer", "topic": topic},
            ]
        }
        secured.apply(document)
        files.append(tmp_path / f"{name}.json")
        files[-1].write_text(secured.secret(name)["spark.json"])
    script = tmp_path / "plain.py"
    script.write_text(PLAIN)
    jars = os.pathsep.join(map(str, session.connector_jars()))
    command = [sys.executable, str(script), topic, jars, *map(str, files)]
    done = subprocess.run(command, capture_output=True, check=False, text=True)
    assert done.returncode == 0, done.stderr
    reported: list[Any] = [json.loads(line) for line in done.stdout.splitlines()]
    first = [f"0-{n}" for n in range(10)]
    assert reported == [[first, 10], [sorted(first + [f"1-{n}" for n in range(10)]), 20]]
