"""What the API server refuses on sight, with words that say what to do (CEL in the CRDs)."""

from __future__ import annotations

import json
from typing import Any, Final

import pytest

from e2e.commands import CommandError
from e2e.quickstart import MAIN, Quickstart
from e2e.test_topics import apply
from tests.waiting import RUN

REFUSALS: Final = (
    ("kafkacluster/quickstart", {"brokers": {"replicas": 0}}, "greater than or equal to 1"),
    ("kafkacluster/quickstart", {"zookeeper": {"replicas": 3}}, "replicas may not change"),
    ("kafkacluster/quickstart", {"zookeeper": {"replicas": 2}}, "supported values"),
    ("kafkacluster/quickstart", {"config": {"broker.id": "7"}}, "follow from the resource"),
    ("kafkacluster/quickstart", {"config": {"zookeeper.connect": "zk"}}, "follow from the"),
    (
        "kafkacluster/quickstart",
        {"listeners": [{"name": "only", "type": "nodeport", "port": 9092}]},
        "one listener must be of type internal",
    ),
    ("kafkatopic/packages", {"partitions": 1}, "partitions may not shrink"),
    ("kafkatopic/packages", {"cluster": "another"}, "cluster may not change"),
    ("kafkatopic/packages", {"topicName": "other"}, "topicName may not change"),
    ("kafkatopic/packages", {"replicas": 2}, "replicas may not change"),
    ("kafkapipeline/packages-to-parquet", {"trigger": {"interval": "0s"}}, "interval"),
)


@pytest.mark.parametrize(("resource", "spec", "words"), REFUSALS)
def test_invalid_changes_are_rejected_with_a_reason(
    quickstart: Quickstart, resource: str, spec: dict[str, Any], words: str
) -> None:
    """The change is not stored, and the message says why in words."""
    patch = json.dumps({"spec": spec})
    with pytest.raises(CommandError) as refused:
        quickstart.cluster.kubectl("patch", resource, "-n", MAIN, "--type=merge", "-p", patch)
    assert words.lower() in refused.value.said.lower()


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
