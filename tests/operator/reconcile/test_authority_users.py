"""The replacement of an authority and KafkaUsers of other namespaces than their cluster's."""

from __future__ import annotations

from base64 import b64encode
from datetime import timedelta
from typing import Any

import pytest

from barnabas_kafka.certificates import create_authority
from barnabas_operator.kube import KubeError
from tests.operator import examples
from tests.operator.reconcile.test_certificates import START, given, secure


def of_another_namespace(**spec: Any) -> dict[str, Any]:
    """A KafkaUser of the cluster in the namespace `team`."""
    defaults = {"authorization": None, "clusterNamespace": "default"}
    user = examples.user(**{**defaults, **spec})
    user["metadata"] |= {"namespace": "team", "uid": "uid-of-team"}
    return user


def test_users_of_other_namespaces_are_waited_for_too() -> None:
    """An operator that was away in between would lock their clients out."""
    certificates = {"rotationOverlap": "1h"}
    passes = secure(certificates=certificates, allowedNamespaces=["team"])
    passes.kube.put(of_another_namespace())
    for _ in range(3):
        passes.run()
        passes.kube.settle()
    first = passes.issuer()
    passes.annotate("barnabas.io/rotate-cluster-ca", "1")
    passes.kube.fail("apply Secret billing", 500, times=1)
    with pytest.raises(KubeError):
        passes.run()
    passes.run(timedelta(hours=1))
    assert passes.issuer() == first
    assert any("Secret team/billing" in note for note in passes.events.notes)
    passes.run(timedelta(hours=1))
    assert passes.issuer() != first


@pytest.mark.parametrize("allowed", [[], ["team"]])
def test_users_of_other_namespaces_hold_no_authority_up(allowed: list[str]) -> None:
    """Neither one that is not allowed nor one that is refused; a user of another cluster may have
    the Secret of its name in the cluster's namespace."""
    certificates = {"rotationOverlap": "1h"}
    passes = secure(certificates=certificates, allowedNamespaces=allowed)
    # Refused: there is no such listener.
    passes.kube.put(of_another_namespace(listener="none"))
    other = examples.user(cluster="other")
    passes.kube.put(other)
    owner = {"apiVersion": "barnabas.io/v1alpha1", "kind": "KafkaUser", "controller": True}
    authority = create_authority("other", organization="x", now=START, days=365)
    for place, uid in (("default", "uid-of-billing"), ("team", "uid-of-team")):
        owners = [{**owner, "name": "billing", "uid": uid}]
        head = {"name": "billing", "namespace": place, "ownerReferences": owners}
        data = {"ca.crt": b64encode(authority.certificate.encode()).decode()}
        passes.kube.put({"apiVersion": "v1", "kind": "Secret", "metadata": head, "data": data})
    for _ in range(3):
        passes.run()
        passes.kube.settle()
    first = passes.issuer()
    passes.annotate("barnabas.io/rotate-cluster-ca", "1")
    passes.run()
    passes.run(timedelta(hours=1))
    assert passes.issuer() != first


def test_given_authorities_that_have_expired_issue_nothing_and_end_no_pass() -> None:
    """Brokers keep what they have, and who needs a certificate is told why there is none."""
    pair = create_authority("corporate", now=START, days=30)
    source = {"secretName": "own"}
    passes = secure(certificates={"clusterCa": source, "clientsCa": source})
    passes.kube.put(given(pair, "tls.crt", "tls.key"))
    for _ in range(4):
        passes.run()
        passes.kube.settle()
    passes.now += timedelta(days=31)
    name = "quickstart-broker-tls"
    passes.kube.edit("Secret", name, lambda body: body["data"].update({"broker.pem": ""}))
    passes.kube.put(examples.user(authentication={"type": "tls"}, authorization=None))
    status = passes.run()
    stalled = next(each for each in status["conditions"] if each["type"] == "Stalled")
    assert "no certificate can be issued for quickstart-broker" in stalled["message"]
    (ready, *_) = passes.kube.find("KafkaUser", "billing")["status"]["conditions"]
    assert ready["reason"] == "CertificateAuthorityInvalid"
    assert "no certificate can be issued" in ready["message"]
