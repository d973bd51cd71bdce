"""What all objects have in common: head, owner, hash; and the containers' hardening."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Any, Final

from barnabas_operator.api import API_VERSION
from barnabas_operator.api.clusters import KafkaCluster, Security, ZooKeeperProtocol
from barnabas_operator.api.reading import Metadata, Resource
from barnabas_operator.api.storage import ContainerResources, DeletionPolicy
from barnabas_operator.names import APPLIED_HASH, SECURITY, ZOOKEEPER_PROTOCOL

Document = dict[str, Any]

# The user of all images.
USER: Final = 1001


def document(
    api_version: str, kind: str, name: str, *, owner: Metadata, labels: Mapping[str, str]
) -> Document:
    """The metadata of an object: its identity and its owner."""
    return {
        "apiVersion": api_version,
        "kind": kind,
        "metadata": {
            "name": name,
            "namespace": owner.namespace,
            "labels": dict(labels),
        },
    }


def mark_secured(body: Document, cluster: Resource[KafkaCluster]) -> None:
    """Note on a StatefulSet that its cluster is secured; one without the note is not."""
    if cluster.body.spec.secured:
        notes = body["metadata"].setdefault("annotations", {})
        notes[SECURITY] = Security.SECURED.value
        if cluster.body.zookeeper_tls:
            notes[ZOOKEEPER_PROTOCOL] = ZooKeeperProtocol.TLS.value


def claim_labels(cluster: Resource[KafkaCluster], selector: Mapping[str, str]) -> dict[str, str]:
    """The labels of a cluster's claims, which may outlive it: those of a secured one say so.

    An annotation would do, but an operator that does not know it would take it off the templates of
    claims, which cannot change; it leaves their labels.
    """
    secured = cluster.body.spec.secured
    return {**selector, **({SECURITY: Security.SECURED.value} if secured else {})}


def owned(body: Document, *, owner: Metadata, kind: str) -> Document:
    """The finished object: owned by its custom resource, marked with the hash of its content.

    The owner is not blocked by it: that would ask for the right to set finalizers.
    """
    body["metadata"]["ownerReferences"] = [owner_reference(owner, kind)]
    return hashed(body)


def owner_reference(owner: Metadata, kind: str) -> Document:
    """The custom resource as the controller of an object."""
    return {
        "apiVersion": API_VERSION,
        "kind": kind,
        "name": owner.name,
        "uid": owner.uid,
        "controller": True,
        "blockOwnerDeletion": False,
    }


def hashed(body: Document) -> Document:
    """The object marked with the hash of its present content."""
    meta = body["metadata"]
    notes = {
        name: text for name, text in meta.get("annotations", {}).items() if name != APPLIED_HASH
    }
    plain = {**body, "metadata": {**meta, "annotations": notes}}
    marked = {**notes, APPLIED_HASH: digest(plain)}
    return {**body, "metadata": {**meta, "annotations": marked}}


def digest(value: Any) -> str:
    """A short hash of a JSON value or text."""
    text = value if isinstance(value, str) else json.dumps(value, sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def pod_security() -> Document:
    """No root, files of the volumes belong to the user's group, the runtime's system calls only."""
    return {
        "runAsNonRoot": True,
        "runAsUser": USER,
        "runAsGroup": USER,
        "fsGroup": USER,
        "fsGroupChangePolicy": "OnRootMismatch",
        "seccompProfile": {"type": "RuntimeDefault"},
    }


def container_security() -> Document:
    """Nothing to write but volumes, nothing to gain."""
    return {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
    }


def container_resources(resources: ContainerResources) -> Document:
    """Memory as request and limit; CPU as request only, for a limit stalls what could run."""
    requests = {}
    if resources.cpu:
        requests["cpu"] = resources.cpu
    written: Document = {}
    if resources.memory:
        requests["memory"] = resources.memory
        written["limits"] = {"memory": resources.memory}
    if requests:
        written["requests"] = requests
    return written


def claim_template(
    name: str, size: str, *, storage_class: str | None, labels: Mapping[str, str]
) -> Document:
    """A StatefulSet's template of a claim."""
    spec: Document = {
        "accessModes": ["ReadWriteOnce"],
        "resources": {"requests": {"storage": size}},
    }
    if storage_class:
        spec["storageClassName"] = storage_class
    return {"metadata": {"name": name, "labels": dict(labels)}, "spec": spec}


def claim_policy(policy: DeletionPolicy) -> Document:
    """Scaling down never deletes a claim."""
    return {"whenDeleted": policy.value, "whenScaled": "Retain"}


def field_env(name: str, path: str) -> Document:
    """An environment variable with a field of the pod."""
    return {"name": name, "valueFrom": {"fieldRef": {"fieldPath": path}}}


def spread(selector: Mapping[str, str]) -> Document:
    """Pods of one kind rather on different nodes."""
    term = {
        "labelSelector": {"matchLabels": dict(selector)},
        "topologyKey": "kubernetes.io/hostname",
    }
    preferred = [{"weight": 100, "podAffinityTerm": term}]
    return {"podAntiAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": preferred}}
