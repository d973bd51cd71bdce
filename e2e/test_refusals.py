"""What the API server refuses on sight, with words that say what to do (CEL in the CRDs)."""

from __future__ import annotations

import json
from typing import Any, Final

import pytest

from e2e.commands import CommandError
from e2e.quickstart import MAIN, Quickstart

REFUSALS: Final = (
    ("kafkacluster/quickstart", {"brokers": {"replicas": 0}}, "greater than or equal to 1"),
    ("kafkacluster/quickstart", {"zookeeper": {"replicas": 3}}, "replicas may not change"),
    ("kafkacluster/quickstart", {"zookeeper": {"replicas": 2}}, "supported values"),
    ("kafkacluster/quickstart", {"brokers": {"storage": {"size": "1Gi"}}}, "may not shrink"),
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
def test_what_cannot_be_is_refused_with_a_reason(
    quickstart: Quickstart, resource: str, spec: dict[str, Any], words: str
) -> None:
    """The change is not stored, and the message says why in words."""
    patch = json.dumps({"spec": spec})
    with pytest.raises(CommandError) as refused:
        quickstart.cluster.kubectl("patch", resource, "-n", MAIN, "--type=merge", "-p", patch)
    assert words.lower() in refused.value.said.lower()
