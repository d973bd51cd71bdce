"""Listeners with certificates of their own: Secrets, and a broker that shows two certificates."""

from __future__ import annotations

import json
import socket
import ssl
from base64 import b64decode, b64encode
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer

from barnabas_broker.testing import Broker
from barnabas_kafka.certificates import KeyPair, create_authority, issue, read_certificate
from barnabas_kafka.settings.properties import parse_properties
from barnabas_operator.api.reading import read_cluster
from barnabas_operator.plan.certificates import format_time, parse_time
from barnabas_operator.reconcile.reconciler import RESYNC_S, Key, reconcile
from barnabas_operator.reconcile.steady import SteadyClusters
from barnabas_operator.resources.certificates import BROKER_PATH
from barnabas_operator.resources.config import server_properties
from tests.operator import examples
from tests.operator.kubelet import mount
from tests.operator.memory_kube import MemoryKube
from tests.operator.ports import NOW, MemoryBrokers, context_on
from tests.waiting import ANSWER, seconds, wait_for

KEY = Key("default", "quickstart")
START = parse_time(NOW)
DAY = timedelta(days=1)
HOST = "kafka.example"
OWN = {"brokerCertChainAndKey": {"secretName": "public"}}
PLAIN = {"name": "plain", "port": 9092}
SECURE = {"name": "secure", "port": 9093, "tls": {}, "authentication": {"type": "scram-sha-512"}}
PUBLIC: dict[str, Any] = {
    "name": "public", "port": 9094, "tls": OWN, "authentication": {"type": "tls"},
    "type": "cluster-ip", "configuration": {"advertisedHostTemplate": "b{broker}.kafka.example"},
}  # fmt: skip
AUTHORITY = create_authority("corporate", now=START, days=400)


def certificate(
    *hosts: str, now: datetime = START, days: int = 90, authority: KeyPair = AUTHORITY
) -> KeyPair:
    """One that the corporate authority has issued."""
    return issue(authority, HOST, hosts=hosts or (HOST,), now=now, validity=days * DAY)


def given(pair: KeyPair, authority: str = AUTHORITY.certificate) -> dict[str, Any]:
    """A Secret as cert-manager writes it."""
    texts = {"tls.crt": pair.certificate, "tls.key": pair.key, "ca.crt": authority}
    return {
        "apiVersion": "v1", "kind": "Secret",
        "metadata": {"name": "public", "namespace": "default"},
        "data": {key: b64encode(text.encode()).decode() for key, text in texts.items()},
    }  # fmt: skip


class Passes:
    """Passes over a cluster that has such a listener, at times that a test chooses."""

    def __init__(self, *listeners: dict[str, Any]) -> None:
        self.kube = MemoryKube(examples.cluster(listeners=listeners or (PLAIN, SECURE, PUBLIC)))
        self.brokers = MemoryBrokers()
        self.now = START

    def run(self, passed: timedelta = timedelta()) -> dict[str, tuple[str, str]]:
        """One pass, some time after the last one; the conditions."""
        self.now += passed
        reconcile(KEY, replace(context_on(self.kube, self.brokers), now=format_time(self.now)))
        status = self.kube.find("KafkaCluster", "quickstart")["status"]
        return {each["type"]: (each["reason"], each["message"]) for each in status["conditions"]}

    def start(self) -> None:
        """Until the pods run by the current template."""
        for _ in range(4):
            self.run()
            self.kube.settle()
        self.run()

    def listen(self, *listeners: dict[str, Any]) -> None:
        """Change the listeners of the spec."""
        self.kube.edit(
            "KafkaCluster", "quickstart", lambda body: body["spec"].update(listeners=listeners)
        )

    def data(self, secret: str) -> dict[str, str]:
        """What a Secret has."""
        found = self.kube.find("Secret", secret)["data"]
        return {key: b64decode(text).decode(errors="replace") for key, text in found.items()}

    def store(self) -> str:
        """What the listener shows."""
        return self.data("quickstart-broker-tls")["listener-public.pem"]

    def ends(self) -> dict[str, str]:
        """When certificates expire, by the status."""
        status = self.kube.find("KafkaCluster", "quickstart")["status"]
        return {each["name"]: each["notAfter"] for each in status["certificates"]}


