"""An API server in memory: server-side apply, generations and uids, and the StatefulSet controller.

It does what the operator relies on as a real one does it: fields have managers, lists with keys are
merged by them, defaults are added, what is immutable is refused, a pod goes when its kubelet has
ended it, an eviction is bound to its budget's status. Nothing settles by itself: `settle` is what
the controllers and the kubelets do, when a test says so. `fail` has requests fail, before or after
they took effect. What it is asked to write is listed in `writes`.
"""

from __future__ import annotations

import copy
import itertools
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Final

from barnabas_operator.kube import (
    CLAIMS,
    PODS,
    STATEFUL_SETS,
    Document,
    Documents,
    Kind,
    KubeError,
)
from barnabas_operator.names import FIELD_MANAGER
from barnabas_operator.resources.objects import digest
from tests.operator import field_management, validation
from tests.operator.openapi import refuse_unknown

NODE = "worker"
NODE_ADDRESS = "172.18.0.3"
FIRST_NODE_PORT = 30000
NOW = "2026-01-02T03:04:05Z"
USER = "kubectl-edit"
# The answers of an API server that is busy, torn or away; status 0: none in time.
ANSWERS: Final = {
    0: "the API server cannot be reached: timed out",
    403: "forbidden: the account may not do that",
    404: "the server could not find the requested resource",
    409: "the object has been modified; please apply your changes to the latest version",
    422: "the object is invalid: admission webhook denied the request",
    429: "too many requests, please try again later",
    500: "Internal error occurred: etcdserver: leader changed",
    503: "the server is currently unable to handle the request",
    504: "the server was unable to return a response in the time allotted",
}

ObjectKey = tuple[str, str, str]


@dataclass(slots=True)
class Fault:
    """Requests that fail: which, how, how often (None: always), and whether they took effect."""

    matches: Callable[[str], bool]
    status: int
    times: int | None
    applied: bool


def select(
    find: Callable[[Kind, str | None, Mapping[str, str]], Documents],
    kind: Kind,
    namespace: str | None,
    selector: str,
) -> Documents:
    """What a label selector selects, out of what a list by labels finds."""
    terms = [term.partition("=") for term in selector.split(",") if term]
    return [
        body
        for body in find(kind, namespace, {key: value for key, equals, value in terms if equals})
        if {key for key, _, _ in terms} <= (body["metadata"].get("labels") or {}).keys()
    ]


def metadata_of(body: Document) -> Document:
    """As PartialObjectMetadata has it."""
    return {name: value for name, value in body.items() if name not in ("spec", "data", "status")}


