"""Secured clusters: what is recorded and refused, and a broker that runs by what is rendered."""

from __future__ import annotations

import socket
import ssl
import urllib.error
import urllib.request
from base64 import b64encode
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from barnabas_broker.testing import Broker
from barnabas_kafka.certificates import KeyPair, issue, read_certificate
from barnabas_kafka.settings.properties import parse_properties
from barnabas_operator.api.reading import read_cluster
from barnabas_operator.brokers import AdminBrokers, ClientTls
from barnabas_operator.kube import CLAIMS, KubeError
from barnabas_operator.plan.topics import CreateTopic
from barnabas_operator.reconcile.reconciler import Key
from barnabas_operator.reconcile.security import credentials_of
from barnabas_operator.resources.brokers import broker_config
from barnabas_operator.resources.certificates import BROKER_PATH
from barnabas_operator.restart_check import NO_ACCESS, AdminAccess, restart_check
from tests.operator import examples
from tests.operator.ports import context_on
from tests.operator.reconcile.test_certificates import DAY, LISTENERS, Passes, write
from tests.oracle.apache import free_port
from tests.waiting import ANSWER, seconds

SECURED = LISTENERS[1:]
KEY = Key("default", "quickstart")


def secured(**spec: Any) -> Passes:
    """Passes over a cluster that is created secured."""
    return Passes(examples.cluster(**{"listeners": SECURED, "insecure": False, **spec}))


def remove(spec: dict[str, Any], *names: str) -> None:
    """Take fields out of a spec."""
    for name in names:
        spec.pop(name, None)


def without(document: dict[str, Any], *names: str) -> dict[str, Any]:
    """A resource whose spec does not have some fields."""
    remove(document["spec"], *names)
    return document


def claims(passes: Passes, stateful_set: str) -> list[dict[str, Any]]:
    """The claim templates of a StatefulSet."""
    found: list[dict[str, Any]] = passes.kube.find("StatefulSet", stateful_set)["spec"][
        "volumeClaimTemplates"
    ]
    return found


def change(passes: Passes, **spec: Any) -> dict[str, Any]:
    """A person edits the resource; the status after the next pass."""
    passes.kube.edit("KafkaCluster", "quickstart", lambda body: body["spec"].update(spec))
    return passes.run()


def stalled(status: dict[str, Any]) -> str:
    """Why the spec is not applied; empty if it is."""
    return next((each["message"] for each in status["conditions"] if each["type"] == "Stalled"), "")


def settings(passes: Passes) -> dict[str, str]:
    """The brokers' server.properties."""
    text = passes.kube.find("ConfigMap", "quickstart-broker")["data"]["server.properties"]
    return parse_properties(text.encode(), origin="server.properties")


def test_brokers_of_a_secured_cluster_know_each_other_by_certificates() -> None:
    """And every name that is more than a user's is in the settings, whatever `config` says."""
    passes = secured(
        config={
            "ssl.principal.mapping.rules": "RULE:^CN=(.*)$/$1/",
            "ssl.endpoint.identification.algorithm": "",
        },
        authorization={"superUsers": ["admin"]},
    )
    passes.run()
    found = settings(passes)
    assert found["inter.broker.listener.name"] == "REPLICATION"
    assert found["listener.name.replication.ssl.client.auth"] == "required"
    assert found["listener.name.replication.ssl.principal.mapping.rules"] == "DEFAULT"
    assert found["listener.name.replication.ssl.endpoint.identification.algorithm"] == "https"
    assert found["super.users"] == (
        "User:CN=quickstart-broker,O=barnabas.io;User:CN=quickstart-operator,O=barnabas.io"
        ";User:admin"
    )
    assert "PLAINTEXT" not in found["listener.security.protocol.map"]
    stateful_set = passes.kube.find("StatefulSet", "quickstart-broker")
    (container,) = stateful_set["spec"]["template"]["spec"]["containers"]
    assert container["readinessProbe"]["httpGet"]["scheme"] == "HTTPS"
    assert passes.run()["security"] == "Secured"


