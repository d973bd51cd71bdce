"""Profiles: what a spec that says little comes to."""

from __future__ import annotations

from typing import Any

import pytest

from barnabas_operator.api.definitions import CLUSTERS, crd
from barnabas_operator.api.profiles import PRODUCTION_DEFAULTS, with_profile
from barnabas_operator.api.reading import read_cluster
from tests.operator import examples

STORAGE = {"storage": {"size": "1Gi"}}
BARE = {"zookeeper": STORAGE, "brokers": STORAGE, "config": {}}


def _spec(**spec: Any) -> Any:
    return read_cluster(examples.cluster(**{**BARE, **spec})).body.spec


def test_production_is_three_of_each_and_two_copies_that_count() -> None:
    """What the profile fills in reaches the pods' sizes and the brokers' settings."""
    spec = _spec(profile="production")
    assert (spec.zookeeper.replicas, spec.brokers.replicas) == (3, 3)
    assert spec.brokers.resources.memory == "2Gi"
    assert spec.broker_config["min.insync.replicas"] == "2"
    assert spec.broker_config["default.replication.factor"] == "3"


def test_development_is_as_small_as_it_was() -> None:
    """A cluster that names no profile is what it always was."""
    for spec in (_spec(), _spec(profile="development")):
        assert (spec.zookeeper.replicas, spec.brokers.replicas) == (1, 1)
        assert spec.brokers.resources.memory == "512Mi"
        assert spec.broker_config == {}


def test_the_resource_overrides_its_profile() -> None:
    """One setting of one's own does not cost the others."""
    brokers = {**STORAGE, "replicas": 5, "resources": {"memory": "8Gi"}}
    config = {"min.insync.replicas": "3"}
    spec = _spec(profile="production", brokers=brokers, config=config)
    assert spec.brokers.replicas == 5
    assert spec.brokers.resources.memory == "8Gi"
    assert spec.broker_config["min.insync.replicas"] == "3"
    assert spec.broker_config["auto.create.topics.enable"] == "false"


@pytest.mark.parametrize("spec", [None, [], {"profile": "production", "brokers": [], "config": 1}])
def test_a_spec_of_another_shape_is_left_to_the_parser(spec: Any) -> None:
    """It is refused with its path there, and nothing is raised here."""
    filled = with_profile(spec)
    assert filled is spec or filled["brokers"] == []


def test_the_api_server_fills_in_nothing_that_a_profile_decides() -> None:
    """A default of the definition would look like what the user wrote."""
    (version,) = crd(CLUSTERS)["spec"]["versions"]
    spec = version["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"]
    for part in ("zookeeper", "brokers"):
        for name in PRODUCTION_DEFAULTS[part]:
            assert "default" not in spec[part]["properties"][name], (part, name)
