"""The Secrets of certificates: on an API server in memory, and with a broker that reads them."""

from __future__ import annotations

import json
import socket
import ssl
from base64 import b64decode, b64encode
from collections.abc import Iterator, Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import KafkaError, Producer
from cryptography.hazmat.primitives.serialization.pkcs12 import load_key_and_certificates

from barnabas_broker.testing import Broker
from barnabas_kafka.certificates import KeyPair, create_authority, issue, read_certificate
from barnabas_kafka.settings.properties import parse_properties
from barnabas_operator.api.reading import read_cluster
from barnabas_operator.kube import KubeError
from barnabas_operator.plan.certificates import format_time, parse_time
from barnabas_operator.reconcile.context import Regarding
from barnabas_operator.reconcile.reconciler import Key, reconcile
from barnabas_operator.resources.certificates import BROKER_PATH
from barnabas_operator.resources.config import server_properties
from tests.operator import examples
from tests.operator.kubelet import mount
from tests.operator.memory_kube import NODE_ADDRESS, MemoryKube
from tests.operator.ports import NOW, MemoryBrokers, context_on
from tests.waiting import ANSWER, seconds, wait_for

KEY = Key("default", "quickstart")
START = parse_time(NOW)
DAY = timedelta(days=1)
LISTENERS = [
    {"name": "plain", "port": 9092},
    {"name": "secure", "port": 9093, "tls": {}, "authentication": {"type": "scram-sha-512"}},
    {"name": "certs", "port": 9094, "tls": {}, "authentication": {"type": "tls"}},
]


class Notes:
    """A Recorder that keeps what it is told."""

    def __init__(self) -> None:
        self.notes: list[str] = []

    def record(
        self, regarding: Regarding, *, action: str, reason: str, note: str, warning: bool = False
    ) -> None:
        """See Recorder."""
        self.notes.append(note)


class Passes:
    """Passes over one cluster, at times that a test chooses."""

    def __init__(self, *documents: dict[str, Any]) -> None:
        self.kube = MemoryKube(*documents)
        self.now = START
        self.events = Notes()
        self.ends: dict[str, float] = {}
        self.user_ends: Mapping[str, float] = {}
        self.brokers = MemoryBrokers()

    def run(self, passed: timedelta = timedelta()) -> dict[str, Any]:
        """One pass, some time after the last one; the status of the cluster."""
        self.now += passed
        context = replace(
            context_on(self.kube, self.brokers),
            now=format_time(self.now),
            events=self.events,
            expiries=self.seen,
            user_expiries=self.seen_of_users,
        )
        reconcile(KEY, context)
        status: dict[str, Any] = self.kube.find("KafkaCluster", "quickstart")["status"]
        return status

    def seen(self, _namespace: str, _cluster: str, ends: Mapping[str, float]) -> None:
        """When certificates expire, as the metrics are told."""
        self.ends = dict(ends)

    def seen_of_users(self, _namespace: str, _cluster: str, ends: Mapping[str, float]) -> None:
        """The same of the certificates of users."""
        self.user_ends = ends

    def data(self, name: str) -> dict[str, str]:
        """What a Secret of the cluster has."""
        found = self.kube.find("Secret", f"quickstart-{name}")["data"]
        return {key: b64decode(text).decode() for key, text in found.items()}

    def issuer(self) -> str:
        """Who issued the brokers' certificate."""
        return read_certificate(self.data("broker-tls")["broker.pem"]).issuer

    def annotate(self, name: str, value: str) -> None:
        """Annotate the KafkaCluster."""
        self.kube.edit(
            "KafkaCluster",
            "quickstart",
            lambda body: body["metadata"].setdefault("annotations", {}).update({name: value}),
        )


def secure(**spec: Any) -> Passes:
    """A cluster with listeners of both kinds."""
    return Passes(examples.cluster(listeners=LISTENERS, **spec))


def test_secrets_are_there_before_the_pods_that_mount_them() -> None:
    """And a cluster without TLS has none."""
    passes = secure()
    passes.run()
    names = ("broker-tls", "clients-ca", "cluster-ca", "cluster-ca-cert")
    writes = [
        each for each in passes.kube.writes if "apply StatefulSet" in each or "apply Secret" in each
    ]
    assert [name for name in names if any(f"quickstart-{name}" in each for each in writes[:4])] == [
        *names
    ]
    assert "PRIVATE" not in passes.data("cluster-ca-cert")["ca.crt"]
    plain = Passes(examples.cluster())
    plain.run()
    assert not [key for key in plain.kube.objects if key[0] == "Secret"]