def test_a_cluster_that_says_insecure_has_nothing_of_it() -> None:
    """Nothing is noted on objects; the status says what the cluster is."""
    passes = Passes(without(examples.cluster(insecure=True), "listeners"))
    passes.run()
    assert passes.run()["security"] == "Insecure"
    assert settings(passes)["listeners"] == "PLAIN://0.0.0.0:9092"
    for name in ("quickstart-broker", "quickstart-zookeeper"):
        notes = passes.kube.find("StatefulSet", name)["metadata"]["annotations"]
        assert "barnabas.io/security" not in notes
        (claim,) = claims(passes, name)
        assert "barnabas.io/security" not in claim["metadata"]["labels"]
    assert not [key for key in passes.kube.objects if key[0] == "NetworkPolicy"]


def test_a_cluster_of_a_few_lines_is_secured() -> None:
    """One listener for users, and the record on everything that outlives a status."""
    passes = Passes(without(examples.cluster(), "insecure", "listeners"))
    passes.run()
    status = passes.run()
    assert (status["security"], stalled(status)) == ("Secured", "")
    assert settings(passes)["listeners"] == "SECURE://0.0.0.0:9092,REPLICATION://0.0.0.0:9091"
    assert [(each["name"], each["type"]) for each in status["listeners"]] == [
        ("secure", "internal")
    ]
    for name in ("quickstart-broker", "quickstart-zookeeper"):
        notes = passes.kube.find("StatefulSet", name)["metadata"]["annotations"]
        assert notes["barnabas.io/security"] == "Secured"
        (claim,) = claims(passes, name)
        assert claim["metadata"]["labels"]["barnabas.io/security"] == "Secured"
    assert "listeners" not in passes.kube.find("KafkaCluster", "quickstart")["spec"]


@pytest.mark.parametrize("listed", [True, False])
@pytest.mark.parametrize("recorded", [True, False])
@pytest.mark.parametrize("ensemble_only", [True, False])
def test_an_upgrade_changes_no_cluster_that_exists(
    listed: bool, recorded: bool, ensemble_only: bool
) -> None:
    """One without the field, by an operator for which that was insecure.

    Its listener was filled in by the API server (`listed`), or by that operator where definitions
    came first; that operator recorded the mode or did not, and made everything or had begun.
    """
    gone = ("insecure",) if listed else ("insecure", "listeners")
    made = examples.cluster(insecure=True, listeners=LISTENERS[:1])
    passes = Passes(made)
    passes.run()
    passes.run()
    before, written = settings(passes), len(passes.kube.writes)
    # Not an edit: its generation stays.
    remove(passes.kube.find("KafkaCluster", "quickstart")["spec"], *gone)
    if not recorded:
        lose(passes, "security")
    if ensemble_only:
        passes.kube.remove("StatefulSet", "quickstart-broker")
    status = passes.run()
    assert (status["security"], stalled(status)) == ("Insecure", "")
    assert settings(passes) == before
    changed = [each for each in passes.kube.writes[written:] if "KafkaCluster" not in each]
    assert [each for each in changed if "StatefulSet quickstart-broker" not in each] == []
    assert bool(changed) == ensemble_only
    passes.run()
    assert settings(passes) == before
    assert not [key for key in passes.kube.objects if key[0] in ("Secret", "NetworkPolicy")]
    # The line that its resource should have now changes nothing either.
    assert not stalled(change(passes, insecure=True))
    assert settings(passes) == before


