"""Certificates that come to their end: as a metric, in a condition, and as an event."""

from __future__ import annotations

from typing import Any

from barnabas_kafka.certificates import create_authority, read_certificate
from tests.operator.reconcile.test_certificates import (
    DAY,
    START,
    Passes,
    certificate,
    given,
    secure,
    with_user,
)


def warning_of(passes: Passes, kind: str, name: str) -> dict[str, Any]:
    """The Warning of a resource; empty if there is none."""
    conditions = passes.kube.find(kind, name)["status"]["conditions"]
    return next((each for each in conditions if each["type"] == "Warning"), {})


def ending(days: int, source: str) -> Passes:
    """A cluster with a user, and an authority of one's own that lasts for so many days."""
    passes = secure(certificates={source: {"secretName": "own"}})
    pair = create_authority("corporate", now=START, days=days)
    passes.kube.put(given(pair, "tls.crt", "tls.key"))
    return with_user(passes)


def told(passes: Passes) -> list[str]:
    """The events about certificates that expire."""
    return [each for each in passes.events.notes if "; replace" in each]


def test_the_end_of_a_users_certificate_is_a_metric() -> None:
    """Of each user who has one, by the name in Kafka."""
    passes = with_user(secure())
    ends = read_certificate(certificate(passes)).not_after.timestamp()
    assert passes.user_ends == {"billing": ends}
    passes.kube.remove("KafkaUser", "billing")
    passes.run()
    assert passes.user_ends == {}


def test_a_renewed_certificate_of_a_user_is_not_warned_of() -> None:
    """It is renewed long before."""
    passes = with_user(secure())
    for _ in range(12):
        passes.run(10 * DAY)
        assert warning_of(passes, "KafkaUser", "billing") == {}
    assert told(passes) == []


def test_a_users_certificate_that_ends_with_its_authority_is_warned_of() -> None:
    """It cannot be renewed: the condition and one event say when it ends, and what to do."""
    passes = ending(60, "clientsCa")
    assert warning_of(passes, "KafkaUser", "billing") == {}
    passes.run(55 * DAY)
    warning = warning_of(passes, "KafkaUser", "billing")
    assert warning["reason"] == "CertificateExpires"
    assert "as the clients' authority does; replace that" in warning["message"]
    passes.run()
    assert sum("as the clients' authority does" in each for each in told(passes)) == 1


def test_an_authority_that_is_given_and_ends_is_one_event() -> None:
    """It is warned of in each pass, and told once."""
    passes = ending(60, "clusterCa")
    assert told(passes) == []
    for _ in range(3):
        passes.run(11 * DAY)
    assert warning_of(passes, "KafkaCluster", "quickstart")["reason"] == "CertificateExpires"
    assert len(told(passes)) == 1
