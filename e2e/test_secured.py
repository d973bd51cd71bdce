"""A secured cluster: what a user's Secret opens, and that nothing else does."""

from __future__ import annotations

import json
from base64 import b64decode
from collections.abc import Iterator
from typing import Any, Final

import pytest

from e2e import images
from e2e.cluster import Cluster
from e2e.quickstart import FIXTURES, MAIN, RELEASE
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
import json, os, sys, time
from confluent_kafka import Producer
given, limit_s = json.load(sys.stdin), float(sys.argv[1])
told, until = [], time.monotonic() + limit_s
producer = Producer({**given, "retries": 0, "message.timeout.ms": 1000 * limit_s, "log_level": 0},
                    error_cb=lambda error: told.append(error.name()))
producer.produce("deeds", b"a deed",
                 on_delivery=lambda error, _: told.append(error.name() if error else "sent"))
while not told and time.monotonic() < until:
    producer.poll(0.1)
print(told[0] if told else "silence", flush=True)
# librdkafka may crash where it is taken down while a connection of it fails.
os._exit(0)
"""


# In a pod: what a member answers over TLS to a client without a certificate, if it does.
UNKNOWN: Final = """
import socket, ssl, sys
context = ssl._create_unverified_context()
try:
    plain = socket.create_connection((sys.argv[1], int(sys.argv[2])), timeout=float(sys.argv[3]))
    with context.wrap_socket(plain) as it:
        it.sendall(b"srvr")
        print(it.recv(100) or "refused")
except TimeoutError:
    print("silence")
except OSError:
    print("refused")
"""
LEVEL: Final = "pod-security.kubernetes.io/enforce"
# Shorter texts than this are no secrets, but names and settings.
SHORTEST: Final = 16


@pytest.fixture(scope="module")
def vault(operator: Cluster) -> Iterator[Cluster]:
    """The cluster and a pod for clients in a restricted namespace; gone after these scenarios."""
    operator.kubectl("label", "namespace", MAIN, f"{LEVEL}=restricted", "--overwrite")
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
    operator.kubectl("label", "namespace", MAIN, f"{LEVEL}-")


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


def test_zookeeper_is_reached_by_certificates_alone(vault: Cluster) -> None:
    """Brokers and members come over TLS; without a certificate, or in plain text, nobody does."""
    found = vault.get("kafkacluster", "vault", namespace=MAIN) or {}
    assert found["status"]["zookeeperProtocol"] == "TLS"
    broker = ("exec", "-n", MAIN, "vault-broker-0", "--", "barnabas", "zk", "ls", "/brokers/ids")
    at = ("-z", f"vault-zookeeper.{MAIN}.svc:2281/vault")
    shown = ("--zk-tls-config-file", "/etc/barnabas/server.properties")
    assert vault.kubectl(*broker, *at, *shown).strip().rpartition("/")[2] == "0"
    for port in ("2281", "2181"):
        host = f"vault-zookeeper-0.vault-zookeeper-nodes.{MAIN}.svc"
        command = ("python", "-c", UNKNOWN, host, port, str(seconds(ANSWER)))
        said = vault.kubectl("exec", "-n", MAIN, POD, "--", *command)
        assert said.strip() == "refused"


def test_no_secret_is_found_where_secrets_are_not(vault: Cluster) -> None:
    """Not in logs, Events, resources, ConfigMaps, nor in what pods are started with."""
    listed = json.loads(vault.kubectl("get", "secret", "-n", MAIN, "-o", "json"))["items"]
    names = ("vault-", "clerk", "visitor")
    secrets = {
        line
        for each in listed
        if each["metadata"]["name"].startswith(names)
        for key, text in each["data"].items()
        for line in hidden(key, b64decode(text))
    }
    assert len(secrets) > len(names)
    kinds = "kafkaclusters,kafkausers,kafkatopics,configmaps,pods,statefulsets,events,services"
    told = vault.kubectl("get", kinds, "-n", MAIN, "-o", "json")
    pods = [*vault.names("pods", namespace=MAIN, selector="app.kubernetes.io/instance=vault")]
    for pod in (*pods, f"deploy/{RELEASE}"):
        told += vault.kubectl("logs", "-n", MAIN, pod, "--all-containers")
    assert [each[:4] for each in secrets if each in told] == []


def hidden(key: str, content: bytes) -> list[str]:
    """What of a Secret nobody else may know: passwords, tokens, lines of private keys."""
    try:
        text = content.decode()
    except UnicodeDecodeError:
        return []
    if "PRIVATE KEY-----" in text:
        inner = text.partition("PRIVATE KEY-----")[2].partition("-----END")[0]
        return [line for line in inner.split() if len(line) >= SHORTEST]
    is_one = key in ("password", "token", "admin-token", "user.password")
    return [text] if is_one and len(text) >= SHORTEST else []