def test_state_derived_from_objects_is_recorded_first() -> None:
    """Before anything is done by it: a pass may end anywhere."""
    passes = Passes(examples.cluster(insecure=True, listeners=LISTENERS[:1]))
    passes.run()
    passes.kube.edit("KafkaCluster", "quickstart", lambda body: remove(body["spec"], "insecure"))
    lose(passes, "security")
    written = len(passes.kube.writes)
    passes.run()
    assert "KafkaCluster" in passes.kube.writes[written]
    assert passes.kube.find("KafkaCluster", "quickstart")["status"]["security"] == "Insecure"


def test_the_same_resource_on_an_empty_kubernetes_is_refused_with_what_to_write() -> None:
    """Nothing is made; with one line more it is what it was."""
    passes = Passes(without(examples.cluster(listeners=LISTENERS[:1]), "insecure"))
    message = stalled(passes.run())
    assert "spec.listeners: plain: needs tls and authentication" in message
    assert "or set insecure: true" in message
    assert not [key for key in passes.kube.objects if key[0] in ("StatefulSet", "Secret")]
    assert not stalled(change(passes, insecure=True))
    assert passes.run()["security"] == "Insecure"


@pytest.mark.parametrize("ends", [False, True])
def test_a_secured_cluster_that_was_refused_may_become_an_insecure_one(ends: bool) -> None:
    """Nothing that keeps its brokers from their ensemble is left, wherever a pass ends."""
    passes = Passes(without(examples.cluster(), "insecure", "listeners"))
    passes.kube.fail("apply StatefulSet", 403, times=None)
    assert "StatefulSet quickstart-zookeeper is refused" in stalled(passes.run())
    assert [key for key in passes.kube.objects if key[0] == "NetworkPolicy"]
    passes.kube.faults.clear()
    passes.kube.edit("KafkaCluster", "quickstart", lambda body: body["spec"].update(insecure=True))
    if ends:
        passes.kube.fail("delete NetworkPolicy", 503)
        with pytest.raises(KubeError):
            passes.run()
    assert not stalled(passes.run())
    assert passes.run()["security"] == "Insecure"
    assert settings(passes)["listeners"] == "PLAIN://0.0.0.0:9092"
    assert not [key for key in passes.kube.objects if key[0] == "NetworkPolicy"]


def test_an_insecure_cluster_keeps_the_listener_of_its_brokers() -> None:
    """The operator refuses what the API server cannot: it does not know what a cluster is."""
    passes = Passes(examples.cluster(insecure=True, listeners=LISTENERS[:1]))
    passes.run()
    passes.run()
    before = settings(passes)
    passes.kube.edit("KafkaCluster", "quickstart", lambda body: remove(body["spec"], "insecure"))
    assert "one listener must be of type internal" in stalled(change(passes, listeners=SECURED))
    two = [LISTENERS[0], {"name": "more", "port": 9096}]
    text = stalled(change(passes, listeners=two, authorization={"type": "simple"}))
    assert "every listener but one needs authentication" in text
    assert settings(passes) == before


def leave_claims(passes: Passes, **spec: Any) -> Passes:
    """The cluster is deleted and created again, as from a backup: its claims were retained."""
    passes.kube.settle()
    kept = [body for (kind, _, _), body in passes.kube.objects.items() if kind == CLAIMS.kind]
    assert len(kept) == 2
    again = without(examples.cluster(**spec), *(() if spec else ("insecure", "listeners")))
    again["metadata"]["uid"] = "uid-of-another"
    return Passes(again, *kept)


def test_claims_of_a_secured_cluster_say_so() -> None:
    """A cluster that is created over them is secured, whatever else was lost."""
    passes = Passes(without(examples.cluster(), "insecure", "listeners"))
    passes.run()
    passes.run()
    again = leave_claims(passes)
    again.run()
    status = again.run()
    assert (status["security"], stalled(status)) == ("Secured", "")
    other = leave_claims(passes, insecure=True, listeners=LISTENERS[:1])
    assert "created secured" in stalled(other.run())
    assert not [key for key in other.kube.objects if key[0] == "StatefulSet"]