def test_own_certificate_is_added_to_the_brokers_secret() -> None:
    """Of this listener alone; the status says when it expires, and clients what to trust."""
    passes = Passes()
    pair = certificate(HOST, "*.kafka.example")
    passes.kube.put(given(pair))
    passes.start()
    assert passes.store() == pair.key + pair.certificate
    text = passes.kube.find("ConfigMap", "quickstart-broker")["data"]["server.properties"]
    settings = parse_properties(text.encode(), origin="server.properties")
    places = {
        name: settings[f"listener.name.{name}.ssl.keystore.location"]
        for name in ("secure", "public")
    }
    assert places == {
        "secure": f"{BROKER_PATH}/broker.pem", "public": f"{BROKER_PATH}/listener-public.pem",
    }  # fmt: skip
    assert passes.ends()["listener-public"] == format_time(START + 90 * DAY)
    trusted = passes.data("quickstart-cluster-ca-cert")
    assert trusted["listener-public.crt"] == AUTHORITY.certificate
    assert AUTHORITY.certificate not in trusted["ca.crt"]


def test_a_renewed_certificate_changes_no_template() -> None:
    """Brokers read the file again; no pod is replaced."""
    passes = Passes()
    passes.kube.put(given(certificate()))
    passes.start()
    before = passes.kube.find("StatefulSet", "quickstart-broker")["spec"]["template"]
    renewed = certificate(now=START + DAY)
    passes.kube.put(given(renewed))
    passes.run(DAY)
    assert passes.store() == renewed.key + renewed.certificate
    assert passes.kube.find("StatefulSet", "quickstart-broker")["spec"]["template"] == before


def without(key: str) -> dict[str, Any]:
    """A Secret that lacks a key."""
    found = given(certificate())
    del found["data"][key]
    return found


OTHER = certificate()
BAD: dict[str, tuple[dict[str, Any], str]] = {
    "no key": (without("tls.key"), "it has no key tls.key"),
    "another key": (
        given(KeyPair(certificate=certificate().certificate, key=OTHER.key)),
        "the key is not that of the first certificate",
    ),
    "no PEM": (given(KeyPair(certificate="none", key=OTHER.key)), "no PEM of X.509"),
    "expired": (given(certificate(days=0)), "the certificate expired at"),
    "another authority": (
        given(certificate(), create_authority("other", now=START, days=9).certificate),
        "neither chain nor authorities have the certificate of CN=corporate",
    ),
    "too large": (given(certificate(), AUTHORITY.certificate * 200), "more than 65536 bytes"),
}


@pytest.mark.parametrize("name", BAD)
def test_a_secret_that_cannot_be_used_gates_nothing_else(name: str) -> None:
    """At first the listener shows the cluster's certificate, later what it showed before."""
    body, problem = BAD[name]
    passes = Passes()
    reason, text = passes.run()["Stalled"]
    assert reason == "ListenerCertificateInvalid"
    assert text.startswith("listener public: Secret public: it does not exist; create it;")
    assert passes.store() == passes.data("quickstart-broker-tls")["broker.pem"]
    assert ("StatefulSet", "default", "quickstart-broker") in passes.kube.objects
    assert "listener-public.crt" not in passes.data("quickstart-cluster-ca-cert")
    passes.kube.put(given(certificate(HOST, "*.kafka.example")))
    passes.start()
    assert "Stalled" not in passes.run()
    before = passes.store(), passes.data("quickstart-cluster-ca-cert")
    passes.kube.put(body)
    passes.kube.edit(
        "KafkaCluster",
        "quickstart",
        lambda each: each["spec"]["config"].update({"message.max.bytes": "2000000"}),
    )
    reason, text = passes.run()["Stalled"]
    assert reason == "ListenerCertificateInvalid"
    assert problem in text
    assert text.endswith("the listener shows the one before")
    assert "PRIVATE" not in text
    assert (passes.store(), passes.data("quickstart-cluster-ca-cert")) == before
    config = passes.kube.find("ConfigMap", "quickstart-broker")["data"]["server.properties"]
    assert "message.max.bytes=2000000" in config


def test_a_secret_that_may_not_be_read_concerns_its_listener_alone() -> None:
    """What the API server answers is in the condition."""
    passes = Passes()
    passes.kube.fail("get Secret public", 403, times=4)
    reason, text = passes.run()["Stalled"]
    assert (reason, "Secret public is refused" in text) == ("ListenerCertificateInvalid", True)
    assert ("StatefulSet", "default", "quickstart-broker") in passes.kube.objects


def test_hosts_missing_from_the_certificate_are_reported() -> None:
    """Those that the listener advertises: clients would refuse the certificate."""
    passes = Passes()
    passes.kube.put(given(certificate("b0.kafka.example")))
    passes.start()
    reason, text = passes.run()["Warning"]
    assert reason == "CertificateLacksHosts"
    assert "does not name quickstart-public-bootstrap.default.svc;" in text
    passes.kube.put(
        given(certificate("*.kafka.example", "quickstart-public-bootstrap.default.svc"))
    )
    assert "Warning" not in passes.run()