def test_a_pass_changes_nothing_that_is_right() -> None:
    """Nor does the next day; keys and certificates stay."""
    passes = secure()
    passes.run()
    before = {name: passes.data(name) for name in ("cluster-ca", "clients-ca", "broker-tls")}
    passes.run(DAY)
    assert before == {name: passes.data(name) for name in before}


def test_the_brokers_certificate_names_every_way_to_them() -> None:
    """Their own names, the Services, and the node once it is known."""
    external = {"name": "external", "type": "nodeport", "port": 9095, "nodePort": 32095, "tls": {}}
    passes = Passes(examples.cluster(listeners=[*LISTENERS, external]))
    passes.run()
    passes.kube.settle()
    passes.run()
    hosts = read_certificate(passes.data("broker-tls")["broker.pem"]).hosts
    assert {
        "*.quickstart-broker-nodes.default.svc",
        "quickstart-bootstrap.default.svc",
        NODE_ADDRESS,
    } <= hosts


def test_a_certificate_is_renewed_in_time_and_its_expiry_is_reported() -> None:
    """In the status, as a metric and as an Event; not the template of any pod."""
    passes = secure()
    passes.run()
    template = passes.kube.find("StatefulSet", "quickstart-broker")["spec"]["template"]
    first = passes.data("broker-tls")
    passes.run(59 * DAY)
    assert passes.data("broker-tls") == first
    status = passes.run(2 * DAY)
    assert passes.data("broker-tls")["broker.pem"] != first["broker.pem"]
    ends = {each["name"]: each["notAfter"] for each in status["certificates"]}
    assert ends["broker"] == format_time(passes.now + 90 * DAY)
    assert passes.ends["broker"] == (passes.now + 90 * DAY).timestamp()
    assert any("expires at" in note for note in passes.events.notes)
    after = passes.kube.find("StatefulSet", "quickstart-broker")["spec"]["template"]
    assert after == template


def test_an_authority_is_replaced_while_clients_of_both_go_on() -> None:
    """Brokers show the new certificate once both are trusted; the old one is forgotten last."""
    passes = secure(certificates={"rotationOverlap": "2h"})
    passes.run()
    old, first = passes.data("cluster-ca-cert")["ca.crt"], passes.issuer()
    passes.annotate("barnabas.io/rotate-cluster-ca", "now")
    passes.run()
    both = passes.data("cluster-ca-cert")["ca.crt"]
    assert both.startswith(old)
    assert both != old
    assert passes.issuer() == first
    passes.run(timedelta(hours=2))
    assert passes.issuer() != first
    assert sorted(passes.data("broker-tls")["cluster-ca.crt"]) == sorted(both)
    passes.run(timedelta(hours=2))
    assert passes.data("cluster-ca-cert")["ca.crt"] == both.removeprefix(old)
    # The other authority has nothing to do with it.
    assert passes.data("clients-ca")["ca.crt"].count("BEGIN") == 1


def given(pair: KeyPair, *keys: str) -> dict[str, Any]:
    """A Secret with an authority of the user."""
    texts = dict(zip(keys, (pair.certificate, pair.key), strict=True))
    data = {key: b64encode(text.encode()).decode() for key, text in texts.items()}
    return {
        "apiVersion": "v1", "kind": "Secret",
        "metadata": {"name": "own", "namespace": "default"}, "data": data,
    }  # fmt: skip


@pytest.mark.parametrize("keys", [("tls.crt", "tls.key"), ("ca.crt", "ca.key")])
def test_an_authority_of_the_user_issues(keys: tuple[str, str]) -> None:
    """As cert-manager writes it, or as other operators do; a changed one takes over."""
    pair = create_authority("corporate", now=START, days=400)
    passes = secure(certificates={"clusterCa": {"secretName": "own"}})
    passes.kube.put(given(pair, *keys))
    passes.run()
    assert passes.data("cluster-ca-cert")["ca.crt"] == pair.certificate
    assert passes.issuer() == read_certificate(pair.certificate).subject
    other = create_authority("corporate", now=START, days=400)
    passes.kube.put(given(other, *keys))
    passes.run()
    assert passes.data("cluster-ca-cert")["ca.crt"] == pair.certificate + other.certificate
    status = passes.run(DAY)
    assert passes.issuer() == read_certificate(other.certificate).subject
    assert not [each for each in status["conditions"] if each["type"] == "Stalled"]
    (warning,) = [each for each in passes.run(370 * DAY)["conditions"] if each["type"] == "Warning"]
    assert warning["reason"] == "CertificateExpires"


