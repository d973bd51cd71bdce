"""What a cluster may not have, by what it is."""

from __future__ import annotations

from typing import Any

import pytest

from barnabas_operator.api.clusters import ClusterStatus, KafkaCluster
from barnabas_operator.api.reading import read_cluster
from barnabas_operator.plan.security import insecure_problems, security_problems, unknown_mode
from tests.operator import examples

PLAIN = {"name": "plain", "port": 9092}
USERS = {"type": "scram-sha-512"}


def _problems(*, security: str = "", **spec: Any) -> str:
    asked = read_cluster(examples.cluster(**spec)).body.spec
    status = ClusterStatus(security=security)
    in_mode = asked.in_mode(secured=asked.secured)
    return "; ".join(security_problems(KafkaCluster(spec=in_mode, status=status)))


def test_a_listener_without_tls_is_refused_with_the_remedy_that_is_left() -> None:
    """A new cluster may still be created insecure; one that exists may not become it."""
    assert "or set insecure: true" in _problems(insecure=None, listeners=[PLAIN])
    text = _problems(insecure=None, listeners=[PLAIN], security="Secured")
    assert text.endswith("plain: needs tls and authentication, for the cluster was created secured")
    assert _problems(insecure=None, listeners=[{**PLAIN, "tls": {}, "authentication": USERS}]) == ""


@pytest.mark.parametrize(
    ("spec", "words"),
    [
        ({"listeners": [{**PLAIN, "type": "loadbalancer"}]}, "must be of type internal"),
        ({"listeners": [{**PLAIN, "tls": {}}]}, "without authentication and tls"),
        ({"listeners": [PLAIN]}, ""),
        (
            {"listeners": [PLAIN, {"name": "b", "port": 9093}], "authorization": {}},
            "every listener but one needs authentication",
        ),
        (
            {"listeners": [PLAIN], "authorization": {}, "config": {"super.users": "User:a"}},
            "super.users: follows from spec.authorization",
        ),
        ({"listeners": [PLAIN], "config": {"super.users": "User:a"}}, ""),
    ],
)
def test_invalid_specs_of_insecure_clusters(spec: dict[str, Any], words: str) -> None:
    """Brokers and operator need a listener on which they are super users."""
    found = _problems(insecure=True, **spec)
    assert words in found
    assert bool(found) == bool(words)
    assert found == "; ".join(insecure_problems(read_cluster(examples.cluster(**spec)).body.spec))


def test_claims_of_which_nothing_is_known_ask_for_a_word() -> None:
    """Either may be right."""
    assert "insecure: true" in unknown_mode("a")
    assert "insecure: false" in unknown_mode("a")
