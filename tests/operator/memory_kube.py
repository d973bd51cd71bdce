"""An API server in memory: server-side apply, generations and uids, and the StatefulSet controller.

It does what the operator relies on and no more. What it is asked to write is listed in `writes`.
"""

from __future__ import annotations

import copy
import itertools
from collections.abc import Mapping
from typing import Any

from barnabas_operator.kube import (
    CLAIMS,
    KINDS,
    PODS,
    STATEFUL_SETS,
    Document,
    Kind,
    KubeError,
)
from barnabas_operator.resources.objects import digest

NODE = "worker"
NODE_ADDRESS = "172.18.0.3"
FIRST_NODE_PORT = 30000


class MemoryKube:
    """Objects by kind, namespace and name."""

    def __init__(self, *documents: Mapping[str, Any]) -> None:
        self.objects: dict[tuple[str, str, str], Document] = {}
        self.writes: list[str] = []
        self.refuses: dict[str, str] = {}
        self._applied: dict[tuple[str, str, str], Document] = {}
        self._uids = (f"uid-{number}" for number in itertools.count(1))
        self._ports = itertools.count(FIRST_NODE_PORT)
        for document in documents:
            self.put(document)

    def put(self, document: Mapping[str, Any]) -> Document:
        """What a user applies."""
        body = copy.deepcopy(dict(document))
        meta = body["metadata"] = {"namespace": "default", **body["metadata"]}
        key = (body["kind"], meta["namespace"], meta["name"])
        old = self.objects.get(key)
        number = 1
        if old is not None:
            changed = old.get("spec") != body.get("spec")
            number = old["metadata"]["generation"] + changed
            body.setdefault("status", old.get("status", {}))
            meta["uid"] = old["metadata"]["uid"]
        meta.setdefault("uid", next(self._uids))
        meta["generation"] = number
        meta.setdefault("creationTimestamp", "2026-01-01T00:00:00Z")
        self.objects[key] = body
        return body

    def remove(self, kind: str, name: str, namespace: str = "default") -> None:
        """What a user deletes."""
        del self.objects[kind, namespace, name]

    def find(self, kind: str, name: str, namespace: str = "default") -> Document:
        """An object that is there."""
        return self.objects[kind, namespace, name]

    # --- the port ---------------------------------------------------------------------------------

    def get(self, kind: Kind, namespace: str, name: str) -> Document | None:
        """See Kube."""
        if refusal := self.refuses.get(f"get {kind.kind} {name}"):
            raise KubeError(403, refusal)
        return copy.deepcopy(self.objects.get((kind.kind, namespace, name)))

    def list(
        self, kind: Kind, namespace: str | None, labels: Mapping[str, str] | None = None
    ) -> list[Document]:
        """See Kube."""
        wanted = (labels or {}).items()
        return [
            copy.deepcopy(body)
            for (found, place, _), body in sorted(self.objects.items())
            if found == kind.kind
            and namespace in (None, place)
            and wanted <= body["metadata"].get("labels", {}).items()
        ]

    def apply(self, body: Document) -> Document:
        """See Kube."""
        meta = body["metadata"]
        self._write(f"apply {body['kind']} {meta['name']}")
        key = (body["kind"], meta["namespace"], meta["name"])
        old = self.get(KINDS[body["kind"]], meta["namespace"], meta["name"]) or {}
        merged = _merged(_without(old, self._applied.get(key, {}), body), copy.deepcopy(body))
        self._applied[key] = copy.deepcopy(body)
        if body["kind"] == "Service":
            self._choose_node_ports(merged)
        return copy.deepcopy(self.put(merged))

    def delete(self, kind: Kind, namespace: str, name: str, *, uid: str) -> None:
        """See Kube."""
        self._write(f"delete {kind.kind} {name}")
        found = self.objects.get((kind.kind, namespace, name))
        if found is not None and found["metadata"]["uid"] == uid:
            del self.objects[kind.kind, namespace, name]

    def patch(self, kind: Kind, namespace: str, name: str, body: Document) -> None:
        """See Kube."""
        self._write(f"patch {kind.kind} {name}")
        self.put(_merged(self.objects[kind.kind, namespace, name], copy.deepcopy(body)))

    def patch_status(self, kind: Kind, namespace: str, name: str, status: Document) -> None:
        """See Kube."""
        self._write(f"status {kind.kind} {name}")
        found = self.objects.get((kind.kind, namespace, name))
        if found is not None:
            found["status"] = {**found.get("status", {}), **copy.deepcopy(status)}

    def _write(self, what: str) -> None:
        if what in self.refuses:
            raise KubeError(422, self.refuses[what])
        self.writes.append(what)

    def _choose_node_ports(self, service: Document) -> None:
        if service["spec"].get("type") == "NodePort":
            for port in service["spec"]["ports"]:
                port.setdefault("nodePort", next(self._ports))

    # --- the controllers --------------------------------------------------------------------------

    def settle(self, *, ready: bool = True) -> None:
        """What the StatefulSet controller and the kubelets do: pods, claims, statuses."""
        for body in self.list(STATEFUL_SETS, None):
            meta, spec = body["metadata"], body["spec"]
            revision = f"{meta['name']}-{digest(spec['template'])}"
            for ordinal in range(spec["replicas"]):
                self._pod(body, f"{meta['name']}-{ordinal}", revision, ready=ready)
            stored = self.objects["StatefulSet", meta["namespace"], meta["name"]]
            stored["status"] = {
                "observedGeneration": stored["metadata"]["generation"],
                "updateRevision": revision,
            }

    def _pod(self, owner: Document, name: str, revision: str, *, ready: bool) -> None:
        meta, spec = owner["metadata"], owner["spec"]
        place = meta["namespace"]
        for template in spec["volumeClaimTemplates"]:
            claim = f"{template['metadata']['name']}-{name}"
            if (CLAIMS.kind, place, claim) not in self.objects:
                labels = template["metadata"]["labels"]
                head = {"name": claim, "namespace": place, "labels": labels}
                self.put({"kind": CLAIMS.kind, "metadata": head, "spec": template["spec"]})
        if (PODS.kind, place, name) not in self.objects:
            labels = {
                **spec["template"]["metadata"]["labels"],
                "controller-revision-hash": revision,
            }
            head = {
                "name": name,
                "namespace": place,
                "labels": labels,
                "ownerReferences": [{"kind": "StatefulSet", "uid": meta["uid"]}],
            }
            self.put({"kind": PODS.kind, "metadata": head})
        self.objects[PODS.kind, place, name].setdefault("spec", {})["nodeName"] = NODE
        self.objects[PODS.kind, place, name]["status"] = {
            "hostIP": NODE_ADDRESS,
            "conditions": [{"type": "Ready", "status": "True" if ready else "False"}],
        }


def _merged(old: Any, new: Any) -> Any:
    """The old value with the new one on it; lists are replaced."""
    if isinstance(old, dict) and isinstance(new, dict):
        return {**old, **{key: _merged(old.get(key), value) for key, value in new.items()}}
    return new


def _without(old: Any, applied: Any, wanted: Any) -> Any:
    """The old value without the fields that were applied before and are wanted no longer."""
    if not (isinstance(old, dict) and isinstance(applied, dict) and isinstance(wanted, dict)):
        return old
    return {
        key: _without(value, applied.get(key), wanted.get(key))
        for key, value in old.items()
        if key not in applied or key in wanted
    }