def test_a_given_authority_that_cannot_be_used_gates_nothing_else() -> None:
    """At first there are no brokers without certificates; later they go on with those they have."""
    passes = secure(certificates={"clusterCa": {"secretName": "own"}})
    (stalled,) = [each for each in passes.run()["conditions"] if each["type"] == "Stalled"]
    assert stalled["reason"] == "CertificateAuthorityInvalid"
    assert "Secret own" in stalled["message"]
    assert ("StatefulSet", "default", "quickstart-broker") not in passes.kube.objects
    pair = create_authority("corporate", now=START, days=400)
    passes.kube.put(given(pair, "tls.crt", "tls.key"))
    passes.run()
    issuer = passes.issuer()
    leaf = issue(pair, "no authority", hosts=["h"], now=START, validity=DAY)
    passes.kube.put(given(leaf, "tls.crt", "tls.key"))
    passes.kube.edit(
        "KafkaCluster",
        "quickstart",
        lambda body: body["spec"]["config"].update({"message.max.bytes": "2000000"}),
    )
    (stalled,) = [each for each in passes.run()["conditions"] if each["type"] == "Stalled"]
    assert stalled["reason"] == "CertificateAuthorityInvalid"
    assert "not that of a certificate authority" in stalled["message"]
    assert passes.issuer() == issuer
    text = passes.kube.find("ConfigMap", "quickstart-broker")["data"]["server.properties"]
    assert "message.max.bytes=2000000" in text


@pytest.mark.parametrize("written", ["{}", "Certificate:\n    Data:\n{}", "\n{}\n\n"])
def test_a_given_certificate_may_be_written_in_any_way(written: str) -> None:
    """With a text before it, as `openssl ca` writes, or without a line break at its end."""
    pairs = [create_authority("corporate", now=START, days=400) for _ in range(2)]
    passes = secure(certificates={"clusterCa": {"secretName": "own"}})
    for pair in pairs:
        texts = KeyPair(certificate=written.format(pair.certificate.strip()), key=pair.key)
        passes.kube.put(given(texts, "tls.crt", "tls.key"))
        for _ in range(2):
            status = passes.run()
            assert not [each for each in status["conditions"] if each["type"] == "Stalled"]
    assert passes.data("cluster-ca-cert")["ca.crt"] == "".join(each.certificate for each in pairs)


def test_a_damaged_authority_of_clients_does_not_let_the_brokers_certificate_expire() -> None:
    """Nor the other way round: brokers follow the authority of clients while theirs is damaged."""
    passes = secure(certificates={"rotationOverlap": "1h"})
    passes.run()
    passes.kube.settle()
    first, good = passes.data("broker-tls"), passes.kube.find("Secret", "quickstart-clients-ca")
    damaged = {"data": {**good["data"], "tls.key": "AAAA"}}
    passes.kube.put({**good, **damaged})
    status = passes.run(61 * DAY)
    assert [each for each in status["conditions"] if each["type"] == "Stalled"]
    renewed = passes.data("broker-tls")
    assert renewed["broker.pem"] != first["broker.pem"]
    assert renewed["clients-ca.crt"] == first["clients-ca.crt"]
    passes.kube.put(good)
    passes.kube.edit(
        "Secret", "quickstart-cluster-ca", lambda body: body["data"].update({"tls.key": "AAAA"})
    )
    passes.annotate("barnabas.io/rotate-clients-ca", "1")
    passes.run()
    after = passes.data("broker-tls")
    assert after["clients-ca.crt"].count("BEGIN") == 2
    assert (after["broker.pem"], after["cluster-ca.crt"]) == (
        renewed["broker.pem"], renewed["cluster-ca.crt"],
    )  # fmt: skip


