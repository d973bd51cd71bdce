"""The operator, installed by Helm."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest
import yaml

from e2e import images
from e2e.cluster import Cluster
from e2e.commands import ROOT, CommandError, run
from e2e.quickstart import BRIEF, CHART, MAIN, RELEASE

SPACE: Final = "aside"
PREFIX: Final = "aside-"
OCI: Final = "org.opencontainers.image"
TITLES: Final = {
    "broker": "Barnabas broker",
    "operator": "Barnabas operator",
    "zookeeper": "Apache ZooKeeper for Barnabas",
    "pipeline": "Barnabas pipelines on Apache Spark",
}


@pytest.mark.usefixtures("kubernetes")
def test_images_say_what_they_are() -> None:
    """The labels of OCI on what is built, which runs as a user without rights, without a shell."""
    (*found,) = json.loads(run("docker", "image", "inspect", *images.names()))
    for target, image in zip(images.TARGETS, found, strict=True):
        config = image["Config"]
        labels = config["Labels"]
        assert labels[f"{OCI}.title"] == TITLES[target]
        assert labels[f"{OCI}.description"]
        assert labels[f"{OCI}.licenses"] == "Apache-2.0"
        assert (config["User"], config["Entrypoint"]) == ("1001:1001", None)


def test_digests_of_the_chart_pin_images() -> None:
    """Each component's image is the one of its digest, others go by their tags."""
    digests = {name: f"sha256:{number:064x}" for number, name in enumerate(("operator", "broker"))}
    values = {"registry": "r.example/kafka", "tag": "1.2.3", "digests": digests}
    command = ("helm", "template", RELEASE, CHART, "--kube-version", "1.34.0", "--set-json")
    given = [f"{key}={json.dumps(value)}" for key, value in values.items()]
    text = run(*command, ",".join(given), "--show-only", "templates/deployment.yaml").decode()
    (container,) = yaml.safe_load(text)["spec"]["template"]["spec"]["containers"]
    given_env = {each["name"]: each.get("value") for each in container["env"]}
    pinned = {name: f"r.example/kafka/barnabas-{name}:1.2.3@{it}" for name, it in digests.items()}
    assert container["image"] == pinned["operator"]
    assert given_env["BARNABAS_BROKER_IMAGE"] == pinned["broker"]
    assert given_env["BARNABAS_ZOOKEEPER_IMAGE"] == "r.example/kafka/barnabas-zookeeper:1.2.3"
    for wrong in ({"broker": "sha256:1"}, {"brokers": digests["broker"]}):
        with pytest.raises(CommandError, match="digests"):
            run(*command, f"digests={json.dumps(wrong)}")


def test_helm_installs_definitions_and_a_ready_operator(operator: Cluster) -> None:
    """After `helm install --wait` the three kinds are established and the operator is available."""
    for plural in ("kafkaclusters", "kafkatopics", "kafkausers", "kafkapipelines"):
        crd = f"crd/{plural}.barnabas.io"
        operator.wait_for_condition(crd, "Established", namespace=MAIN)
    operator.wait_rolled_out(RELEASE, namespace=MAIN)


def test_the_operator_has_a_priority_and_a_budget(operator: Cluster) -> None:
    """Its pod is not the first to be preempted, and a drain of its node may go on."""
    (pod,) = operator.list("pod", namespace=MAIN, selector=f"app.kubernetes.io/instance={RELEASE}")
    assert pod["spec"]["priority"] > 0
    operator.wait_for(
        "a budget that allows an eviction",
        lambda: operator.get("poddisruptionbudget", RELEASE, namespace=MAIN) or {},
        until=lambda found: found["status"]["disruptionsAllowed"] == 1,
        namespaces=(MAIN,),
    )


def may(cluster: Cluster, account: str, *asked: str) -> bool:
    """Whether a service account has a right."""
    try:
        cluster.kubectl("auth", "can-i", *asked, f"--as={account}")
    except CommandError:
        return False
    return True


def test_the_operator_may_do_nothing_outside_its_namespaces(operator: Cluster) -> None:
    """Its account has no right on the whole cluster but to read two definitions."""
    account = f"system:serviceaccount:{MAIN}:{RELEASE}"
    assert may(operator, account, "create", "statefulsets", "-n", MAIN)
    assert may(operator, account, "create", "statefulsets", "-n", BRIEF)
    assert may(operator, account, "get", "customresourcedefinitions/kafkatopics.barnabas.io")
    for asked in (
        ("list", "statefulsets", "-A"),
        ("create", "statefulsets", "-n", "default"),
        ("list", "secrets", "-n", MAIN),
        ("watch", "secrets", "-n", MAIN),
        ("delete", "secrets", "-n", MAIN),
        ("get", "secrets", "-n", "default"),
        ("create", "pods/exec", "-n", MAIN),
        ("patch", "customresourcedefinitions"),
        ("list", "customresourcedefinitions"),
    ):
        assert not may(operator, account, *asked), asked


@pytest.fixture
def overlay(operator: Cluster, tmp_path: Path) -> Iterator[str]:
    """The name of a second operator, of an overlay of manifests/base as the documents have it."""
    document = {
        "apiVersion": "kustomize.config.k8s.io/v1beta1",
        "kind": "Kustomization",
        "namespace": SPACE,
        "namePrefix": PREFIX,
        "resources": [os.path.relpath(ROOT / "manifests" / "base", tmp_path)],
    }
    (tmp_path / "kustomization.yaml").write_text(json.dumps(document), "utf-8")
    operator.kubectl("create", "namespace", SPACE)
    operator.kubectl("apply", "--server-side", "--force-conflicts", "-k", str(tmp_path))
    yield f"{PREFIX}{RELEASE}"
    # Not `delete -k`: the definitions are in the base, and all resources would go with them.
    operator.delete_objects("namespace", SPACE)
    for kind in ("clusterrole", "clusterrolebinding"):
        names = operator.kubectl("get", kind, "-o", "name").split()
        operator.delete_objects(*(name for name in names if f"/{PREFIX}" in name))


def test_an_overlay_is_an_operator_of_its_own(operator: Cluster, overlay: str) -> None:
    """It leads in its namespace, has no right in another, and takes none from the first one."""
    operator.wait_rolled_out(overlay, namespace=SPACE)
    operator.wait_for(
        "the Lease of the second operator",
        lambda: operator.get("lease", RELEASE, namespace=SPACE),
        until=lambda found: found and f"/{overlay}-" in found["spec"].get("holderIdentity", ""),
        namespaces=(SPACE,),
    )
    definition = ("get", "customresourcedefinitions/kafkatopics.barnabas.io")
    for namespace, name, other in ((SPACE, overlay, MAIN), (MAIN, RELEASE, SPACE)):
        account = f"system:serviceaccount:{namespace}:{name}"
        assert may(operator, account, "create", "statefulsets", "-n", namespace)
        assert may(operator, account, *definition)
        assert not may(operator, account, "create", "statefulsets", "-n", other)
        assert not may(operator, account, "get", "secrets", "-n", other)