def test_claims_from_before_they_said_so_are_labelled() -> None:
    """Those of a secured cluster, whose templates cannot change: nobody has it insecure later."""
    passes = Passes(without(examples.cluster(), "insecure", "listeners"))
    passes.run()
    passes.kube.settle()
    for kind, _, name in list(passes.kube.objects):
        if kind == CLAIMS.kind:
            passes.kube.edit(
                kind, name, lambda body: body["metadata"]["labels"].pop("barnabas.io/security")
            )
    written = len(passes.kube.writes)
    passes.run()
    passes.run()
    changed = [each for each in passes.kube.writes[written:] if "KafkaCluster" not in each]
    assert len(changed) == 2
    assert all("PersistentVolumeClaim" in each for each in changed)
    other = leave_claims(passes, insecure=True, listeners=LISTENERS[:1])
    assert "created secured" in stalled(other.run())


def test_claims_of_a_cluster_that_may_have_been_either_need_a_word() -> None:
    """Brokers of the other mode could not use the ensemble's data: the resource has to say it."""
    passes = Passes(examples.cluster(insecure=True))
    passes.run()
    passes.run()
    again = leave_claims(passes)
    assert "no record whether it was secured; set insecure: true" in stalled(again.run())
    assert not [key for key in again.kube.objects if key[0] in ("StatefulSet", "Secret")]
    assert not stalled(change(again, insecure=True))
    assert again.run()["security"] == "Insecure"


def test_an_operator_without_the_right_to_secrets_says_so() -> None:
    """On the secured cluster, with the remedy; insecure ones are served as ever."""
    passes = Passes(without(examples.cluster(), "insecure", "listeners"))
    plain = Passes(examples.cluster(insecure=True))
    names = ("cluster-ca", "clients-ca", "cluster-ca-cert", "broker-tls", "operator-tls")
    for each in (*names, "zookeeper-tls", "admin-token"):
        refusal = {f"get Secret quickstart-{each}": 'forbidden: cannot get resource "secrets"'}
        passes.kube.refuses.update(refusal)
        plain.kube.refuses.update(refusal)
    message = stalled(passes.run())
    assert "the operator may not get, create or patch Secrets" in message
    assert "users=true" in message
    assert not [key for key in passes.kube.objects if key[0] == "StatefulSet"]
    plain.run()
    status = plain.run()
    assert (status["security"], stalled(status)) == ("Insecure", "")


@pytest.mark.parametrize("lost", [False, True])
def test_a_cluster_stays_what_it_was_created_as(lost: bool) -> None:
    """Also where its status was lost, as by a restore: brokers go on as they are."""
    for created, asked, words in (
        ({"insecure": False, "listeners": SECURED}, {"insecure": True}, "created secured"),
        ({"insecure": True}, {"insecure": False, "listeners": SECURED}, "created insecure"),
    ):
        passes = Passes(examples.cluster(**created))
        passes.run()
        passes.run()
        before = settings(passes)
        if lost:
            passes.kube.edit("KafkaCluster", "quickstart", lambda body: body.pop("status"))
        assert words in stalled(change(passes, **asked))
        assert settings(passes) == before
        corrected = {"insecure": created.get("insecure"), "listeners": LISTENERS[:1]}
        assert not stalled(change(passes, **{**corrected, **created}))


def test_a_secured_cluster_whose_field_is_removed_stays_secured() -> None:
    """What is recorded counts, not the default."""
    passes = secured()
    passes.run()
    passes.run()
    before = settings(passes)
    passes.kube.edit("KafkaCluster", "quickstart", lambda body: body["spec"].pop("insecure"))
    status = passes.run()
    assert (status["security"], stalled(status), settings(passes)) == ("Secured", "", before)


def lose(passes: Passes, field: str) -> None:
    """An API server with older definitions drops a field of the status."""
    passes.kube.edit("KafkaCluster", "quickstart", lambda body: body["status"].pop(field, None))


