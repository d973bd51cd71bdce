"""Kafka's own client in a pod: given `client.properties` of a user's Secret, and nothing else.

It is in the image of pipelines, beside Spark; a Python program has a JVM do what it reads.
"""

from __future__ import annotations

import json
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import TracebackType
from typing import IO, Any, Final, Self

from e2e import images, users
from e2e.cluster import Cluster
from e2e.kafka import Place, Record
from e2e.quickstart import FIXTURES, MAIN
from tests.waiting import ANSWER, START, seconds

POD: Final = "java-client"
# A line of JSON in, a line out; a load goes on until its input ends.
PROGRAM: Final = """
import json, os, select, sys, time
import pyspark
from py4j.java_gateway import JavaGateway
from py4j.protocol import Py4JJavaError
jars = os.path.join(os.path.dirname(pyspark.__file__), "jars", "*")
jvm = JavaGateway.launch_gateway(classpath=jars, die_on_exit=True).jvm
clients = jvm.org.apache.kafka.clients
FORMATS = {f"{of}.{kind.lower()}": f"org.apache.kafka.common.serialization.ByteArray{kind}"
           for of in ("key", "value") for kind in ("Serializer", "Deserializer")}
def say(outcome):
    print(json.dumps(outcome), flush=True)
def properties(step):
    found = jvm.java.util.Properties()
    found.load(jvm.java.io.StringReader(step["properties"]))
    for name, text in {**FORMATS, **step["more"]}.items():
        found.put(name, text)
    return found
def name_of(error):
    cause = error.java_exception
    while cause.getCause() is not None:
        cause = cause.getCause()
    return cause.getClass().getSimpleName()
def send(producer, step, key, value):
    record = clients.producer.ProducerRecord(step["topic"], key, value)
    sent = producer.send(record).get()
    return [sent.partition(), sent.offset(), key.decode(), value.decode()]
def produce(step):
    producer = clients.producer.KafkaProducer(properties(step))
    try:
        return send(producer, step, b"key", step["value"].encode())
    finally:
        producer.close(jvm.java.time.Duration.ZERO)
def consume(step):
    consumer = clients.consumer.KafkaConsumer(properties(step))
    try:
        consumer.subscribe(jvm.java.util.Collections.singletonList(step["topic"]))
        until = time.monotonic() + step["limit_s"]
        while time.monotonic() < until:
            found = consumer.poll(jvm.java.time.Duration.ofSeconds(1)).iterator()
            if found.hasNext():
                return found.next().value().decode()
        return "silence"
    finally:
        consumer.close()
def load(step):
    producer, number = clients.producer.KafkaProducer(properties(step)), 0
    while not select.select([sys.stdin], [], [], 0.02)[0]:
        say(send(producer, step, b"java %d" % number, b"value %d" % number))
        number += 1
for line in sys.stdin:
    step = json.loads(line)
    try:
        say({"produce": produce, "consume": consume, "load": load}[step["do"]](step))
    except Py4JJavaError as error:
        say(name_of(error))
"""


@contextmanager
def client_pod(cluster: Cluster) -> Iterator[Cluster]:
    """The pod for it; gone afterwards."""
    pod = (FIXTURES / "client.yaml").read_text("utf-8").replace("name: client", f"name: {POD}", 1)
    pod = pod.replace("CLIENT_IMAGE", images.name("pipeline"))
    cluster.kubectl("apply", "-n", MAIN, "-f", "-", stdin=pod)
    cluster.wait_ready(f"pod/{POD}", namespace=MAIN)
    try:
        yield cluster
    finally:
        cluster.delete_objects(f"pod/{POD}", "-n", MAIN)


def properties(cluster: Cluster, user: str) -> str:
    """What the Secret of a user has for Java."""
    return users.secret(cluster, user)["client.properties"]


class JavaClient:
    """A JVM in the pod, from `with` on."""

    def __init__(self, cluster: Cluster) -> None:
        self._reader: threading.Thread | None = None
        self._command = cluster.kubectl_command(
            "exec", "-i", "-n", MAIN, POD, "--", "python", "-c", PROGRAM
        )

    def __enter__(self) -> Self:
        self._process = subprocess.Popen(
            self._command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.input.close()
        try:
            self._process.wait(seconds(START))
        finally:
            self._process.kill()
            if self._reader is not None:
                self._reader.join()
            self.output.close()

    @property
    def input(self) -> IO[str]:
        """What it does, a line of JSON each."""
        assert self._process.stdin is not None
        return self._process.stdin

    @property
    def output(self) -> IO[str]:
        """What became of that, a line of JSON each."""
        assert self._process.stdout is not None
        return self._process.stdout

    def outcomes(self) -> Iterator[Any]:
        """What became of it: a record's place and content, or the name of Java's exception."""
        return map(json.loads, self.output)

    def begin(self, do: str, given: str, topic: str, *, value: str = "", **more: str) -> None:
        """Have it do something with the properties of a Secret, and `more` for a consumer."""
        step: dict[str, Any] = {
            "do": do,
            "properties": given,
            "topic": topic,
            "value": value,
            "more": more,
        }
        step["limit_s"] = seconds(ANSWER)
        self.input.write(json.dumps(step) + "\n")
        self.input.flush()

    def produce(self, given: str, topic: str, value: str) -> Any:
        """Where a record is, with its content; else the name of an exception."""
        limit_ms = f"{1000 * seconds(ANSWER):.0f}"
        self.begin("produce", given, topic, value=value, **{"max.block.ms": limit_ms})
        return next(self.outcomes())

    def consume(self, given: str, topic: str, group: str) -> Any:
        """The first record of a topic, in a group; else the name of an exception."""
        more = {"group.id": group, "auto.offset.reset": "earliest"}
        self.begin("consume", given, topic, **more)
        return next(self.outcomes())


class JavaLoad(JavaClient):
    """Sends a record after the other from `with` on, with what Java's defaults are."""

    def __init__(self, cluster: Cluster, user: str, topic: str) -> None:
        super().__init__(cluster)
        self.acknowledged: dict[Place, Record] = {}
        self.somewhere: list[Record] = []
        self.failures: list[str] = []
        self._given, self._topic = properties(cluster, user), topic

    def _read(self) -> None:
        for found in self.outcomes():
            if isinstance(found, list):
                partition, offset, key, value = found
                self.acknowledged[partition, offset] = (key.encode(), value.encode())
            elif found is not None:
                self.failures.append(found)

    def __enter__(self) -> Self:
        super().__enter__()
        self.begin("load", self._given, self._topic)
        self._reader = threading.Thread(target=self._read)
        self._reader.start()
        return self
