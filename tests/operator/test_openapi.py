"""Every manifest that is built, and every example, against the API server's own schemas."""

from __future__ import annotations

from typing import Any

import pytest
import yaml

from barnabas_operator.kube import CLUSTERS
from tests.operator import examples
from tests.operator.memory_kube import MemoryKube
from tests.operator.openapi import NEWEST, OLDEST, problems
from tests.operator.resources.golden import GOLDEN

MANIFESTS = sorted(GOLDEN.glob("*.yaml"))


def _documents(text: str) -> list[Any]:
    return [document for document in yaml.safe_load_all(text) if document]


@pytest.mark.parametrize("version", [OLDEST, NEWEST])
@pytest.mark.parametrize("path", MANIFESTS, ids=lambda path: path.stem)
def test_built_manifests_are_what_the_api_server_knows(path: Any, version: str) -> None:
    """No misspelt key, no value of a wrong type, from the oldest version to the newest."""
    for body in _documents(path.read_text(encoding="utf-8")):
        assert list(problems(body, version)) == []


def test_a_misspelt_key_is_found_at_any_depth() -> None:
    """An API server would drop it without a word; the check names the place."""
    body = _documents((GOLDEN / "broker-workload.yaml").read_text(encoding="utf-8"))[-1]
    body["spec"]["template"]["spec"]["containers"][0]["volumMounts"] = []
    (found,) = problems(body, NEWEST)
    assert found.startswith("spec.template.spec.containers.0: ")
    assert "volumMounts" in found


def test_the_api_server_of_the_tests_refuses_what_a_real_one_drops() -> None:
    """So every manifest that any test has the operator build is checked, and every status."""
    kube = MemoryKube(examples.cluster())
    body = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "c", "namespace": "default"},
        "dta": {},
    }
    with pytest.raises(AssertionError, match="dta"):
        kube.apply(body)
    with pytest.raises(AssertionError, match="listners"):
        kube.patch_status(CLUSTERS, "default", "quickstart", {"listners": []})


def test_examples_are_what_the_crds_know() -> None:
    """The resources in manifests/examples, against our own schemas, strictly."""
    folder = examples.ROOT / "manifests" / "examples"
    for path in sorted(folder.rglob("*.yaml")):
        for body in _documents(path.read_text(encoding="utf-8")):
            if body.get("apiVersion", "").startswith("barnabas.io/"):
                assert list(problems(body, NEWEST)) == [], path.name
    misspelt = examples.topic(partitons=3)
    assert "partitons" in next(problems(misspelt, NEWEST))