@pytest.mark.parametrize("lost", [False, True])
def test_zookeeper_of_a_secured_cluster_has_tls(lost: bool) -> None:
    """Its own certificate, and brokers that come with theirs; the status says so."""
    passes = secured()
    passes.run()
    status = passes.run()
    if lost:
        lose(passes, "zookeeperProtocol")
        status = passes.run()
    assert status["zookeeperProtocol"] == "TLS"
    assert "zookeeper" in {each["name"] for each in status["certificates"]}
    found = settings(passes)
    assert found["zookeeper.ssl.client.enable"] == found["zookeeper.set.acl"] == "true"
    assert found["zookeeper.connect"].endswith(".svc:2281/quickstart")
    certificate = read_certificate(passes.data("zookeeper-tls")["zookeeper.pem"])
    assert certificate.subject == "CN=quickstart-zookeeper,O=barnabas.io"
    assert certificate.hosts == {
        "*.quickstart-zookeeper-nodes.default.svc",
        "quickstart-zookeeper.default.svc",
    }
    cluster = read_cluster(passes.kube.find("KafkaCluster", "quickstart"))
    member = credentials_of(cluster, context_on(passes.kube)).member
    assert (member.port, member.host) == (2281, "quickstart-zookeeper.default.svc")
    assert member.tls is not None


@pytest.mark.parametrize("lost", [False, True])
def test_an_ensemble_without_tls_stays_without(lost: bool) -> None:
    """Of a secured cluster that an earlier operator created: not one object of it changes."""
    passes = secured()
    passes.kube.edit(
        "KafkaCluster",
        "quickstart",
        lambda body: body.update(status={"security": "Secured", "zookeeperProtocol": "Plaintext"}),
    )
    passes.run()
    passes.run()
    before, written = settings(passes), len(passes.kube.writes)
    # Its operator knew of no such field.
    lose(passes, "zookeeperProtocol")
    if lost:
        lose(passes, "security")
    assert passes.run()["zookeeperProtocol"] == "Plaintext"
    assert settings(passes) == before
    assert "zookeeper.ssl.client.enable" not in before
    assert before["zookeeper.connect"].endswith(".svc:2181/quickstart")
    changed = [each for each in passes.kube.writes[written:] if "KafkaCluster" not in each]
    assert changed == []
    assert ("Secret", "default", "quickstart-zookeeper-tls") not in passes.kube.objects


def test_insecure_clusters_say_nothing_of_zookeeper() -> None:
    """They have no TLS."""
    passes = Passes(examples.cluster())
    passes.run()
    assert not passes.run().get("zookeeperProtocol")


def test_the_ensemble_takes_part_in_the_replacement_of_an_authority() -> None:
    """The new authority issues once members trust it; the old one goes once none is of it."""
    passes = secured(certificates={"rotationOverlap": "10m"})
    passes.run()
    first = passes.data("cluster-ca")["tls.crt"]
    passes.annotate("barnabas.io/rotate-cluster-ca", "1")
    passes.run()
    trusted = passes.data("zookeeper-tls")["cluster-ca.crt"]
    assert trusted.count("BEGIN") == 2
    issuer = read_certificate(passes.data("zookeeper-tls")["zookeeper.pem"]).issuer
    for _ in range(2):
        passes.run(timedelta(minutes=11))
    found = passes.data("zookeeper-tls")
    assert read_certificate(found["zookeeper.pem"]).issuer != issuer
    assert first not in found["cluster-ca.crt"]


