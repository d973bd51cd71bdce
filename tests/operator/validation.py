"""What an API server adds to an object that is written, and what it refuses, in its words."""

from __future__ import annotations

from typing import Any, Final

from barnabas_operator.api.amounts import stored_bytes

Document = dict[str, Any]

_PROBE: Final = {
    "timeoutSeconds": 1,
    "periodSeconds": 10,
    "successThreshold": 1,
    "failureThreshold": 3,
}
_CONTAINER: Final = {
    "terminationMessagePath": "/dev/termination-log",
    "terminationMessagePolicy": "File",
    "imagePullPolicy": "IfNotPresent",
}
_POD: Final = {
    "restartPolicy": "Always",
    "dnsPolicy": "ClusterFirst",
    "schedulerName": "default-scheduler",
}
# Of the keys and values of a ConfigMap's data.
CONFIG_MAP_BYTES: Final = 1024 * 1024
# Of a StatefulSet's spec these alone may change.
MUTABLE: Final = (
    "replicas", "ordinals", "template", "updateStrategy", "revisionHistoryLimit",
    "persistentVolumeClaimRetentionPolicy", "minReadySeconds",
)  # fmt: skip


class InvalidError(Exception):
    """The API server answers 422 or 403."""

    def __init__(self, status: int, message: str) -> None:
        self.status = status
        super().__init__(message)


def add_defaults(body: Document) -> None:
    """What the API server adds where nobody says anything."""
    spec = body.get("spec", {})
    if body["kind"] == "Service":
        spec.setdefault("type", "ClusterIP")
        spec.setdefault("sessionAffinity", "None")
        for port in spec.get("ports", ()):
            port.setdefault("protocol", "TCP")
            port.setdefault("targetPort", port["port"])
    elif body["kind"] == "StatefulSet":
        spec.setdefault("replicas", 1)
        spec.setdefault("revisionHistoryLimit", 10)
        spec.setdefault("podManagementPolicy", "OrderedReady")
        _add_pod_defaults(spec["template"]["spec"])
        for claim in spec.get("volumeClaimTemplates", ()):
            claim.setdefault("apiVersion", "v1")
            claim.setdefault("kind", "PersistentVolumeClaim")
            claim["spec"].setdefault("volumeMode", "Filesystem")
            claim.setdefault("status", {"phase": "Pending"})


def _add_pod_defaults(pod: Document) -> None:
    for name, value in _POD.items():
        pod.setdefault(name, value)
    for volume in pod.get("volumes", ()):
        for source in ("configMap", "downwardAPI"):
            if source in volume:
                volume[source].setdefault("defaultMode", 420)
        for each in volume.get("downwardAPI", {}).get("items", ()):
            each["fieldRef"].setdefault("apiVersion", "v1")
    for container in (*pod.get("containers", ()), *pod.get("initContainers", ())):
        _add_container_defaults(container)


def _add_container_defaults(container: Document) -> None:
    for name, value in _CONTAINER.items():
        container.setdefault(name, value)
    for port in container.get("ports", ()):
        port.setdefault("protocol", "TCP")
    for variable in container.get("env", ()):
        if "fieldRef" in variable.get("valueFrom", {}):
            variable["valueFrom"]["fieldRef"].setdefault("apiVersion", "v1")
    for probe in ("startupProbe", "livenessProbe", "readinessProbe"):
        if probe in container:
            container[probe] = {**_PROBE, **container[probe]}
            container[probe].get("httpGet", {"scheme": ""}).setdefault("scheme", "HTTP")


def check(old: Document | None, new: Document, *, expandable: bool) -> None:
    """Refuse what may not be, or may not change. Raises InvalidError."""
    controllers = [
        each for each in new["metadata"].get("ownerReferences", ()) if each.get("controller")
    ]
    if len(controllers) > 1:
        raise InvalidError(
            422,
            f'{new["kind"]} "{new["metadata"]["name"]}" is invalid: metadata.ownerReferences:'
            " Invalid value: Only one reference can have Controller set to true",
        )  # fmt: skip
    if new["kind"] == "ConfigMap":
        data = (new.get("data") or {}).items()
        if sum(len(key) + len(text.encode()) for key, text in data) > CONFIG_MAP_BYTES:
            raise InvalidError(
                422,
                f'ConfigMap "{new["metadata"]["name"]}" is invalid: []: Too long: may not be more'
                f" than {CONFIG_MAP_BYTES} bytes",
            )
    elif new["kind"] == "StatefulSet":
        _check_stateful_set(old, new)
    elif new["kind"] == "PersistentVolumeClaim" and old is not None:
        _check_claim(old, new, expandable=expandable)


def _check_stateful_set(old: Document | None, new: Document) -> None:
    name, spec = new["metadata"]["name"], new["spec"]
    labels = spec["template"]["metadata"].get("labels", {})
    if not spec["selector"]["matchLabels"].items() <= labels.items():
        raise InvalidError(
            422,
            f'StatefulSet.apps "{name}" is invalid: spec.template.metadata.labels: Invalid value:'
            " `selector` does not match template `labels`",
        )
    fixed = [
        {k: v for k, v in each["spec"].items() if k not in MUTABLE} for each in (old or new, new)
    ]
    if fixed[0] != fixed[1]:
        raise InvalidError(
            422,
            f'StatefulSet.apps "{name}" is invalid: spec: Forbidden: updates to statefulset spec'
            " for fields other than 'replicas', 'ordinals', 'template', 'updateStrategy',"
            " 'revisionHistoryLimit', 'persistentVolumeClaimRetentionPolicy' and 'minReadySeconds'"
            " are forbidden",
        )


def _check_claim(old: Document, new: Document, *, expandable: bool) -> None:
    name = new["metadata"]["name"]
    before, after = (
        stored_bytes(each["spec"]["resources"]["requests"]["storage"]) for each in (old, new)
    )
    if after < before:
        raise InvalidError(
            422,
            f'PersistentVolumeClaim "{name}" is invalid: spec.resources.requests.storage:'
            " Forbidden: field can not be less than status.capacity",
        )
    if after > before and not expandable:
        raise InvalidError(
            403,
            f'persistentvolumeclaims "{name}" is forbidden: only dynamically provisioned pvc can be'
            " resized and the storageclass that provisions the pvc must support resize",
        )
