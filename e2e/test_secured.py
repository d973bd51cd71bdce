"""A secured cluster: what a user's Secret opens, and that nothing else does."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Final

import pytest

from barnabas_kafka.certificates import KeyPair, create_authority, issue
from e2e import images, users
from e2e.cluster import Cluster
from e2e.leaks import leaks, secret_values
from e2e.pipeline import Pipeline
from e2e.quickstart import FIXTURES, MAIN
from tests.waiting import ANSWER, RUN, seconds

FILE: Final = FIXTURES / "secured.yaml"
RESOURCES: Final = (
    "kafkacluster/vault",
    "kafkatopic/deeds",
    "kafkauser/clerk",
    "kafkauser/visitor",
    "kafkauser/archivist",
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


# In a pod: how many records the topic has.
COUNT: Final = """
import json, sys
from confluent_kafka import Consumer, TopicPartition
given, limit_s = json.load(sys.stdin), float(sys.argv[1])
consumer = Consumer({**given, "group.id": "none", "log_level": 0})
found = consumer.list_topics("deeds", timeout=limit_s).topics["deeds"].partitions
ends = (consumer.get_watermark_offsets(TopicPartition("deeds", number), timeout=limit_s)
        for number in found)
print(sum(high - low for low, high in ends))
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
# In a pod: the certificate that a client is shown and verifies by these authorities.
SHOWN: Final = """
import json, socket, ssl, sys
given, limit_s = json.load(sys.stdin), float(sys.argv[1])
context = ssl.create_default_context(cadata=given["trusted"])
with socket.create_connection((given["host"], given["port"]), timeout=limit_s) as plain:
    with context.wrap_socket(plain, server_hostname=given["host"]) as it:
        print(ssl.DER_cert_to_PEM_cert(it.getpeercert(binary_form=True)))
"""
LISTENER_SECRET: Final = "vault-public"
BOOTSTRAP: Final = f"vault-bootstrap.{MAIN}.svc"


@pytest.fixture(scope="module")
def vault(operator: Cluster) -> Iterator[Cluster]:
    """The cluster and a pod for clients; gone after these scenarios."""
    pod = (FIXTURES / "client.yaml").read_text("utf-8").replace("name: client", f"name: {POD}", 1)
    pod = pod.replace("CLIENT_IMAGE", images.name("broker"))
    certify(operator, new_authority())
    operator.kubectl("apply", "-n", MAIN, "-f", str(FILE))
    operator.kubectl("apply", "-n", MAIN, "-f", "-", stdin=pod)
    for resource in (*RESOURCES, f"pod/{POD}"):
        operator.wait_ready(resource, namespace=MAIN, within=RUN)
    yield operator
    operator.delete_objects("-n", MAIN, f"pod/{POD}", f"secret/{LISTENER_SECRET}")
    operator.delete_objects("-n", MAIN, "-f", str(FILE), "--ignore-not-found")
    operator.wait_gone("pods", namespace=MAIN, selector="app.kubernetes.io/instance=vault")
    operator.kubectl("delete", "pvc", "-n", MAIN, "-l", "barnabas.io/cluster=vault")


def new_authority() -> KeyPair:
    """An authority that is not the cluster's."""
    return create_authority("corporate", now=datetime.now(UTC), days=2)


def certify(cluster: Cluster, authority: KeyPair) -> str:
    """Give the listener `public` another certificate; returns it."""
    hosts = (BOOTSTRAP, f"*.vault-broker-nodes.{MAIN}.svc")
    pair = issue(
        authority, BOOTSTRAP, hosts=hosts, now=datetime.now(UTC), validity=timedelta(days=1)
    )
    body = {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": LISTENER_SECRET},
        "stringData": {
            "tls.crt": pair.certificate, "tls.key": pair.key, "ca.crt": authority.certificate,
        },
    }  # fmt: skip
    apply = ("apply", "--server-side", "-n", MAIN, "-f", "-")
    cluster.kubectl(*apply, stdin=json.dumps(body))
    return pair.certificate


def settings(cluster: Cluster, user: str) -> dict[str, Any]:
    """What librdkafka is given of a user's Secret."""
    return dict(users.client(cluster, user))


def produce(cluster: Cluster, given: dict[str, Any]) -> str:
    """What becomes of a record that a pod sends with these settings."""
    return in_pod(cluster, PROGRAM, given)


def in_pod(cluster: Cluster, program: str, given: dict[str, Any]) -> str:
    """What a program in the clients' pod prints; its settings may have a password."""
    command = ("python", "-c", program, str(seconds(ANSWER)))
    arguments = ("exec", "-i", "-n", MAIN, POD, "--", *command)
    return cluster.kubectl(*arguments, stdin=json.dumps(given)).strip()


def test_a_user_is_let_in_by_its_secret_and_does_what_its_acls_allow(vault: Cluster) -> None:
    """Over TLS with a password, to the names in the brokers' certificate."""
    clerk = settings(vault, "clerk")
    assert clerk["security.protocol"].lower() == "sasl_ssl"
    assert produce(vault, clerk) == "sent"
    assert produce(vault, settings(vault, "visitor")) == "TOPIC_AUTHORIZATION_FAILED"


def test_unauthenticated_clients_are_refused(vault: Cluster) -> None:
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
        # Silence where the cluster's network plugin enforces NetworkPolicies.
        assert said.strip() in ("refused", "silence")