@pytest.mark.parametrize(
    ("spec", "words"),
    [
        ({"config": {"zookeeper.set.acl": "false"}}, "zookeeper.set.acl: the operator sets it"),
        ({"listeners": LISTENERS}, "plain: needs tls and authentication"),
        (
            {"listeners": [{**SECURED[0], "tls": None}]},
            "secure: needs tls and authentication",
        ),
        ({"listeners": [{**SECURED[0], "port": 9091}]}, "port 9091 are the brokers' own"),
        ({"listeners": [{**SECURED[0], "name": "replication"}]}, "name replication"),
        ({"config": {"super.users": "User:mallory"}}, "super.users: follows from"),
        ({"config": {"allow.everyone.if.no.acl.found": "true"}}, "keeps closed"),
    ],
)
def test_invalid_specs_of_secured_clusters(spec: dict[str, Any], words: str) -> None:
    """Refused by name; as nothing was applied the whole choice is still open."""
    passes = secured(**spec)
    assert words in stalled(passes.run())
    assert not [key for key in passes.kube.objects if key[0] in ("StatefulSet", "Secret")]
    other = {"insecure": True, "listeners": LISTENERS[:1], "config": {}}
    assert not stalled(change(passes, **other))
    assert passes.run()["security"] == "Insecure"


def test_a_lost_authority_is_not_replaced_under_running_brokers() -> None:
    """They would trust each other no longer until all have the new one."""
    passes = secured()
    passes.run()
    before = passes.data("broker-tls")
    passes.kube.remove("Secret", "quickstart-cluster-ca")
    assert "Secret quickstart-cluster-ca is lost" in stalled(passes.run())
    assert passes.data("broker-tls") == before
    passes.kube.remove("Secret", "quickstart-broker-tls")
    assert not stalled(passes.run())
    assert passes.data("broker-tls")["cluster-ca.crt"] != before["cluster-ca.crt"]


def test_a_token_that_no_broker_would_start_with_is_refused() -> None:
    """By the name of its Secret; the brokers keep the one that they have."""
    passes = secured()
    passes.run()
    token = passes.data("broker-tls")["admin-token"]
    assert passes.data("admin-token")["token"] == token
    short = b64encode(b"short").decode()
    passes.kube.edit(
        "Secret", "quickstart-admin-token", lambda body: body["data"].update(token=short)
    )
    assert "Secret quickstart-admin-token is damaged" in stalled(passes.run())
    assert passes.data("broker-tls")["admin-token"] == token
    passes.kube.remove("Secret", "quickstart-admin-token")
    assert not stalled(passes.run())
    assert passes.data("broker-tls")["admin-token"] != token


def test_credentials_that_are_not_to_be_had() -> None:
    """Nothing is shown then; an API server that fails is asked again."""
    passes = secured()
    passes.run()
    cluster = read_cluster(passes.kube.find("KafkaCluster", "quickstart"))
    context = context_on(passes.kube)
    assert credentials_of(cluster, context).tls is not None
    passes.kube.edit(
        "Secret",
        "quickstart-operator-tls",
        lambda body: body["data"].update({"operator.pem": "AA"}),
    )
    found = credentials_of(cluster, context)
    assert (found.tls, found.admin.tls) == (None, None)
    foreign = replace(cluster, meta=replace(cluster.meta, uid="of-another"))
    assert credentials_of(foreign, context).admin.token == ""
    passes.kube.fail("get Secret", 500)
    with pytest.raises(KubeError):
        credentials_of(cluster, context)


def test_an_operator_without_the_right_to_network_policies_says_so() -> None:
    """As after an upgrade of its image alone; nothing else waits for it."""
    passes = secured()
    passes.kube.fail("list NetworkPolicy", 403, times=None)
    passes.kube.fail("get NetworkPolicy", 403, times=None)
    assert "NetworkPolicy" in stalled(passes.run())
    assert passes.kube.find("StatefulSet", "quickstart-broker")


def test_a_pipeline_without_a_user_is_refused() -> None:
    """By name, instead of a pod that is refused for ever."""
    passes = secured()
    passes.kube.put(examples.pipeline())
    passes.run()
    status = passes.kube.find("KafkaPipeline", examples.pipeline()["metadata"]["name"])["status"]
    assert "is secured: set spec.user to a KafkaUser" in stalled(status)


