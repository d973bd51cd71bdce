"""What the API server refuses on sight, with words that say what to do (CEL in the CRDs)."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, Final

import pytest

from e2e.cluster import Cluster
from e2e.commands import ROOT, CommandError
from e2e.quickstart import FIXTURES, MAIN, Quickstart
from e2e.refusals import REFUSALS, name_of, reasons, refused, stored
from e2e.test_topics import apply
from tests.waiting import RUN

ASIDE: Final = "refusals"
NO_IMAGE: Final = "sidecars[0].image: Required value"


@pytest.fixture(scope="module")
def aside(operator: Cluster) -> Iterator[Cluster]:
    """A namespace with the valid resources that invalid changes need; no operator watches it."""
    operator.kubectl("create", "namespace", ASIDE)
    documents = "\n---\n".join(map(json.dumps, stored()))
    operator.kubectl("apply", "--server-side", "-n", ASIDE, "-f", "-", stdin=documents)
    yield operator
    operator.kubectl("delete", "namespace", ASIDE, "--wait=false")


def test_each_rule_of_the_definitions_refuses_with_its_message(aside: Cluster) -> None:
    """A resource that breaks one rule is not stored, and the message says which in words."""
    documents = "\n---\n".join(map(json.dumps, refused()))
    command = ("apply", "--server-side", "--dry-run=server", "-n", ASIDE, "-f", "-")
    with pytest.raises(CommandError) as error:
        aside.kubectl(*command, stdin=documents)
    said = {
        each: reasons(error.value.said, each.kind, name_of(number))
        for number, each in enumerate(REFUSALS)
    }
    wrong = {each: text for each, text in said.items() if each.message not in text}
    assert wrong == {}


def test_examples_are_accepted(aside: Cluster) -> None:
    """Every example, in a dry run; clusters of all types of listeners among them."""
    directories = (ROOT / "manifests" / "examples", FIXTURES)
    files = sorted(path for each in directories for path in each.glob("*.yaml"))
    ours = [f"--filename={path}" for path in files if "kind: Kafka" in path.read_text("utf-8")]
    aside.kubectl("apply", "--server-side", "--dry-run=server", "-n", ASIDE, *ours)


def patch(quickstart: Quickstart, spec: dict[str, Any]) -> None:
    """Change the KafkaCluster of the quickstart."""
    text = json.dumps({"spec": spec})
    command = ("patch", "kafkacluster/quickstart", "-n", MAIN, "--type=merge", "-p", text)
    quickstart.cluster.kubectl(*command)


def warning(quickstart: Quickstart) -> str:
    """The message of the KafkaCluster's condition Warning, empty while there is none."""
    found = quickstart.cluster.get("kafkacluster", "quickstart", namespace=MAIN) or {}
    conditions = found.get("status", {}).get("conditions", [])
    return next((each["message"] for each in conditions if each["type"] == "Warning"), "")


def test_a_lowered_size_is_a_warning_and_gates_nothing(quickstart: Quickstart) -> None:
    """A claim keeps its size, the cluster stays Ready, and the size may be raised again."""
    patch(quickstart, {"brokers": {"storage": {"size": "1Gi"}}})
    quickstart.cluster.wait_for(
        "a warning that names the claim",
        lambda: warning(quickstart),
        until=lambda text: "data-quickstart-broker-0" in text and "cannot shrink" in text,
        namespaces=(MAIN,),
    )
    quickstart.wait_ready("kafkacluster/quickstart")
    patch(quickstart, {"brokers": {"storage": {"size": "2Gi"}}})
    quickstart.cluster.wait_for(
        "the end of the warning",
        lambda: warning(quickstart),
        until=lambda text: "cannot shrink" not in text,
        namespaces=(MAIN,),
    )
    quickstart.wait_ready("kafkacluster/quickstart")


def test_a_size_that_no_claim_can_have_gates_nothing(quickstart: Quickstart) -> None:
    """The StorageClass does not expand: a warning, other changes go on, and it is undone."""
    patch(quickstart, {"brokers": {"storage": {"size": "3Gi"}}})
    quickstart.cluster.wait_for(
        "a warning that names the claim and the StorageClass",
        lambda: warning(quickstart),
        until=lambda text: "data-quickstart-broker-0 cannot grow to 3Gi" in text,
        namespaces=(MAIN,),
    )
    quickstart.wait_ready("kafkacluster/quickstart")
    apply(quickstart, "beside-a-refused-claim")
    quickstart.wait_ready("kafkatopic/beside-a-refused-claim")
    patch(quickstart, {"brokers": {"storage": {"size": "2Gi"}}})
    quickstart.cluster.wait_for(
        "the end of the warning",
        lambda: warning(quickstart),
        until=lambda text: "cannot grow" not in text,
        namespaces=(MAIN,),
    )


def stalled(quickstart: Quickstart) -> str:
    """The reason and the message of the condition Stalled, empty while there is none."""
    found = quickstart.cluster.get("kafkacluster", "quickstart", namespace=MAIN) or {}
    conditions = found.get("status", {}).get("conditions", [])
    texts = (f"{it['reason']}: {it['message']}" for it in conditions if it["type"] == "Stalled")
    return "".join(texts)


def test_a_template_that_pods_cannot_have_replaces_none(quickstart: Quickstart) -> None:
    """The API server names the field in a dry run: pods and settings stay, and it is undone."""
    cluster = quickstart.cluster
    before = cluster.get("statefulset", "quickstart-broker", namespace=MAIN) or {}
    patch(quickstart, {"brokers": {"template": {"sidecars": [{"name": "agent"}]}}})
    cluster.wait_for(
        "the field that is wrong",
        lambda: stalled(quickstart),
        until=lambda text: text == f"InvalidTemplate: spec.brokers.template: {NO_IMAGE}",
        namespaces=(MAIN,),
    )
    quickstart.wait_ready("kafkacluster/quickstart")
    apply(quickstart, "beside-a-refused-template")
    quickstart.wait_ready("kafkatopic/beside-a-refused-template")
    patch(quickstart, {"brokers": {"template": None}})
    cluster.wait_for(
        "the end of the condition Stalled",
        lambda: stalled(quickstart),
        until=lambda text: not text,
        namespaces=(MAIN,),
    )
    after = cluster.get("statefulset", "quickstart-broker", namespace=MAIN) or {}
    assert after["metadata"]["generation"] == before["metadata"]["generation"]


def test_a_typo_of_replicas_is_undone(quickstart: Quickstart) -> None:
    """A broker that holds no replica goes when it is asked for no longer; its claim stays."""
    cluster, added = quickstart.cluster, "quickstart-broker-1"
    patch(quickstart, {"brokers": {"replicas": 2}})
    cluster.wait_for(
        f"the pod {added}",
        lambda: cluster.get("pod", added, namespace=MAIN),
        namespaces=(MAIN,),
    )
    patch(quickstart, {"brokers": {"replicas": 1}})
    cluster.wait_for(
        f"the end of the pod {added}",
        lambda: cluster.get("pod", added, namespace=MAIN),
        until=lambda pod: pod is None,
        namespaces=(MAIN,),
        within=RUN,
    )
    quickstart.wait_ready("kafkacluster/quickstart")
