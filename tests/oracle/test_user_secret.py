"""Java clients that are given the `client.properties` of a KafkaUser's Secret, and nothing else."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.operator import examples
from tests.operator.secured_broker import SecuredBroker
from tests.oracle.apache import run_tool

pytestmark = pytest.mark.jvm

PRODUCER = "kafka.tools.ConsoleProducer"
CONSUMER = {
    "2.8.2": "kafka.tools.ConsoleConsumer",
    "3.9.1": "org.apache.kafka.tools.consumer.ConsoleConsumer",
}


@pytest.fixture(scope="module")
def secured(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SecuredBroker]:
    """A broker with listeners for passwords and for certificates."""
    with SecuredBroker(tmp_path_factory.mktemp("tls")) as running:
        yield running


@pytest.mark.parametrize("version", ["2.8.2", "3.9.1"])
@pytest.mark.parametrize("authentication", ["scram-sha-512", "scram-sha-512-given", "tls"])
def test_a_java_client_needs_nothing_but_the_secret(
    authentication: str, version: str, secured: SecuredBroker, tmp_path: Path
) -> None:
    """It writes and reads by its roles, and another topic is denied to it."""
    kind = authentication.removesuffix("-given")
    name = f"java-{version}-{authentication}"
    topic = name
    given: dict[str, Any] = {"type": kind}
    if kind != authentication:
        # With what a file of properties, or a login module, could take for its own.
        password = {"password": "cGVuIGNpbCJcJyM9OjshJGTDtg=="}
        meta = {"name": f"{name}-given"}
        secured.kube.put({"apiVersion": "v1", "kind": "Secret", "metadata": meta, "data": password})
        given["passwordSecretRef"] = meta
    roles = [
        {"type": "producer", "topic": topic},
        {"type": "consumer", "topic": topic, "group": topic},
    ]
    secured.create_topic(topic)
    secured.apply(examples.user(name, authentication=given, authorization={"roles": roles}))
    data = secured.secret(name)
    file = tmp_path / "client.properties"
    file.write_text(data["client.properties"], encoding="latin-1")
    servers = ("--bootstrap-server", data["bootstrap.servers"])
    write = ("--producer.config", str(file), *servers, "--topic")
    done = run_tool(PRODUCER, *write, topic, input="a record\n", version=version)
    assert "ERROR" not in done.stderr, done.stderr
    read = run_tool(
        CONSUMER[version], "--consumer.config", str(file), *servers, "--topic", topic,
        "--group", topic, "--from-beginning", "--max-messages", "1", version=version,
    )  # fmt: skip
    assert read.stdout.strip() == "a record", read.stderr
    denied = run_tool(PRODUCER, *write, "another", input="a record\n", version=version)
    assert "TopicAuthorizationException" in denied.stderr + denied.stdout
