"""A listener whose certificate an Issuer of a real cert-manager signs, and renews under load.

cert-manager is built from its Go module, which takes minutes, so this is not in `make test`:

    python -m pytest e2e/test_cert_manager.py -m soak
"""

from __future__ import annotations

import json
from base64 import b64encode
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Final

import pytest

from barnabas_kafka.certificates import KeyPair, create_authority
from e2e import cert_manager, kafka, users
from e2e.cluster import Cluster
from e2e.load import Load
from e2e.quickstart import FIXTURES, MAIN
from e2e.test_authorities import handshake
from e2e.test_users import more, processes, shown_certificate
from tests.waiting import RUN, SETTLE, seconds

pytestmark = pytest.mark.soak
FILE: Final = str(FIXTURES / "issued.yaml")
INSTANCE: Final = "app.kubernetes.io/instance=issued"
CERTIFICATE: Final = "certificate/issued-public-certificate"
NO_SECRET: Final = "Issuing certificate as Secret does not exist"
# As `cmctl renew` asks for it.
RENEW: Final = {
    "type": "Issuing",
    "status": "True",
    "reason": "ManuallyTriggered",
    "message": "Certificate re-issuance manually triggered",
}


@pytest.fixture
def issued(operator: Cluster) -> Iterator[Cluster]:
    """The cluster, its topic and its user, Ready before there is an Issuer; gone afterwards."""
    cert_manager.install(operator)
    operator.kubectl("apply", "-n", MAIN, "-f", FILE)
    with cert_manager.running(operator, MAIN):
        for resource in ("kafkacluster/issued", "kafkatopic/letters", "kafkauser/scribe"):
            operator.wait_ready(resource, namespace=MAIN, within=RUN)
        yield operator
    operator.delete_objects("-n", MAIN, "-f", FILE)
    operator.wait_gone("pods", namespace=MAIN, selector=INSTANCE)
    operator.kubectl("delete", "pvc", "-n", MAIN, "-l", "barnabas.io/cluster=issued")


def create_issuer(cluster: Cluster) -> KeyPair:
    """An Issuer with an authority of its own, in the words of cert-manager's documents."""
    authority = create_authority("corporate", now=datetime.now(tz=UTC), days=30)
    pair = {"tls.crt": authority.certificate, "tls.key": authority.key}
    secret = {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": "corporate"},
        "type": "kubernetes.io/tls",
        "data": {key: b64encode(text.encode()).decode() for key, text in pair.items()},
    }
    issuer = {
        "apiVersion": "cert-manager.io/v1",
        "kind": "Issuer",
        "metadata": {"name": "corporate"},
        "spec": {"ca": {"secretName": "corporate"}},
    }
    for body in (secret, issuer):
        cluster.kubectl("apply", "-n", MAIN, "-f", "-", stdin=json.dumps(body))
    return authority


def pending(cluster: Cluster) -> str:
    """What the condition Reconciling of the cluster says; empty if there is none."""
    found = cluster.get("kafkacluster", "issued", namespace=MAIN) or {}
    conditions = found["status"]["conditions"]
    return "".join(each["message"] for each in conditions if each["type"] == "Reconciling")


def test_an_issuer_signs_and_renews_what_a_listener_shows(issued: Cluster) -> None:
    """The cluster is Ready without it; clients trust its authority alone; nothing is restarted."""
    given, running = users.client(issued, "scribe"), processes(issued, INSTANCE)
    own = shown_certificate(given)
    # cert-manager's own words, which are those of the Certificate.
    assert f"is not issued yet by Issuer corporate: {NO_SECRET}" in pending(issued)
    authority = create_issuer(issued)
    issued.wait_for_condition(CERTIFICATE, "Ready", namespace=MAIN)
    first = shown_after(issued, given, own)
    issued.wait_for(
        "a user's Secret with the authority of the Issuer",
        lambda: users.client(issued, "scribe")["ssl.ca.pem"],
        until=lambda text: authority.certificate.strip() in text,
        namespaces=(MAIN,),
    )
    assert "not issued yet" not in pending(issued)
    trusting = {**users.client(issued, "scribe"), "ssl.ca.pem": authority.certificate}
    handshake(trusting)
    with Load(trusting, "letters") as load:
        more(issued, load)
        renew(issued)
        shown_after(issued, given, first)
        more(issued, load)
    handshake(trusting)
    assert load.failures == []
    found = kafka.read({**trusting, "group.id": "scribe"}, "letters", limit_s=seconds(SETTLE))
    assert {place: found.get(place) for place in load.acknowledged} == load.acknowledged
    assert processes(issued, INSTANCE) == running
    issued.wait_ready("kafkacluster/issued", namespace=MAIN)


def shown_after(cluster: Cluster, given: kafka.Client, before: str) -> str:
    """The certificate that the listener shows, once it is another one."""
    return cluster.wait_for(
        "another certificate of the listener",
        lambda: shown_certificate(given),
        until=lambda found: found != before,
        namespaces=(MAIN,),
        within=RUN,
    )


def renew(cluster: Cluster) -> None:
    """Ask cert-manager for another certificate."""
    found = json.loads(cluster.kubectl("get", CERTIFICATE, "-n", MAIN, "-o", "json"))
    conditions = [each for each in found["status"]["conditions"] if each["type"] != "Issuing"]
    patch = json.dumps({"status": {"conditions": [*conditions, RENEW]}})
    command = ("patch", CERTIFICATE, "-n", MAIN, "--subresource=status", "--type=merge", "-p")
    cluster.kubectl(*command, patch)
