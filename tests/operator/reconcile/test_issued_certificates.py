"""Listeners whose certificates an issuer of cert-manager signs."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from barnabas_operator.kube import Document
from barnabas_operator.plan.certificates import format_time
from tests.operator.reconcile.test_listener_certificates import (
    AUTHORITY,
    DAY,
    HOST,
    PLAIN,
    PUBLIC,
    Passes,
    certificate,
    given,
)
from tests.operator.resources.golden import compare

ISSUER = {"name": "corporate", "kind": "ClusterIssuer"}
NAME = "quickstart-public-certificate"
ISSUED: dict[str, Any] = {**PUBLIC, "tls": {"issuerRef": ISSUER}}


def passes(**listener: Any) -> Passes:
    """Passes over a cluster that has such a listener."""
    return Passes(PLAIN, {**ISSUED, **listener})


def wanted(found: Passes) -> Document:
    """The Certificate that the operator keeps."""
    return found.kube.find("Certificate", NAME)


def issue(found: Passes, *hosts: str) -> str:
    """What cert-manager does: the Secret, and Ready; returns what is shown from then on."""
    pair = certificate(*hosts, now=found.now)
    secret = given(pair)
    secret["metadata"]["name"] = NAME
    found.kube.put(secret)
    condition = {"type": "Ready", "status": "True", "message": "Certificate is up to date"}
    wanted(found)["status"] = {"conditions": [condition]}
    return pair.key + pair.certificate


def test_a_certificate_of_the_hosts_of_a_listener_is_asked_for() -> None:
    """Golden: issuer, hosts, how long it is good and when it is renewed, and its owner."""
    found = passes()
    found.start()
    body = {key: value for key, value in wanted(found).items() if key != "status"}
    meta = body["metadata"]
    body["metadata"] = {
        key: meta[key] for key in ("name", "namespace", "labels", "ownerReferences")
    }
    compare("issued-certificate", [body])


def test_the_listener_shows_what_is_issued_once_it_is() -> None:
    """Until then the cluster's certificate, and a condition says what the issuer waits for."""
    found = passes()
    found.start()
    reason, message = found.run()["Reconciling"]
    assert reason == "CertificatePending"
    text = f"listener public: Certificate {NAME} is not issued yet by ClusterIssuer corporate"
    assert message.startswith(text)
    assert "Stalled" not in found.run()
    assert (
        found.data("quickstart-broker-tls")["listener-public.pem"]
        == (found.data("quickstart-broker-tls")["broker.pem"])
    )
    condition = {"type": "Ready", "status": "False", "message": "no such ClusterIssuer"}
    wanted(found)["status"] = {"conditions": [condition]}
    assert "no such ClusterIssuer" in found.run()["Reconciling"][1]
    shown = issue(found, HOST, "*.kafka.example", "*.default.svc")
    found.run()
    assert found.run().keys() == {"Ready"}
    assert found.store() == shown
    assert found.ends()["listener-public"] == format_time(found.now + 90 * DAY)
    trusted = found.data("quickstart-cluster-ca-cert")
    assert trusted["listener-public.crt"] == AUTHORITY.certificate


def test_a_renewal_changes_no_template() -> None:
    """Brokers read the file again; no pod is replaced."""
    found = passes()
    found.start()
    issue(found)
    found.run()
    before = found.kube.find("StatefulSet", "quickstart-broker")["spec"]["template"]
    found.now += 60 * DAY
    renewed = issue(found)
    found.run(timedelta())
    assert found.store() == renewed
    assert found.kube.find("StatefulSet", "quickstart-broker")["spec"]["template"] == before


def test_more_hosts_are_named_in_the_certificate() -> None:
    """A broker that is added, or another template of hosts."""
    found = passes()
    found.start()
    before = wanted(found)["spec"]["dnsNames"]
    assert "b0.kafka.example" in before
    template = {"advertisedHostTemplate": "node{broker}.kafka.example"}
    found.listen(PLAIN, {**ISSUED, "configuration": template})
    found.run()
    assert "node0.kafka.example" in wanted(found)["spec"]["dnsNames"]
    assert "b0.kafka.example" not in wanted(found)["spec"]["dnsNames"]


def test_addresses_of_nodes_stay_while_a_pod_is_replaced() -> None:
    """They are IP addresses; a certificate is not issued anew for each restart."""
    found = Passes(
        PLAIN, {"name": "public", "port": 9094, "type": "nodeport", "tls": {"issuerRef": ISSUER}}
    )
    found.start()
    addresses = wanted(found)["spec"]["ipAddresses"]
    assert addresses
    found.kube.remove("Pod", "quickstart-broker-0")
    found.run()
    assert wanted(found)["spec"]["ipAddresses"] == addresses


def test_the_certificate_goes_with_the_issuer() -> None:
    """A listener that shows the cluster's certificate again needs none."""
    found = passes()
    found.start()
    issue(found)
    found.start()
    found.listen(PLAIN, {**PUBLIC, "tls": {}})
    found.start()
    assert ("Certificate", "default", NAME) not in found.kube.objects


@pytest.mark.parametrize("status", [404, 403])
def test_an_api_server_without_cert_manager_is_named(status: int) -> None:
    """What to install is in the condition, or the right that is missing; all else goes on."""
    found = passes()
    found.kube.fail(lambda request: " Certificate" in request, status, times=None)
    found.start()
    reason, message = found.run()["Stalled"]
    assert reason == "Refused"
    assert f"Certificate {NAME} is refused: " in message
    if status == 404:
        text = "the API server has no Certificate of cert-manager.io/v1; install cert-manager"
        assert text in message
    assert found.kube.find("StatefulSet", "quickstart-broker")


def test_a_certificate_of_another_owner_is_not_changed() -> None:
    """It is named, as every object is that has a name of the operator's."""
    found = passes()
    other = {
        "apiVersion": "cert-manager.io/v1", "kind": "Certificate",
        "metadata": {"name": NAME, "namespace": "default"}, "spec": {"secretName": "mine"},
    }  # fmt: skip
    found.kube.put(other)
    found.start()
    assert wanted(found)["spec"] == {"secretName": "mine"}
    assert NAME in found.run()["Stalled"][1]