def test_an_operator_that_ends_within_a_step_does_not_shorten_it() -> None:
    """It wrote that both are trusted, and was away before it told anybody."""
    passes = secure(certificates={"rotationOverlap": "1h"})
    passes.run()
    first = passes.issuer()
    passes.annotate("barnabas.io/rotate-cluster-ca", "1")
    passes.kube.fail("apply Secret quickstart-cluster-ca-cert", 500)
    with pytest.raises(KubeError):
        passes.run()
    assert passes.data("cluster-ca")["ca.crt"].count("BEGIN") == 2
    assert passes.data("cluster-ca-cert")["ca.crt"].count("BEGIN") == 1
    passes.run(2 * DAY)
    assert passes.issuer() == first
    assert passes.data("cluster-ca-cert")["ca.crt"].count("BEGIN") == 2
    passes.run(timedelta(hours=1))
    assert passes.issuer() != first


def test_certificates_of_brokers_are_issued_before_the_old_authority_is_forgotten() -> None:
    """Clients would be told to trust the new one alone while brokers show the old certificate."""
    passes = secure(certificates={"rotationOverlap": "1h"})
    passes.run()
    passes.annotate("barnabas.io/rotate-cluster-ca", "1")
    passes.run()
    passes.kube.fail("apply Secret quickstart-broker-tls", 500)
    with pytest.raises(KubeError):
        passes.run(timedelta(hours=1))
    passes.run(2 * DAY)
    assert passes.data("cluster-ca-cert")["ca.crt"].count("BEGIN") == 2
    passes.run(timedelta(hours=1))
    assert passes.data("cluster-ca-cert")["ca.crt"].count("BEGIN") == 1


def test_users_have_new_certificates_before_the_old_authority_is_forgotten() -> None:
    """An operator that was away in between would lock them out, and says whom it waits for."""
    passes = with_user(secure(certificates={"rotationOverlap": "1h"}))
    first = read_certificate(certificate(passes)).issuer
    passes.annotate("barnabas.io/rotate-clients-ca", "1")
    passes.run()
    passes.kube.fail("apply Secret billing", 500, times=2)
    for _ in range(2):
        with pytest.raises(KubeError):
            passes.run(timedelta(hours=1))
    assert read_certificate(certificate(passes)).issuer == first
    assert passes.data("broker-tls")["clients-ca.crt"].count("BEGIN") == 2
    assert any("Secret billing" in note and "waits" in note for note in passes.events.notes)
    passes.run()
    passes.run(timedelta(hours=1))
    assert passes.data("broker-tls")["clients-ca.crt"].count("BEGIN") == 1
    assert read_certificate(certificate(passes)).issuer != first


def test_users_trust_the_new_authority_before_brokers_show_a_certificate_of_it() -> None:
    """Their Secrets are what their clients read."""
    passes = with_user(secure(certificates={"rotationOverlap": "1h"}))
    first = passes.issuer()
    passes.annotate("barnabas.io/rotate-cluster-ca", "1")
    passes.kube.fail("apply Secret billing", 500, times=1)
    with pytest.raises(KubeError):
        passes.run()
    passes.run(timedelta(hours=1))
    assert passes.issuer() == first
    assert user_data(passes)["ca.crt"].count("BEGIN") == 2
    passes.run(timedelta(hours=1))
    assert passes.issuer() != first


def test_an_operator_with_a_late_clock_replaces_no_certificate() -> None:
    """What it would issue has expired long ago, and certificates that are valid would go."""
    passes = with_user(secure())
    names = ("cluster-ca", "clients-ca", "broker-tls")
    before = ({name: passes.data(name) for name in names}, user_data(passes))
    for passed in (-4000 * DAY, DAY):
        passes.run(passed)
        assert ({name: passes.data(name) for name in names}, user_data(passes)) == before


def test_a_given_authority_counts_once_it_is_valid() -> None:
    """Nobody would trust what it issues."""
    pair = create_authority("corporate", now=START + DAY, days=400)
    passes = secure(certificates={"clusterCa": {"secretName": "own"}})
    passes.kube.put(given(pair, "tls.crt", "tls.key"))
    (stalled,) = [each for each in passes.run()["conditions"] if each["type"] == "Stalled"]
    assert "is not valid before" in stalled["message"]
    passes.run(DAY)
    assert passes.issuer() == read_certificate(pair.certificate).subject