@pytest.mark.parametrize(("days", "left"), [(365, 30), (6, 1)])
def test_expiry_is_reported_in_time(days: int, left: int) -> None:
    """Thirty days before, or in the last sixth of one that is renewed often."""
    passes = Passes(PLAIN, SECURE, {**PUBLIC, "type": "internal", "configuration": None})
    hosts = (
        "quickstart-bootstrap.default.svc",
        "*.quickstart-broker-nodes.default.svc",
    )
    passes.kube.put(given(certificate(*hosts, days=days)))
    passes.start()
    assert "Warning" not in passes.run((days - left) * DAY - timedelta(hours=1))
    reason, text = passes.run(timedelta(hours=1))["Warning"]
    assert (reason, "replace it" in text) == ("CertificateExpires", True)


def test_brokers_that_run_keep_the_file_until_none_reads_it() -> None:
    """Of a listener that is removed, or shows the cluster's certificate again."""
    passes = Passes()
    passes.kube.put(given(certificate()))
    passes.start()
    before = passes.store(), passes.data("quickstart-cluster-ca-cert")["listener-public.crt"]
    passes.listen(PLAIN, SECURE)
    for _ in range(2):
        passes.run()
        after = passes.store(), passes.data("quickstart-cluster-ca-cert")["listener-public.crt"]
        assert after == before
    passes.start()
    assert "listener-public.pem" not in passes.data("quickstart-broker-tls")
    assert "listener-public.crt" not in passes.data("quickstart-cluster-ca-cert")


def test_a_settled_cluster_notices_another_certificate() -> None:
    """Within a resync, although Secrets are not watched."""
    passes = Passes()
    hosts = (HOST, "*.kafka.example", "quickstart-public-bootstrap.default.svc")
    passes.kube.put(given(certificate(*hosts)))
    passes.start()
    context = replace(context_on(passes.kube, passes.brokers), now=NOW, index=lambda *_: [])
    steady = SteadyClusters(lambda *_: (1, 1))
    for _ in range(2):
        assert steady.reconcile(KEY, context) == RESYNC_S
    before = len(passes.kube.requests)
    steady.reconcile(KEY, context)
    skipped = len(passes.kube.requests) - before
    renewed = certificate(*hosts, now=START - DAY)
    passes.kube.put(given(renewed))
    passes.kube.find("Secret", "public")["metadata"]["resourceVersion"] = "another"
    before = len(passes.kube.requests)
    steady.reconcile(KEY, context)
    assert len(passes.kube.requests) - before > skipped
    assert passes.store() == renewed.key + renewed.certificate


# --- users ----------------------------------------------------------------------------------------


def with_user(passes: Passes, **spec: Any) -> dict[str, str]:
    """The Secret of a user of the listener."""
    chosen = {"authentication": {"type": "tls"}, "authorization": None, **spec}
    passes.kube.put(examples.user(**chosen))
    passes.start()
    return passes.data("billing")


def test_users_of_the_listener_trust_its_authority() -> None:
    """And the cluster's, whose certificate it may have shown; users of others that one alone."""
    passes = Passes()
    passes.kube.put(given(certificate()))
    own = passes.data("quickstart-cluster-ca-cert") if passes.run() else {}
    assert with_user(passes)["ca.crt"] == AUTHORITY.certificate + own["ca.crt"]
    others = with_user(passes, authentication={"type": "scram-sha-512"})
    assert others["ca.crt"] == own["ca.crt"]


@pytest.mark.parametrize("kind", ["tls", "scram-sha-512"])
def test_clients_trust_what_their_systems_do_where_no_authority_is_given(kind: str) -> None:
    """As of a public one: its certificate says nothing of who has to be trusted."""
    passes = Passes(PLAIN, {**PUBLIC, "authentication": {"type": kind}})
    passes.kube.put(given(certificate(), authority=""))
    data = with_user(passes, authentication={"type": kind})
    assert "ca.crt" not in data
    texts = [data[key] for key in ("client.properties", "librdkafka.properties", "spark.json")]
    assert not [text for text in texts if "truststore" in text or "ssl.ca" in text]
    assert "ssl.ca.pem" not in json.loads(data["librdkafka.json"])
    passes.kube.put(given(certificate()))
    assert with_user(passes, authentication={"type": kind})["ca.crt"].startswith("-----BEGIN")


