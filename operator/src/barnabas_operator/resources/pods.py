"""A pod template of the operator's with what the resource adds to it, and what it may not.

The pod itself says what the operator's own pod holds, so a part that is added to it later
(a volume, a port) is protected from the day on which it is there.
"""

from __future__ import annotations

import posixpath
from collections.abc import Iterable, Iterator, Mapping
from pathlib import PurePosixPath
from typing import Any, Final

from barnabas_operator.api import GROUP
from barnabas_operator.api.clusters import Profile
from barnabas_operator.api.pods import JsonObject, PodTemplate, ProbeSettings
from barnabas_operator.api.writing import to_json
from barnabas_operator.resources.objects import Document

# By what Kubernetes and the operator find pods, beside the labels on the operator's own template.
RESERVED_PREFIXES: Final = (f"{GROUP}/", "statefulset.kubernetes.io/")
RESERVED_LABELS: Final = ("apps.kubernetes.io/pod-index", "controller-revision-hash")
# What Pod Security's level `restricted` asks of each container.
UNPRIVILEGED: Final = {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}}
PROBES: Final = ("startupProbe", "livenessProbe", "readinessProbe")
ZONE: Final = "topology.kubernetes.io/zone"
HOST: Final = "kubernetes.io/hostname"


def with_template(template: Document, wanted: PodTemplate, selector: Mapping[str, str]) -> Document:
    """The pod template with all that a resource asks for beside."""
    meta, pod = template["metadata"], template["spec"]
    container, *others = pod["containers"]
    changed = {
        **pod,
        "containers": [_container(container, wanted), *others, *map(_sidecar, wanted.sidecars)],
        "volumes": [*pod["volumes"], *_plain(wanted.volumes)],
    }
    if wanted.affinity:
        changed["affinity"] = {**pod["affinity"], **wanted.affinity}
    if constraints := _constraints(pod, wanted, selector):
        changed["topologySpreadConstraints"] = constraints
    given = {
        "nodeSelector": dict(wanted.node_selector),
        "tolerations": _plain(wanted.tolerations),
        "priorityClassName": wanted.priority_class_name,
        "serviceAccountName": wanted.service_account_name,
        "imagePullSecrets": to_json(wanted.image_pull_secrets),
        "terminationGracePeriodSeconds": wanted.termination_grace_period_seconds,
    }
    changed |= {name: value for name, value in given.items() if value}
    head = {**meta, "labels": {**wanted.labels, **meta["labels"]}}
    if wanted.annotations:
        head["annotations"] = {**meta.get("annotations", {}), **wanted.annotations}
    return {**template, "metadata": head, "spec": changed}


def spread_by_profile(profile: Profile, selector: Mapping[str, str]) -> list[Document]:
    """Where the pods of one kind may run: in production on different nodes, and rather in zones.

    Nodes whose taints a pod does not tolerate are not counted, so that a drain does not leave the
    pod of its node without a place.
    """
    if profile is not Profile.PRODUCTION:
        return []
    labels = {"matchLabels": dict(selector)}
    hard = {"whenUnsatisfiable": "DoNotSchedule", "nodeTaintsPolicy": "Honor"}
    return [
        {"maxSkew": 1, "topologyKey": HOST, **hard, "labelSelector": labels},
        {
            "maxSkew": 1,
            "topologyKey": ZONE,
            "whenUnsatisfiable": "ScheduleAnyway",
            "labelSelector": {"matchLabels": dict(selector)},
        },
    ]


def _container(container: Document, wanted: PodTemplate) -> Document:
    changed = {
        **container,
        "env": [*container["env"], *_plain(wanted.env)],
        "volumeMounts": [*container["volumeMounts"], *_plain(wanted.volume_mounts)],
    }
    settings = (wanted.startup_probe, wanted.liveness_probe, wanted.readiness_probe)
    for name, given in zip(PROBES, settings, strict=True):
        if given is not None:
            changed[name] = _probe(container[name], given)
    return changed


def _probe(probe: Document, given: ProbeSettings) -> Document:
    return {**probe, **to_json(given)}


def _sidecar(sidecar: JsonObject) -> Document:
    given = sidecar.get("securityContext") or {}
    if not isinstance(given, Mapping):
        return dict(sidecar)  # The API server refuses it.
    return {**sidecar, "securityContext": {**UNPRIVILEGED, **given}}