class MemoryKube:
    """Objects by kind, namespace and name."""

    def __init__(self, *documents: Mapping[str, Any]) -> None:
        self.objects: dict[ObjectKey, Document] = {}
        self.writes: list[str] = []
        self.requests: list[str] = []
        self.refuses: dict[str, str] = {}
        self.faults: list[Fault] = []
        # Mutating admission webhooks: called with each object that is written.
        self.webhooks: list[Callable[[Document], None]] = []
        # Names of classes whose volumes cannot grow; a claim that names none has the default class.
        self.fixed_classes: set[str | None] = set()
        self.now = NOW
        self._entries: dict[ObjectKey, list[field_management.Entry]] = {}
        self._uids = (f"uid-{number}" for number in itertools.count(1))
        self._ports = itertools.count(FIRST_NODE_PORT)
        self._versions = itertools.count(1)
        for document in documents:
            self.put(document)

    # --- what others do ---------------------------------------------------------------------------

    def put(self, document: Mapping[str, Any], *, manager: str = "kubectl-client") -> Document:
        """What a user or a controller writes: the object as a whole."""
        body = copy.deepcopy(dict(document))
        meta = body["metadata"] = {"namespace": "default", **body["metadata"]}
        key = (body["kind"], meta["namespace"], meta["name"])
        old = self.objects.get(key)
        if old is not None:
            body.setdefault("status", old.get("status", {}))
        entries = self._entries.get(key, [])
        written = field_management.update(old, body, entries, manager=manager, now=self.now)
        return self._store(key, written)

    def edit(
        self, kind: str, name: str, change: Callable[[Document], None],
        *, manager: str = USER, namespace: str = "default",
    ) -> None:  # fmt: skip
        """What somebody else changes of an object: from then on it is theirs."""
        body = copy.deepcopy(self.objects[kind, namespace, name])
        change(body)
        self.put(body, manager=manager)

    def remove(self, kind: str, name: str, namespace: str = "default") -> None:
        """What a user deletes."""
        self._forget((kind, namespace, name))

    def find(self, kind: str, name: str, namespace: str = "default") -> Document:
        """An object that is there."""
        return self.objects[kind, namespace, name]

    def fail(
        self, what: str | Callable[[str], bool], status: int,
        *, times: int | None = 1, applied: bool = False,
    ) -> None:  # fmt: skip
        """Have requests fail that begin so (`apply Service x`, `get`), or that a function chooses.

        With `applied` they take effect all the same: the answer is what is lost.
        """
        matches = what if callable(what) else lambda request: request.startswith(what)
        self.faults.append(Fault(matches, status, times, applied))

    # --- the port ---------------------------------------------------------------------------------

    def get(self, kind: Kind, namespace: str, name: str) -> Document | None:
        """See Kube."""
        if refusal := self.refuses.get(f"get {kind.kind} {name}"):
            raise KubeError(403, refusal)
        with self._request(f"get {kind.kind} {name}"):
            return copy.deepcopy(self.objects.get((kind.kind, namespace, name)))

    def list(
        self, kind: Kind, namespace: str | None, labels: Mapping[str, str] | None = None
    ) -> list[Document]:
        """See Kube."""
        wanted = (labels or {}).items()
        with self._request(f"list {kind.kind}"):
            return [
                copy.deepcopy(body)
                for (found, place, _), body in sorted(self.objects.items())
                if found == kind.kind
                and namespace in (None, place)
                and wanted <= (body["metadata"].get("labels") or {}).items()
            ]

    def metadata(self, kind: Kind, namespace: str | None, selector: str) -> Documents:
        """See Kube."""
        return [metadata_of(body) for body in select(self.list, kind, namespace, selector)]

    def apply(self, body: Document, *, uid: str | None = None, dry_run: bool = False) -> Document:
        """See Kube."""
        refuse_unknown(body)
        meta = body["metadata"]
        key = (body["kind"], meta["namespace"], meta["name"])
        what = "try" if dry_run else "apply"
        with self._request(f"{what} {body['kind']} {meta['name']}", write=not dry_run):
            if dry_run and (refusal := self.refuses.get(f"try {body['kind']} {meta['name']}")):
                raise KubeError(422, refusal)
            old = self.objects.get(key)
            if uid is not None and (old is None or old["metadata"]["uid"] != uid):
                raise KubeError(409, f"Precondition failed: UID in precondition: {uid}")
            version = meta.get("resourceVersion")
            if version and (old is None or old["metadata"]["resourceVersion"] != version):
                raise KubeError(409, "the object has been modified")
            try:
                applied = field_management.apply(
                    old, body, self._entries.get(key, []),
                    manager=FIELD_MANAGER, force=uid is not None, now=self.now,
                )  # fmt: skip
            except field_management.ConflictError as error:
                raise KubeError(409, str(error)) from error
            for webhook in self.webhooks:
                webhook(applied.body)
            if dry_run:
                return applied.body
            if body["kind"] == "Service":
                self._choose_node_ports(applied.body)
            return copy.deepcopy(self._store(key, applied))

    def create(self, kind: Kind, namespace: str, body: Document) -> Document:
        """See Kube."""
        refuse_unknown(body)
        name = body["metadata"]["name"]
        with self._request(f"create {kind.kind} {name}", write=True):
            if (kind.kind, namespace, name) in self.objects:
                raise KubeError(409, f'{kind.plural} "{name}" already exists')
            return copy.deepcopy(self.put(body, manager=FIELD_MANAGER))

    def delete(self, kind: Kind, namespace: str, name: str, *, uid: str) -> None:
        """See Kube."""
        with self._request(f"delete {kind.kind} {name}", write=True):
            found = self.objects.get((kind.kind, namespace, name))
            if found is not None and found["metadata"]["uid"] == uid:
                self._delete((kind.kind, namespace, name))

    def evict(self, namespace: str, name: str, *, uid: str) -> bool:
        """See Kube."""
        with self._request(f"evict Pod {name}", write=True):
            pod = self.objects.get((PODS.kind, namespace, name))
            if pod is None or pod["metadata"]["uid"] != uid:
                return False
            self._spend_budget(pod)
            self._delete((PODS.kind, namespace, name))
            return True

    def patch(self, kind: Kind, namespace: str, name: str, body: Document) -> None:
        """See Kube."""
        with self._request(f"patch {kind.kind} {name}", write=True):
            old = self.objects.get((kind.kind, namespace, name))
            if old is None:
                raise KubeError(404, f'{kind.plural} "{name}" not found')
            self.put(_merged(old, body), manager=FIELD_MANAGER)

    def patch_status(self, kind: Kind, namespace: str, name: str, status: Document) -> None:
        """See Kube."""
        with self._request(f"status {kind.kind} {name}", write=True):
            found = self.objects.get((kind.kind, namespace, name))
            if found is not None:
                found["status"] = _merged(found.get("status", {}), status)
                refuse_unknown(found, part="status")
                found["metadata"]["resourceVersion"] = str(next(self._versions))

    # --- how it is done ---------------------------------------------------------------------------

    @contextmanager
    def _request(self, what: str, *, write: bool = False) -> Iterator[None]:
        self.requests.append(what)
        fault = next((each for each in self.faults if each.matches(what)), None)
        if fault is not None:
            if fault.times is not None:
                fault.times -= 1
                if not fault.times:
                    self.faults.remove(fault)
            if not fault.applied:
                raise KubeError(fault.status, f"{what}: {ANSWERS[fault.status]}")
        if write and what in self.refuses:
            raise KubeError(422, self.refuses[what])
        if write:
            self.writes.append(what)
        yield
        if fault is not None:
            raise KubeError(fault.status, f"{what}: {ANSWERS[fault.status]}")

    def _store(self, key: ObjectKey, written: field_management.Applied) -> Document:
        old, body = self.objects.get(key), written.body
        validation.add_defaults(body)
        try:
            spec = body.get("spec")
            storage_class = spec.get("storageClassName") if isinstance(spec, dict) else None
            expandable = storage_class not in self.fixed_classes
            validation.check(old, body, expandable=expandable)
        except validation.InvalidError as error:
            raise KubeError(error.status, str(error)) from error
        meta = body["metadata"]
        if old is None:
            meta.setdefault("uid", next(self._uids))
            meta.setdefault("creationTimestamp", "2026-01-01T00:00:00Z")
            meta.setdefault("generation", 1)
        else:
            meta["uid"] = old["metadata"]["uid"]
            changed = old.get("spec") != body.get("spec")
            meta["generation"] = old["metadata"]["generation"] + changed
        self._entries[key] = written.entries
        meta["managedFields"] = [
            {
                "manager": entry.manager,
                "operation": entry.operation,
                "apiVersion": body.get("apiVersion", "v1"),
                "time": entry.time,
                "fieldsType": "FieldsV1",
                "fieldsV1": field_management.fields_v1(entry.fields),
            }
            for entry in written.entries
        ]
        if old is not None and body == old:
            return old
        meta["resourceVersion"] = str(next(self._versions))
        self.objects[key] = body
        return body

    def _delete(self, key: ObjectKey) -> None:
        """A pod on a node goes when its kubelet has ended it; everything else at once."""
        body = self.objects[key]
        if key[0] == PODS.kind and body.get("spec", {}).get("nodeName"):
            body["metadata"].setdefault("deletionTimestamp", self.now)
        else:
            self._forget(key)

    def _forget(self, key: ObjectKey) -> None:
        del self.objects[key]
        self._entries.pop(key, None)

    def _choose_node_ports(self, service: Document) -> None:
        if service["spec"].get("type") == "NodePort":
            for port in service["spec"]["ports"]:
                if "nodePort" not in port:
                    port["nodePort"] = next(self._ports)

    def _spend_budget(self, pod: Document) -> None:
        """An eviction is granted by the budget's status, which the disruption controller writes."""
        for (kind, place, name), budget in self.objects.items():
            meta, spec = budget["metadata"], budget.get("spec", {})
            if kind != "PodDisruptionBudget" or place != pod["metadata"]["namespace"]:
                continue
            if not _selects(spec["selector"], pod):
                continue
            status = budget.get("status", {})
            if status.get("observedGeneration") != meta["generation"]:
                text = f"The disruption budget {name} is still being processed by the server."
                raise KubeError(429, f"Cannot evict pod as it would violate the budget. {text}")
            if not _ready(pod) and spec.get("unhealthyPodEvictionPolicy") == "AlwaysAllow":
                return
            if status["disruptionsAllowed"] < 1:
                text = "Cannot evict pod as it would violate the pod's disruption budget."
                raise KubeError(429, text)
            status["disruptionsAllowed"] -= 1

    # --- the controllers --------------------------------------------------------------------------

    def settle(self, *, ready: bool = True, pods: bool = True, only: str = "") -> None:
        """What kubelets, StatefulSet and disruption controller do: pods, claims, statuses.

        `only` names the one pod that they come to; without `pods` they come to none.
        """
        for key in [key for key in self.objects if key[0] == PODS.kind]:
            if self.objects[key]["metadata"].get("deletionTimestamp"):
                self._forget(key)
        for key in [key for key in sorted(self.objects) if key[0] == STATEFUL_SETS.kind]:
            body = self.objects[key]
            meta, spec = body["metadata"], body["spec"]
            revision = f"{meta['name']}-{digest(spec['template'])}"
            for ordinal in range(spec["replicas"]):
                name = f"{meta['name']}-{ordinal}"
                if pods and only in ("", name):
                    self._pod(body, name, revision, ready=ready)
            for ordinal in itertools.count(spec["replicas"]):
                surplus = (PODS.kind, key[1], f"{meta['name']}-{ordinal}")
                if surplus not in self.objects:
                    break
                self._delete(surplus)
            body["status"] = {
                "observedGeneration": meta["generation"],
                "replicas": spec["replicas"],
                "readyReplicas": spec["replicas"] if ready else 0,
                "updateRevision": revision,
            }
        self.budget()

    def unready(self, name: str) -> None:
        """A pod that runs and does not serve, as in log recovery."""
        self.objects[PODS.kind, "default", name]["status"]["conditions"][0]["status"] = "False"

    def breaks(self, name: str, reason: str) -> None:
        """A pod whose container cannot start, as the kubelet says it."""
        self.unready(name)
        waiting = [{"name": name.split("-")[-2], "state": {"waiting": {"reason": reason}}}]
        self.objects[PODS.kind, "default", name]["status"]["containerStatuses"] = waiting

    def budget(self) -> None:
        """What the disruption controller does: how many pods may be evicted."""
        for (kind, place, _), body in self.objects.items():
            if kind != "PodDisruptionBudget":
                continue
            pods = [
                pod
                for (found, where, _), pod in self.objects.items()
                if found == PODS.kind and where == place and _selects(body["spec"]["selector"], pod)
            ]
            healthy = sum(
                _ready(pod) and not pod["metadata"].get("deletionTimestamp") for pod in pods
            )
            desired = len(pods) - body["spec"]["maxUnavailable"]
            body["status"] = {
                "observedGeneration": body["metadata"]["generation"],
                "currentHealthy": healthy,
                "desiredHealthy": desired,
                "disruptionsAllowed": max(0, healthy - desired),
            }

    def collect_garbage(self) -> None:
        """What the garbage collector does: objects go when none of their owners is there."""
        while True:
            uids = {body["metadata"]["uid"] for body in self.objects.values()}
            gone = [
                key
                for key, body in self.objects.items()
                if (owners := body["metadata"].get("ownerReferences"))
                and not any(each["uid"] in uids for each in owners)
            ]
            if not gone:
                return
            for key in gone:
                self._forget(key)

    def _pod(self, owner: Document, name: str, revision: str, *, ready: bool) -> None:
        meta, spec = owner["metadata"], owner["spec"]
        place = meta["namespace"]
        for template in spec["volumeClaimTemplates"]:
            claim = f"{template['metadata']['name']}-{name}"
            if (CLAIMS.kind, place, claim) not in self.objects:
                # As the controller does: the selector's labels are on claims too.
                labels = {
                    **template["metadata"].get("labels", {}),
                    **spec["selector"]["matchLabels"],
                }
                head = {"name": claim, "namespace": place, "labels": labels}
                self.put({"kind": CLAIMS.kind, "metadata": head, "spec": template["spec"]})
        if (PODS.kind, place, name) not in self.objects:
            labels = {
                **spec["template"]["metadata"]["labels"],
                "controller-revision-hash": revision,
            }
            reference = {
                "apiVersion": "apps/v1",
                "kind": "StatefulSet",
                "name": meta["name"],
                "uid": meta["uid"],
                "controller": True,
            }
            head = {
                "name": name,
                "namespace": place,
                "labels": labels,
                "ownerReferences": [reference],
            }
            self.put({"kind": PODS.kind, "metadata": head})
        self.objects[PODS.kind, place, name].setdefault("spec", {})["nodeName"] = NODE
        self.objects[PODS.kind, place, name]["status"] = {
            "hostIP": NODE_ADDRESS,
            "podIP": f"10.0.{meta['name'].endswith('-broker'):d}.{name.rpartition('-')[2]}",
            "conditions": [{"type": "Ready", "status": "True" if ready else "False"}],
        }


def _selects(selector: Document, pod: Document) -> bool:
    labels = pod["metadata"].get("labels") or {}
    return bool(selector["matchLabels"].items() <= labels.items())


def _ready(pod: Document) -> bool:
    conditions = pod.get("status", {}).get("conditions", ())
    return any(each["type"] == "Ready" and each["status"] == "True" for each in conditions)


def _merged(old: Any, new: Any) -> Any:
    """A merge patch (RFC 7396): null removes, lists are replaced."""
    if not isinstance(new, Mapping):
        return copy.deepcopy(new)
    result = dict(old) if isinstance(old, Mapping) else {}
    for key, value in new.items():
        if value is None:
            result.pop(key, None)
        else:
            result[key] = _merged(result.get(key), value)
    return result