def test_a_listener_shows_a_certificate_of_its_own(vault: Cluster) -> None:
    """And the next one when its Secret changes, while the same process serves."""
    found = vault.get("kafkacluster", "vault", namespace=MAIN) or {}
    assert "listener-public" in {each["name"] for each in found["status"]["certificates"]}
    assert "Stalled" not in {each["type"] for each in found["status"]["conditions"]}
    before = vault.get("pod", "vault-broker-0", namespace=MAIN) or {}
    authority = new_authority()
    renewed = certify(vault, authority)
    asked = {"host": BOOTSTRAP, "port": 9094, "trusted": authority.certificate}
    vault.wait_for(
        "the certificate of another authority",
        lambda: in_pod(vault, SHOWN, asked),
        until=lambda shown: shown == renewed.strip(),
        namespaces=(MAIN,),
        within=RUN,
    )
    now = vault.get("pod", "vault-broker-0", namespace=MAIN) or {}
    assert now["metadata"]["uid"] == before["metadata"]["uid"]
    assert [each["restartCount"] for each in now["status"]["containerStatuses"]] == [0]
    clerk = settings(vault, "clerk")
    shown = in_pod(vault, SHOWN, {**asked, "port": 9093, "trusted": clerk["ssl.ca.pem"]})
    assert shown != renewed.strip()
    public = clerk["bootstrap.servers"].replace(":9093", ":9094")
    trust = {"bootstrap.servers": public, "ssl.ca.pem": authority.certificate}
    assert produce(vault, {**clerk, **trust}) == "sent"


def apply_pipeline(cluster: Cluster, **spec: Any) -> None:
    """Apply the pipeline, with what more its spec has."""
    document = {
        "apiVersion": "barnabas.io/v1alpha1",
        "kind": "KafkaPipeline",
        "metadata": {"name": "archive"},
        "spec": {
            "cluster": "vault",
            "source": {"topics": ["deeds"]},
            "sink": {"parquet": {"path": "/data/deeds"}},
            "trigger": {"interval": "2s"},
            "storage": {"size": "1Gi"},
            **spec,
        },
    }
    cluster.kubectl("apply", "-n", MAIN, "-f", "-", stdin=json.dumps(document))


@pytest.fixture(scope="module")
def archive(vault: Cluster) -> Iterator[Pipeline]:
    """A pipeline that reads as a KafkaUser, running; refused before, for it named none."""
    apply_pipeline(vault)
    made = Pipeline(vault, MAIN, "archive", "deeds")

    def reported() -> str:
        return str(made.status().get("conditions"))

    vault.wait_for(
        "the condition UserRequired", reported, until=lambda it: "UserRequired" in it,
        namespaces=(MAIN,),
    )  # fmt: skip
    assert vault.get("pod", made.pod, namespace=MAIN) is None
    apply_pipeline(vault, user="archivist")
    vault.wait_ready("kafkapipeline/archive", namespace=MAIN, within=RUN)
    yield made
    vault.delete_objects("-n", MAIN, "kafkapipeline/archive")
    vault.wait_gone("pods", namespace=MAIN, selector="barnabas.io/pipeline=archive")
    vault.kubectl("delete", "pvc", "-n", MAIN, "-l", "barnabas.io/pipeline=archive")


def check_landed(vault: Cluster, archive: Pipeline, directory: Path) -> None:
    """The pipeline's files come to have each record of the topic once."""
    count = int(in_pod(vault, COUNT, settings(vault, "archivist")))
    archive.wait_until_landed(count)
    records = archive.landed(directory)
    assert list(records.values()) == [(b"", b"a deed")] * count


def test_a_pipeline_reads_as_a_user(vault: Cluster, archive: Pipeline, tmp_path: Path) -> None:
    """Over TLS with the password of its user, in a restricted namespace: every record, once."""
    assert produce(vault, settings(vault, "clerk")) == "sent"
    check_landed(vault, archive, tmp_path)


def test_a_pipeline_takes_the_new_password_of_its_user(
    vault: Cluster, archive: Pipeline, tmp_path: Path
) -> None:
    """It starts its query again by itself, in the same process, and goes on where it was."""
    pod = vault.get("pod", archive.pod, namespace=MAIN) or {}
    before = settings(vault, "archivist")
    values = secret_values(vault, MAIN)
    vault.kubectl("annotate", "kafkauser/archivist", "-n", MAIN, "barnabas.io/rotate=1")
    assert produce(vault, settings(vault, "clerk")) == "sent"
    vault.wait_for(
        "a query that is started again",
        lambda: vault.kubectl("logs", "-n", MAIN, archive.pod),
        until=lambda log: "has changed: the query is started again" in log,
        namespaces=(MAIN,),
        within=RUN,
    )
    assert produce(vault, before) == "_AUTHENTICATION"
    assert produce(vault, settings(vault, "clerk")) == "sent"
    check_landed(vault, archive, tmp_path)
    now = vault.get("pod", archive.pod, namespace=MAIN) or {}
    assert now["metadata"]["uid"] == pod["metadata"]["uid"]
    assert [each["restartCount"] for each in now["status"]["containerStatuses"]] == [0]
    assert leaks(vault, values | secret_values(vault, MAIN), (MAIN,)) == []
    # What is no secret is found everywhere: nothing was left out.
    places = {each.partition(" of ")[0] for each in leaks(vault, {"vault-broker-0"}, (MAIN,))}
    assert places >= {"objects", "log", "processes"}