def test_cluster_authority_rotation_does_not_wait_for_users_of_the_listener() -> None:
    """Those who trust their system's authorities alone are not waited for."""
    passes = Passes(PLAIN, PUBLIC)
    passes.kube.put(given(certificate(days=365), authority=""))
    with_user(passes)
    name = "quickstart-cluster-ca-cert"
    first = passes.data(name)["ca.crt"]
    annotation = {"barnabas.io/rotate-cluster-ca": "1"}
    passes.kube.edit(
        "KafkaCluster", "quickstart", lambda each: each["metadata"].update(annotations=annotation)
    )
    for _ in range(3):
        passes.run(DAY)
    assert first not in passes.data(name)["ca.crt"]


# --- a broker -------------------------------------------------------------------------------------


class Running:
    """A broker with the rendered settings and the files of its Secret."""

    def __init__(self, passes: Passes, directory: Path, authority: KeyPair) -> None:
        self.passes = passes
        self._directory = directory
        self.authority = authority
        self.certify()
        self.passes.start()
        spec = read_cluster(passes.kube.find("KafkaCluster", "quickstart")).body.spec
        text = server_properties(
            "quickstart", listeners=spec.listeners, config={}, zookeeper_connect=None
        )
        rendered = parse_properties(
            text.replace(BROKER_PATH, str(directory)).encode(), origin="server.properties"
        )
        names = [each.kafka_name for each in spec.listeners]
        self.broker = Broker(
            {
                **{name: value for name, value in rendered.items() if name != "log.dirs"},
                "listeners": ",".join(f"{name}://localhost:0" for name in names),
                "barnabas.admin.listener": "localhost:0",
            }
        )

    def certify(self) -> str:
        """Give the listener another certificate, as far as the files of the broker's pod."""
        pair = certificate(HOST, "localhost", now=self.passes.now, authority=self.authority)
        self.passes.kube.put(given(pair, self.authority.certificate))
        self.passes.run()
        mount(self.passes.kube.find("Secret", "quickstart-broker-tls")["data"], self._directory)
        return pair.certificate

    def shown(self, listener: str, trusted: str, host: str) -> str:
        """The subject of what a listener shows to a client that verifies it."""
        context = ssl.create_default_context(cadata=trusted)
        address = self.broker.listeners[listener].rpartition(":")
        with (
            socket.create_connection(("127.0.0.1", int(address[2])), seconds(ANSWER)) as plain,
            context.wrap_socket(plain, server_hostname=host) as secured,
        ):
            return ssl.DER_cert_to_PEM_cert(secured.getpeercert(binary_form=True) or b"")


@pytest.fixture
def running(tmp_path: Path) -> Iterator[Running]:
    """It has the certificates of both listeners."""
    passes = Passes()
    passes.now = datetime.now(tz=UTC).replace(microsecond=0)
    authority = create_authority("corporate", now=passes.now, days=400)
    with ExitStack() as stack:
        found = Running(passes, tmp_path, authority)
        stack.enter_context(found.broker)
        found.broker.create_topic("orders", partitions=1)
        yield found


def test_two_listeners_of_a_broker_show_two_certificates(running: Running) -> None:
    """Each is verified by its own authority alone; a renewed one is shown without restart."""
    cluster = running.passes.data("quickstart-cluster-ca-cert")["ca.crt"]
    corporate = running.authority.certificate
    assert read_certificate(running.shown("SECURE", cluster, "localhost")).common_name == (
        "quickstart-broker"
    )
    first = running.shown("PUBLIC", corporate, HOST)
    assert read_certificate(first).common_name == HOST
    with pytest.raises(ssl.SSLCertVerificationError):
        running.shown("SECURE", corporate, "localhost")
    with pytest.raises(ssl.SSLCertVerificationError):
        running.shown("PUBLIC", cluster, "localhost")
    renewed = running.certify()
    wait_for(
        "the renewed certificate",
        lambda: running.shown("PUBLIC", corporate, HOST),
        until=lambda shown: shown == renewed,
    )


def test_a_client_is_let_in_by_the_secret_of_its_user(running: Running) -> None:
    """By librdkafka, which verifies the host as well."""
    data = with_user(running.passes)
    settings = json.loads(data["librdkafka.json"])
    reported: list[str] = []
    producer = Producer(
        {**settings, "bootstrap.servers": running.broker.listeners["PUBLIC"], "log_level": 0},
        error_cb=lambda error: reported.append(error.str()),
    )
    producer.produce(
        "orders",
        b"x",
        on_delivery=lambda error, _: reported.append(str(error) if error else "sent"),
    )

    def outcome() -> list[str]:
        producer.poll(0.05)
        return reported

    assert wait_for("an acknowledgement or an error", outcome) == ["sent"]
