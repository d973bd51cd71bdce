"""A secured cluster: what a user's Secret opens, and that nothing else does."""

from __future__ import annotations

import json
from base64 import b64decode
from collections.abc import Iterator
from typing import Any, Final

import pytest

from e2e import images
from e2e.cluster import Cluster
from e2e.quickstart import FIXTURES, MAIN
from tests.waiting import ANSWER, RUN, seconds

FILE: Final = FIXTURES / "secured.yaml"
RESOURCES: Final = (
    "kafkacluster/vault",
    "kafkatopic/deeds",
    "kafkauser/clerk",
    "kafkauser/visitor",
)
POD: Final = "keeper"
# In a pod: the settings come by the standard input, for they have a password.
PROGRAM: Final = """
import json, sys, time
from confluent_kafka import Producer
given, limit_s = json.load(sys.stdin), float(sys.argv[1])
told, until = [], time.monotonic() + limit_s
producer = Producer({**given, "retries": 0, "message.timeout.ms": 1000 * limit_s, "log_level": 0},
                    error_cb=lambda error: told.append(error.name()))
producer.produce("deeds", b"a deed",
                 on_delivery=lambda error, _: told.append(error.name() if error else "sent"))
while not told and time.monotonic() < until:
    producer.poll(0.1)
print(told[0] if told else "silence")
"""


@pytest.fixture(scope="module")
def vault(operator: Cluster) -> Iterator[Cluster]:
    """The cluster and a pod for clients; gone after these scenarios."""
    pod = (FIXTURES / "client.yaml").read_text("utf-8").replace("name: client", f"name: {POD}", 1)
    pod = pod.replace("CLIENT_IMAGE", images.name("broker"))
    operator.kubectl("apply", "-n", MAIN, "-f", str(FILE))
    operator.kubectl("apply", "-n", MAIN, "-f", "-", stdin=pod)
    for resource in (*RESOURCES, f"pod/{POD}"):
        operator.wait_ready(resource, namespace=MAIN, within=RUN)
    yield operator
    operator.delete_objects("-n", MAIN, f"pod/{POD}")
    operator.delete_objects("-n", MAIN, "-f", str(FILE), "--ignore-not-found")
    operator.wait_gone("pods", namespace=MAIN, selector="app.kubernetes.io/instance=vault")
    operator.kubectl("delete", "pvc", "-n", MAIN, "-l", "barnabas.io/cluster=vault")


def settings(cluster: Cluster, user: str) -> dict[str, Any]:
    """What librdkafka is given of a user's Secret."""
    text = cluster.kubectl("get", "secret", user, "-n", MAIN, "-o", "json")
    found: dict[str, Any] = json.loads(b64decode(json.loads(text)["data"]["librdkafka.json"]))
    return found


def produce(cluster: Cluster, given: dict[str, Any]) -> str:
    """What becomes of a record that a pod sends with these settings."""
    command = ("python", "-c", PROGRAM, str(seconds(ANSWER)))
    arguments = ("exec", "-i", "-n", MAIN, POD, "--", *command)
    return cluster.kubectl(*arguments, stdin=json.dumps(given)).strip()


def test_a_user_is_let_in_by_its_secret_and_does_what_its_acls_allow(vault: Cluster) -> None:
    """Over TLS with a password, to the names in the brokers' certificate."""
    clerk = settings(vault, "clerk")
    assert clerk["security.protocol"].lower() == "sasl_ssl"
    assert produce(vault, clerk) == "sent"
    assert produce(vault, settings(vault, "visitor")) == "TOPIC_AUTHORIZATION_FAILED"


def test_nobody_else_is_let_in(vault: Cluster) -> None:
    """Not without TLS, not without a password, and not where brokers reach each other."""
    clerk = settings(vault, "clerk")
    servers = clerk["bootstrap.servers"]
    assert servers.endswith(":9093")
    assert produce(vault, {"bootstrap.servers": servers}) != "sent"
    trust = {"ssl.ca.pem": clerk["ssl.ca.pem"], "security.protocol": "ssl"}
    own = servers.replace(":9093", ":9091")
    for given in ({"bootstrap.servers": servers}, {"bootstrap.servers": own}):
        assert produce(vault, {**trust, **given}) != "sent"
    assert produce(vault, {**clerk, "bootstrap.servers": own}) != "sent"
    assert produce(vault, {**clerk, "sasl.password": "guessed"}) == "_AUTHENTICATION"


def test_the_cluster_says_that_it_is_secured_and_stays_so(vault: Cluster) -> None:
    """The other mode is refused by name; what was applied stays."""
    before = vault.get("kafkacluster", "vault", namespace=MAIN) or {}
    assert before["status"]["security"] == "Secured"
    patch = json.dumps({"spec": {"insecure": True, "listeners": [{"name": "p", "port": 9092}]}})
    vault.kubectl("patch", "kafkacluster/vault", "-n", MAIN, "--type=merge", "-p", patch)
    vault.wait_for_condition("kafkacluster/vault", "Stalled", namespace=MAIN)
    found = vault.get("kafkacluster", "vault", namespace=MAIN) or {}
    (stalled,) = [each for each in found["status"]["conditions"] if each["type"] == "Stalled"]
    assert "created secured" in stalled["message"]
    restored = json.dumps({"spec": {"insecure": False, "listeners": before["spec"]["listeners"]}})
    vault.kubectl("patch", "kafkacluster/vault", "-n", MAIN, "--type=merge", "-p", restored)
    vault.wait_ready("kafkacluster/vault", namespace=MAIN)
    assert produce(vault, settings(vault, "clerk")) == "sent"