def _constraints(pod: Document, wanted: PodTemplate, selector: Mapping[str, str]) -> list[Document]:
    """Those of the resource, and of the operator's those about other topologies."""
    given = [
        each if each.get("labelSelector") else {**each, "labelSelector": _labels(selector)}
        for each in _plain(wanted.topology_spread_constraints)
    ]
    keys = [each.get("topologyKey") for each in given]
    own = pod.get("topologySpreadConstraints", ())
    return [*(each for each in own if each["topologyKey"] not in keys), *given]


def _labels(selector: Mapping[str, str]) -> Document:
    return {"matchLabels": dict(selector)}


def _plain(parts: Iterable[JsonObject]) -> list[Document]:
    return [dict(each) for each in parts]


# --- what may not be asked for --------------------------------------------------------------------


def conflicts(template: Document, wanted: PodTemplate, path: str) -> list[str]:
    """Every place where a resource asks for what the operator's own template has already."""
    meta, pod = template["metadata"], template["spec"]
    container = pod["containers"][0]
    found = [
        f"{path}.labels: {name} is the operator's"
        for name in wanted.labels
        if name in meta["labels"] or name in RESERVED_LABELS or name.startswith(RESERVED_PREFIXES)
    ]
    found += [
        f"{path}.annotations: {name} is the operator's"
        for name in wanted.annotations
        if name.startswith(RESERVED_PREFIXES)
    ]
    volumes = {each["name"] for each in pod["volumes"]}
    volumes |= {each["name"] for each in container["volumeMounts"]}
    found += _taken("env", wanted.env, {each["name"] for each in container["env"]}, path)
    found += _taken("volumes", wanted.volumes, volumes, path)
    found += _mounts(container, wanted.volume_mounts, f"{path}.volumeMounts")
    names = {each["name"] for each in (*pod["containers"], *pod.get("initContainers", ()))}
    found += _taken("sidecars", wanted.sidecars, names, path)
    for index, sidecar in enumerate(wanted.sidecars):
        place = f"{path}.sidecars[{index}]"
        found += _ports(container["ports"], sidecar, f"{place}.ports")
        found += _written(sidecar, volumes, f"{place}.volumeMounts")
    return found


def _taken(name: str, given: Iterable[JsonObject], own: set[str], path: str) -> Iterator[str]:
    """Items without a name, with one of the operator's, or with one that is there already."""
    names = set(own)
    for index, each in enumerate(given):
        place, said = f"{path}.{name}[{index}].name", each.get("name")
        if not isinstance(said, str) or not said:
            yield f"{place}: is missing"
        elif said in own:
            yield f"{place}: {said} is the operator's"
        elif said in names:
            yield f"{place}: {said} is there twice"
        else:
            names.add(said)


def _mounts(container: Document, given: Iterable[JsonObject], path: str) -> Iterator[str]:
    own = [PurePosixPath(each["mountPath"]) for each in container["volumeMounts"]]
    for index, each in enumerate(given):
        said = each.get("mountPath")
        if not isinstance(said, str) or not said:
            yield f"{path}[{index}].mountPath: is missing"
            continue
        # As the kubelet does, which makes the path absolute, and the runtime, which resolves it.
        mount = PurePosixPath(posixpath.normpath("/" + said.lstrip("/")))
        for other in own:
            if mount.is_relative_to(other) or other.is_relative_to(mount):
                yield f"{path}[{index}].mountPath: {said} lies in or around {other}"
                break


def _ports(own: Iterable[Document], sidecar: JsonObject, path: str) -> Iterator[str]:
    names = {str(each["containerPort"]): each["name"] for each in own}
    for index, each in enumerate(objects_in(sidecar.get("ports"))):
        number, name = str(each.get("containerPort")), each.get("name")
        if number in names:
            yield f"{path}[{index}].containerPort: {number} is the port {names[number]}"
        elif name in names.values():
            yield f"{path}[{index}].name: {name} is the operator's"


def _written(sidecar: JsonObject, volumes: set[str], path: str) -> Iterator[str]:
    """A sidecar may read the operator's volumes: two programs that write one disk lose data."""
    for index, each in enumerate(objects_in(sidecar.get("volumeMounts"))):
        if each.get("name") in list(volumes) and each.get("readOnly") is not True:
            yield f"{path}[{index}]: {each['name']} is the operator's; mount it with readOnly: true"


def objects_in(value: Any) -> list[JsonObject]:
    """The objects of a list that is not checked yet."""
    items = value if isinstance(value, list | tuple) else ()
    return [each for each in items if isinstance(each, Mapping)]