# --- with a broker --------------------------------------------------------------------------------


@pytest.fixture
def running(tmp_path: Path) -> Iterator[tuple[Passes, Broker, str]]:
    """A broker with the rendered settings and the files of its Secret, and its admin port."""
    passes = secured()
    passes.now = datetime.now(tz=UTC).replace(microsecond=0)
    passes.run()
    cluster = read_cluster(passes.kube.find("KafkaCluster", "quickstart"))
    text = broker_config(cluster).replace(BROKER_PATH, str(tmp_path))
    rendered = parse_properties(text.encode(), origin="server.properties")
    write(passes, tmp_path)
    port = free_port()
    names = [each.kafka_name for each in cluster.body.spec.all_listeners]
    here = {
        "listeners": ",".join(f"{name}://localhost:0" for name in names),
        "barnabas.admin.listener": f"localhost:{port}",
    }
    kept = {
        name: value
        for name, value in rendered.items()
        if name != "log.dirs" and not name.startswith("zookeeper.")
    }
    with Broker({**kept, **here}) as broker:
        yield passes, broker, f"https://localhost:{port}"


def test_the_operator_comes_in_and_a_user_does_not(running: tuple[Passes, Broker, str]) -> None:
    """On the brokers' own listener only certificates of the brokers' authority count."""
    passes, broker, _ = running
    cluster = read_cluster(passes.kube.find("KafkaCluster", "quickstart"))
    found = credentials_of(cluster, context_on(passes.kube))
    where = broker.listeners["REPLICATION"].replace("127.0.0.1", "localhost")
    with AdminBrokers(where, found.tls) as brokers:
        assert not brokers.create_topics(
            {"orders": CreateTopic(partitions=1, replicas=1, config={})}
        )
        assert brokers.topic_names() == {"orders"}
    assert found.tls is not None
    for name, organization in (("alice", ""), ("quickstart-operator", "barnabas.io")):
        data = passes.data("clients-ca")
        pair = KeyPair(certificate=data["tls.crt"], key=data["tls.key"])
        theirs = issue(pair, name, organization=organization, now=passes.now, validity=DAY)
        shown = ClientTls(certificate=theirs.certificate, key=theirs.key, trusted=found.tls.trusted)
        assert refuses(where, shown.context())
    assert refuses(where, ssl.create_default_context(cadata=found.tls.trusted))


def refuses(where: str, context: ssl.SSLContext) -> bool:
    """Whether a listener ends the connection of a client with such a certificate, or none."""
    host, _, port = where.rpartition(":")
    with (
        socket.create_connection((host, int(port)), timeout=seconds(ANSWER)) as plain,
        context.wrap_socket(plain, server_hostname=host) as secured,
    ):
        try:
            return secured.recv(1) == b""
        except (ssl.SSLError, ConnectionResetError):
            return True


def test_the_admin_port_asks_for_the_token(running: tuple[Passes, Broker, str]) -> None:
    """Over HTTPS; a kubelet, which has none, is told whether the broker is ready."""
    passes, _, url = running
    cluster = read_cluster(passes.kube.find("KafkaCluster", "quickstart"))
    access = credentials_of(cluster, context_on(passes.kube)).admin
    assert restart_check(url, access).ok
    assert not restart_check(url, AdminAccess(token="wrong" * 8, tls=access.tls)).ok
    assert not restart_check(url, NO_ACCESS).ok
    unverified = ssl.create_default_context()
    unverified.check_hostname, unverified.verify_mode = False, ssl.CERT_NONE
    with urllib.request.urlopen(f"{url}/ready", timeout=seconds(ANSWER), context=unverified) as it:
        assert it.status == 200
    with pytest.raises(urllib.error.HTTPError, match="401"):
        urllib.request.urlopen(f"{url}/metrics", timeout=seconds(ANSWER), context=unverified)