def test_a_damaged_authority_is_not_replaced() -> None:
    """All clients would have to trust another one: that is for a person to decide."""
    passes = secure()
    passes.run()
    trusted = passes.data("cluster-ca-cert")
    passes.kube.edit(
        "Secret", "quickstart-cluster-ca", lambda body: body["data"].update({"tls.key": "AAAA"})
    )
    (stalled,) = [each for each in passes.run()["conditions"] if each["type"] == "Stalled"]
    assert "Secret quickstart-cluster-ca is damaged" in stalled["message"]
    assert passes.data("cluster-ca-cert") == trusted


def test_a_damaged_certificate_of_the_brokers_is_issued_again() -> None:
    """The key is not that of the certificate: a broker that starts could use neither."""
    passes = secure()
    passes.run()
    parts = passes.data("broker-tls")["broker.pem"].partition("-----BEGIN CERTIFICATE-----")
    damaged = passes.data("clients-ca")["tls.key"] + parts[1] + parts[2]
    text = b64encode(damaged.encode()).decode()
    passes.kube.edit(
        "Secret", "quickstart-broker-tls", lambda body: body["data"].update({"broker.pem": text})
    )
    passes.run()
    assert passes.data("broker-tls")["broker.pem"] != damaged


def test_without_tls_certificate_metrics_are_removed() -> None:
    """Alerts on an end that nobody waits for would be false."""
    passes = secure()
    assert passes.run()["certificates"]
    passes.kube.edit(
        "KafkaCluster", "quickstart", lambda body: body["spec"].update(listeners=LISTENERS[:1])
    )
    assert not passes.run().get("certificates")
    assert passes.ends == {}


def test_a_secret_of_another_is_not_touched() -> None:
    """It has the name by chance, or by intent."""
    passes = secure()
    foreign = given(create_authority("x", now=START, days=1), "tls.crt", "tls.key")
    foreign["metadata"]["name"] = "quickstart-cluster-ca"
    passes.kube.put(foreign)
    (stalled,) = [each for each in passes.run()["conditions"] if each["type"] == "Stalled"]
    assert "quickstart-cluster-ca exists" in stalled["message"]
    assert passes.kube.find("Secret", "quickstart-cluster-ca")["data"] == foreign["data"]


def test_no_secret_leaves_the_secrets() -> None:
    """Neither in Events and statuses nor in ConfigMaps and pods."""
    passes = secure()
    passes.run()
    passes.annotate("barnabas.io/rotate-cluster-ca", "now")
    passes.run()
    texts = [*passes.events.notes]
    texts += [repr(body) for key, body in passes.kube.objects.items() if key[0] != "Secret"]
    for name in ("cluster-ca", "clients-ca", "broker-tls"):
        for text in passes.data(name).values():
            for line in text.splitlines():
                if len(line) == 64 and "PRIVATE" in text:
                    assert not [each for each in texts if line in each]
    assert texts


@pytest.fixture
def running(tmp_path: Path) -> Iterator[tuple[Passes, Broker, Path]]:
    """A broker with the rendered settings, and the files of its Secret."""
    passes = secure()
    passes.now = datetime.now(tz=UTC).replace(microsecond=0)
    passes.run()
    spec = read_cluster(passes.kube.find("KafkaCluster", "quickstart")).body.spec
    text = server_properties(
        "quickstart", listeners=spec.listeners, config=spec.broker_config, zookeeper_connect=None
    )
    rendered = parse_properties(
        text.replace(BROKER_PATH, str(tmp_path)).encode(), origin="server.properties"
    )
    write(passes, tmp_path)
    here = {
        "listeners": ",".join(f"{each.kafka_name}://127.0.0.1:0" for each in spec.listeners),
        "barnabas.admin.listener": "127.0.0.1:0",
    }
    kept = {name: value for name, value in rendered.items() if name != "log.dirs"}
    with Broker({**kept, **here}) as broker:
        broker.create_topic("orders", partitions=1)
        yield passes, broker, tmp_path


def write(passes: Passes, directory: Path) -> None:
    """The brokers' certificates, as their pods have them."""
    mount(passes.kube.find("Secret", "quickstart-broker-tls")["data"], directory)


