"""Resources that tests begin with: the quickstart, and variations of it."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).parent.parent.parent
QUICKSTART = ROOT / "manifests" / "examples" / "quickstart.yaml"

Document = dict[str, Any]


def quickstart() -> list[Document]:
    """The documents of the quickstart, as an API server would have them."""
    documents = list(yaml.safe_load_all(QUICKSTART.read_text(encoding="utf-8")))
    for number, document in enumerate(documents):
        meta = document["metadata"]
        meta["namespace"] = "default"
        meta["uid"] = f"uid-of-{meta['name']}"
        meta["generation"] = 1
        meta["creationTimestamp"] = f"2026-01-01T00:00:0{number}Z"
    return documents


def cluster(**spec: Any) -> Document:
    """The quickstart's KafkaCluster, with parts of its spec replaced."""
    return _with(quickstart()[0], spec)


def topic(name: str = "packages", **spec: Any) -> Document:
    """A KafkaTopic of the quickstart's cluster."""
    document = _with(quickstart()[1], spec)
    document["metadata"].update(name=name, uid=f"uid-of-{name}")
    return document


LISTENERS = [
    {"name": "plain", "port": 9092},
    {"name": "scram", "port": 9095, "authentication": {"type": "scram-sha-512"}},
]


SECURED_LISTENER = {
    "name": "scram", "port": 9095, "tls": {}, "authentication": {"type": "scram-sha-512"},
}  # fmt: skip


def secured(**spec: Any) -> Document:
    """The quickstart's KafkaCluster, with a listener for users and with ACLs."""
    return cluster(**{"listeners": LISTENERS, "authorization": {"type": "simple"}, **spec})


def user(name: str = "billing", **spec: Any) -> Document:
    """A KafkaUser of that cluster, who may consume a topic."""
    consumer = {"type": "consumer", "topic": "orders", "group": "billing"}
    defaults = {"cluster": "quickstart", "authorization": {"roles": [consumer]}}
    return {
        "apiVersion": "barnabas.io/v1alpha1",
        "kind": "KafkaUser",
        "metadata": {
            "name": name,
            "namespace": "default",
            "uid": f"uid-of-{name}",
            "generation": 1,
            "creationTimestamp": "2026-01-01T00:00:09Z",
        },
        "spec": copy.deepcopy({**defaults, **spec}),
    }


def pipeline(**spec: Any) -> Document:
    """The quickstart's KafkaPipeline."""
    return _with(quickstart()[3], spec)


def pipeline_user(**spec: Any) -> Document:
    """A KafkaUser who may read what that pipeline reads."""
    roles = [{"type": "consumer", "topic": "packages"}]
    return user("archivist", **{"authorization": {"roles": roles}, **spec})


def large(document: Document, size: int = 1 << 20) -> Document:
    """A resource as other programs may leave it: the API server stores up to 1.5 MB of each."""
    notes = {"kubectl.kubernetes.io/last-applied-configuration": "x" * (size // 2)}
    fields = [{"manager": f"m{n}", "fieldsV1": {"f:spec": "y" * 1024}} for n in range(size // 2048)]
    meta = {**document["metadata"], "annotations": notes, "managedFields": fields}
    return {**document, "metadata": meta}


def _with(document: Document, spec: Document) -> Document:
    changed = copy.deepcopy(document)
    changed["spec"].update(copy.deepcopy(spec))
    return changed


def definition(plural: str, uid: str = "definition-1") -> Document:
    """A definition of ours, as far as the operator reads it."""
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.barnabas.io", "namespace": "", "uid": uid},
    }
