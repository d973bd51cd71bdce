"""Pod templates as they are declared: large parts stay as they are given."""

from __future__ import annotations

import json
from typing import Any

import pytest

from barnabas_operator.api.definitions import CLUSTERS, crd
from barnabas_operator.api.reading import ResourceError, read_cluster
from barnabas_operator.api.writing import to_json
from tests.operator import examples

TERM = {"matchExpressions": [{"key": "disk", "operator": "Exists"}]}
REQUIRED = {"nodeSelectorTerms": [TERM]}
AFFINITY = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": REQUIRED}}


def _with(template: dict[str, Any]) -> dict[str, Any]:
    brokers = {"replicas": 1, "storage": {"size": "1Gi"}, "template": template}
    return examples.cluster(brokers=brokers)


def test_a_template_is_read_as_it_is_written() -> None:
    """Nothing that Kubernetes knows has to be known here."""
    given = {"affinity": AFFINITY, "tolerations": [{"key": "a", "operator": "Exists"}]}
    read = read_cluster(_with(given)).body.spec.brokers.template
    assert to_json(read.affinity) == AFFINITY
    assert to_json(read.tolerations) == given["tolerations"]


def test_mistakes_in_declared_fields_are_named_together() -> None:
    """A list of texts is no list of objects; a period is a number."""
    wrong = {"tolerations": ["all"], "readinessProbe": {"periodSeconds": "5"}, "nodeselector": {}}
    with pytest.raises(ResourceError) as caught:
        read_cluster(_with(wrong))
    paths = {each.path.rpartition("template.")[2] for each in caught.value.each}
    assert paths == {"tolerations[0]", "readinessProbe.periodSeconds", "nodeselector"}


def test_the_definition_stays_small_and_fills_in_nothing() -> None:
    """The schema of a pod is megabytes, and `kubectl get -o yaml` shows what was asked for."""
    (version,) = crd(CLUSTERS)["spec"]["versions"]
    spec = version["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"]
    template = spec["brokers"]["properties"]["template"]
    assert '"default"' not in json.dumps(template)
    assert template["properties"]["affinity"]["x-kubernetes-preserve-unknown-fields"] is True
    assert len(json.dumps(template)) < 6_000