def shown(broker: Broker, trusted: str) -> bytes:
    """The certificate that a broker shows to a client that trusts these."""
    context = ssl.create_default_context(cadata=trusted)
    host, _, port = broker.listeners["SECURE"].rpartition(":")
    with (
        socket.create_connection((host, int(port)), timeout=seconds(ANSWER)) as plain,
        context.wrap_socket(plain, server_hostname="localhost") as secured,
    ):
        return secured.getpeercert(binary_form=True) or b""


def test_a_running_broker_shows_the_renewed_certificate(
    running: tuple[Passes, Broker, Path],
) -> None:
    """Its files are replaced; nothing is restarted."""
    passes, broker, directory = running
    trusted = passes.data("cluster-ca-cert")["ca.crt"]
    before = shown(broker, trusted)
    passes.kube.edit("Secret", "quickstart-broker-tls", lambda body: body["data"].clear())
    passes.run()
    write(passes, directory)
    after = wait_for(
        "another certificate", lambda: shown(broker, trusted), until=lambda it: it != before
    )
    assert after


def test_clients_need_a_certificate_of_the_clients_authority(
    running: tuple[Passes, Broker, Path],
) -> None:
    """Those of the brokers' own authority are refused; the user is the common name."""
    passes, broker, _ = running
    data = passes.data("clients-ca")
    pair = KeyPair(certificate=data["tls.crt"], key=data["tls.key"])
    data = passes.data("cluster-ca")
    wrong = KeyPair(certificate=data["tls.crt"], key=data["tls.key"])
    alice = issue(pair, "alice", now=passes.now, validity=DAY)
    brokers = issue(pair, "alice", organization="barnabas.io", now=passes.now, validity=DAY)
    assert produce(passes, broker, alice) is None
    for refused in (issue(wrong, "alice", now=passes.now, validity=DAY), brokers, None):
        assert produce(passes, broker, refused) is not None


def produce(passes: Passes, broker: Broker, shown: KeyPair | None) -> KafkaError | None:
    """Send a record with a certificate; why it was not acknowledged."""
    settings: dict[str, Any] = {
        "security.protocol": "ssl",
        "ssl.ca.pem": passes.data("cluster-ca-cert")["ca.crt"],
    }
    if shown is not None:
        settings |= {"ssl.certificate.pem": shown.certificate, "ssl.key.pem": shown.key}
    return send(broker, settings)


def send(broker: Broker, settings: dict[str, Any]) -> KafkaError | None:
    """Send a record with these settings; the broker advertises an address without a name."""
    settings = {
        **settings,
        "bootstrap.servers": broker.listeners["CERTS"].replace("127.0.0.1", "localhost"),
        "ssl.endpoint.identification.algorithm": "none",
        "log_level": 0,
    }
    seen: list[KafkaError | None] = []
    failures: list[KafkaError] = []
    producer = Producer(settings, error_cb=failures.append)
    producer.produce("orders", b"x", on_delivery=lambda error, _: seen.append(error))

    def outcome() -> list[KafkaError | None]:
        producer.poll(0.05)
        return seen or [*failures]

    return wait_for("an acknowledgement or an error", outcome)[0]


def test_secrets_of_users_follow_the_authority() -> None:
    """They have what clients trust, and have it anew in each step of a replacement."""
    passes = secure(certificates={"rotationOverlap": "1h"})
    passes.kube.put(examples.user(authorization=None))
    passes.run()
    passes.kube.settle()
    for _ in range(3):
        passes.run()
    trusted = passes.data("cluster-ca-cert")["ca.crt"]
    assert trusted == user_data(passes)["ca.crt"]
    assert json.loads(user_data(passes)["librdkafka.json"])["security.protocol"] == "SASL_SSL"
    passes.annotate("barnabas.io/rotate-cluster-ca", "now")
    passes.run()
    both = user_data(passes)["ca.crt"]
    assert both.startswith(trusted)
    assert both == passes.data("cluster-ca-cert")["ca.crt"] != trusted


def user_data(passes: Passes) -> dict[str, str]:
    """What the Secret of the user has."""
    found = passes.kube.find("Secret", "billing")["data"]
    return {key: b64decode(text).decode(errors="replace") for key, text in found.items()}


