"""KafkaCluster: what its declaration promises."""

from __future__ import annotations

import pytest

from barnabas_operator.api.clusters import OPERATOR_SETTINGS, ClusterSpec
from barnabas_operator.api.declarations import fields_of
from barnabas_operator.api.reading import read_cluster
from tests.operator import examples


def test_every_setting_that_follows_from_the_resource_is_refused() -> None:
    """The CEL rule of `config` names each prefix."""
    (config,) = [field for field in fields_of(ClusterSpec) if field.name == "config"]
    (rule,) = config.rules
    assert all(f"'{prefix}'" in rule.expression for prefix in OPERATOR_SETTINGS)


@pytest.mark.parametrize(
    ("secured", "listener"),
    [(True, ("secure", 9092, "SASL_SSL")), (False, ("plain", 9092, "PLAINTEXT"))],
)
def test_the_listener_of_a_cluster_that_lists_none(
    secured: bool, listener: tuple[str, int, str]
) -> None:
    """By what the cluster is; listeners that are listed stay."""
    document = examples.cluster()
    del document["spec"]["listeners"]
    (found,) = read_cluster(document).body.spec.in_mode(secured=secured).listeners
    assert (found.name, found.port, found.security_protocol) == listener
    given = read_cluster(examples.cluster()).body.spec
    assert given.in_mode(secured=secured).listeners == given.listeners


def test_clusters_are_secured_unless_they_say_otherwise() -> None:
    """Absent or false."""
    for value, secured in ((None, True), (False, True), (True, False)):
        assert read_cluster(examples.cluster(insecure=value)).body.spec.secured == secured
