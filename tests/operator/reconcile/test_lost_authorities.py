"""Secrets of authorities that were deleted: nobody is locked out."""

from __future__ import annotations

from datetime import timedelta

from barnabas_kafka.certificates import create_authority, read_certificate
from tests.operator.reconcile.test_certificates import (
    DAY,
    START,
    Passes,
    certificate,
    given,
    secure,
    user_data,
    with_user,
)

HOUR = timedelta(hours=1)


def _cluster() -> Passes:
    return with_user(secure(certificates={"rotationOverlap": "1h"}))


def test_a_lost_authority_of_brokers_is_followed_with_overlap() -> None:
    """Clients trust the other one before brokers show a certificate of it."""
    passes = _cluster()
    first, trusted = passes.issuer(), passes.data("cluster-ca-cert")["ca.crt"]
    passes.kube.remove("Secret", "quickstart-cluster-ca")
    for _ in range(2):
        status = passes.run()
        assert not [each for each in status["conditions"] if each["type"] == "Stalled"]
        assert passes.issuer() == first
        both = passes.data("cluster-ca-cert")["ca.crt"]
        assert both.startswith(trusted)
        assert both.count("BEGIN") == 2
        assert user_data(passes)["ca.crt"] == both
    passes.run(HOUR)
    assert passes.issuer() != first
    passes.run(HOUR)
    assert passes.data("cluster-ca-cert")["ca.crt"] == both.removeprefix(trusted)
    passes.run(DAY)
    assert passes.data("cluster-ca-cert")["ca.crt"] == both.removeprefix(trusted)


def test_a_lost_authority_of_clients_keeps_the_certificates_that_it_has_issued() -> None:
    """Brokers trust both; what has to be issued meanwhile is of the other one, once."""
    passes = _cluster()
    first = certificate(passes)
    passes.kube.remove("Secret", "quickstart-clients-ca")
    passes.run()
    assert certificate(passes) == first
    assert passes.data("broker-tls")["clients-ca.crt"].count("BEGIN") == 2
    rotate = {"barnabas.io/rotate": "1"}
    passes.kube.edit(
        "KafkaUser", "billing", lambda body: body["metadata"].update(annotations=rotate)
    )
    passes.run()
    second = certificate(passes)
    assert read_certificate(second).issuer != read_certificate(first).issuer
    for _ in range(3):
        passes.run(HOUR)
    assert certificate(passes) == second
    alone = passes.data("broker-tls")["clients-ca.crt"]
    assert read_certificate(alone).subject == read_certificate(second).issuer
    assert alone.count("BEGIN") == 1


def test_without_what_was_trusted_there_is_another_authority_at_once() -> None:
    """Who deletes both Secrets wants it so: the key has become known."""
    passes = _cluster()
    first = passes.issuer()
    passes.kube.remove("Secret", "quickstart-cluster-ca")
    passes.kube.remove("Secret", "quickstart-cluster-ca-cert")
    passes.run()
    assert passes.issuer() != first
    assert passes.data("cluster-ca-cert")["ca.crt"].count("BEGIN") == 1


def test_a_lost_copy_of_a_given_authority_is_made_again() -> None:
    """Its key is where the user keeps it."""
    pair = create_authority("corporate", now=START, days=400)
    passes = secure(certificates={"clusterCa": {"secretName": "own"}})
    passes.kube.put(given(pair, "tls.crt", "tls.key"))
    passes.run()
    before = {name: passes.data(name) for name in ("cluster-ca", "broker-tls")}
    passes.kube.remove("Secret", "quickstart-cluster-ca")
    passes.run()
    assert before == {name: passes.data(name) for name in before}


def test_an_unreadable_trust_bundle_is_ignored() -> None:
    """There is another authority, as if there had been none."""
    passes = _cluster()
    passes.kube.remove("Secret", "quickstart-cluster-ca")
    damaged = {"ca.crt": "LS0tLS1CRUdJTiBDRVJUSUZJQ0FURS0tLS0tCg=="}
    passes.kube.edit("Secret", "quickstart-cluster-ca-cert", lambda body: body.update(data=damaged))
    passes.run()
    assert passes.data("cluster-ca-cert")["ca.crt"].count("BEGIN") == 1
    assert passes.data("cluster-ca")["tls.key"]