def with_user(passes: Passes, **spec: Any) -> Passes:
    """The same cluster, with a user who shows a certificate."""
    user = examples.user(**{"authorization": None, "authentication": {"type": "tls"}, **spec})
    passes.kube.put(user)
    passes.run()
    passes.kube.settle()
    for _ in range(3):
        passes.run()
    return passes


def certificate(passes: Passes) -> str:
    """The certificate of the user."""
    return user_data(passes)["user.crt"]


def test_a_user_has_a_certificate_that_is_renewed_and_rotated() -> None:
    """After two thirds of its time, when asked, and by another authority; else it stays."""
    passes = with_user(secure(certificates={"rotationOverlap": "1h"}))
    status = passes.kube.find("KafkaUser", "billing")["status"]
    assert status["conditions"][0] | {"type": "Ready", "status": "True"} == status["conditions"][0]
    first = user_data(passes)
    view = read_certificate(first["user.crt"])
    assert (view.subject, status["certificateNotAfter"]) == (
        "CN=billing", format_time(view.not_after),
    )  # fmt: skip
    passes.run(timedelta(hours=2))
    assert user_data(passes) == first
    seen = [certificate(passes)]
    rotate = {"barnabas.io/rotate": "1"}
    passes.kube.edit(
        "KafkaUser", "billing", lambda body: body["metadata"].update(annotations=rotate)
    )
    passes.run()
    seen.append(certificate(passes))
    passes.run()
    assert certificate(passes) == seen[-1]
    passes.run(61 * DAY)
    seen.append(certificate(passes))
    passes.annotate("barnabas.io/rotate-clients-ca", "1")
    passes.run()
    assert certificate(passes) == seen[-1]
    passes.run(timedelta(hours=1))
    seen.append(certificate(passes))
    assert len(set(seen)) == 4
    assert read_certificate(seen[-1]).issuer != view.issuer
    # Brokers trust the old one still, for clients that have not read their Secret again.
    assert passes.data("broker-tls")["clients-ca.crt"].count("BEGIN") == 2


def test_a_certificate_of_a_user_that_is_damaged_is_issued_again() -> None:
    """The key is not that of the certificate: no client could use them."""
    passes = with_user(secure())
    before = certificate(passes)
    other = b64encode(passes.data("clients-ca")["tls.key"].encode()).decode()
    passes.kube.edit("Secret", "billing", lambda body: body["data"].update({"user.key": other}))
    passes.run()
    assert certificate(passes) != before


def test_a_change_to_certificate_authentication_removes_the_password() -> None:
    """Neither in the Secret nor among the brokers."""
    passes = secure()
    brokers = MemoryBrokers()
    passes.brokers = brokers
    with_user(passes, authentication={"type": "scram-sha-512"})
    assert brokers.credentials["billing"]
    passes.kube.edit(
        "KafkaUser",
        "billing",
        lambda body: body["spec"].update(authentication={"type": "tls"}),
    )
    for _ in range(2):
        passes.run()
    assert not brokers.credentials["billing"]
    assert {"password", "sasl.jaas.config"}.isdisjoint(user_data(passes))
    assert "user.crt" in user_data(passes)


def test_a_name_that_no_certificate_holds_is_refused() -> None:
    """A common name has 64 characters."""
    passes = with_user(secure(), username="a" * 65)
    (ready, *_) = passes.kube.find("KafkaUser", "billing")["status"]["conditions"]
    assert (ready["status"], ready["reason"]) == ("False", "InvalidUsername")


def test_clients_connect_through_the_secret_alone(running: tuple[Passes, Broker, Path]) -> None:
    """With librdkafka; another user's certificate is another principal."""
    passes, broker, _ = running
    with_user(passes)
    settings = json.loads(user_data(passes)["librdkafka.json"])
    assert send(broker, settings) is None
    store = b64decode(passes.kube.find("Secret", "billing")["data"]["user.p12"])
    password = user_data_bytes(passes)["user.password"]
    key, shown, _ = load_key_and_certificates(store, password)
    assert key is not None
    assert shown is not None


def user_data_bytes(passes: Passes) -> dict[str, bytes]:
    """What the Secret of the user has."""
    found = passes.kube.find("Secret", "billing")["data"]
    return {key: b64decode(text) for key, text in found.items()}
