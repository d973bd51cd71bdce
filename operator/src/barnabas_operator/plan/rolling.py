"""Which pod of a StatefulSet is replaced next, and what blocks it.

StatefulSets are updated on deletion: the operator decides the order. A pod is broken only if
Kubernetes says that it cannot start; a pod that is merely not ready may be in log recovery or load
its groups, and is waited for. So:

* a broken pod of an older template is replaced at once: it serves nothing, and waiting mends
  nothing;
* otherwise one pod is replaced at a time, and none while another one is missing, terminating or not
  ready;
* so is one whose own container never ran, as where a volume cannot be mounted;
* a pod that only a sidecar keeps from being ready serves: with an older template it is replaced
  first, as any other that serves, and with the current one it stops the roll;
* a broken pod of the current template stops the roll: the next pod would break in the same way;
* the pod that leads (ensemble leader, controller) is last, so that leadership moves once;
* brokers of one rack may go together where no partition has replicas on two of them: then each
  partition loses one replica at most, and what one broker says of its restart holds for all.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence, Set
from dataclasses import dataclass
from typing import Any, Final

from barnabas_operator.names import CONFIG_HASH, MANUAL_ROLL, RACK
from barnabas_operator.plan.findings import Finding, Reason
from barnabas_operator.plan.steps import DeletePod

# Why a container waits when it will not start by itself; names as the kubelet gives them.
BROKEN: Final = frozenset(
    {
        "CrashLoopBackOff",
        "ErrImagePull",
        "ImagePullBackOff",
        "ErrImageNeverPull",
        "InvalidImageName",
        "ImageInspectError",
        "RegistryUnavailable",
        "CreateContainerConfigError",
        "CreateContainerError",
        "RunContainerError",
        "PreStartHookError",
        "PostStartHookError",
    }
)
UNSCHEDULABLE: Final = "Unschedulable"
READDRESSED: Final = "its advertised addresses changed"
ASKED_FOR: Final = f"the annotation {MANUAL_ROLL} asks for it"
# A sidecar that another program injected may crash beside a broker that serves.
OWN_CONTAINERS: Final = frozenset({"broker", "zookeeper", "rack"})


def ordinal_of(pod: str) -> int:
    """The number of a pod in its StatefulSet."""
    return int(pod.rpartition("-")[2])


@dataclass(frozen=True, slots=True, kw_only=True)
class PodView:
    """What a roll needs to know of a pod."""

    name: str
    uid: str
    revision: str
    ready: bool
    terminating: bool = False
    # Why it cannot start, empty if it can.
    broken: str = ""
    # Which container beside the operator's cannot start, where that alone makes it not ready.
    sidecar: str = ""
    # Why the operator's container has never run, empty if it has.
    unstarted: str = ""
    node_address: str = ""
    # Its own address, empty before it has one.
    address: str = ""
    # Where it runs, empty before it was scheduled; its rack by annotation or label, empty before.
    node: str = ""
    rack: str = ""
    # Why it is to be replaced though its template is the current one; empty if it is not.
    restart: str = ""
    # When it was created, and since when it is ready: RFC 3339, empty where that is not known.
    created: str = ""
    ready_since: str = ""
    # What it runs, and the hash of the configuration that it started with.
    image: str = ""
    config_hash: str = ""

    @property
    def ordinal(self) -> int:
        """Its number in its StatefulSet."""
        return ordinal_of(self.name)

    @property
    def serves(self) -> bool:
        """Whether it is ready and stays so as far as Kubernetes knows."""
        return self.ready and not self.terminating

    @property
    def is_available(self) -> bool:
        """Whether the operator's container serves, whatever other containers do."""
        return (self.ready or bool(self.sidecar)) and not self.terminating

    @classmethod
    def of(cls, pod: Mapping[str, Any], *, topology_key: str = "") -> PodView:
        """From the pod as the API server gives it; the label of its rack may be on it already."""
        meta, status = pod["metadata"], pod.get("status") or {}
        conditions = status.get("conditions") or ()
        annotations = meta.get("annotations") or {}
        since = [
            each.get("lastTransitionTime") or ""
            for each in conditions
            if each["type"] == "Ready" and each["status"] == "True"
        ]
        return cls(
            name=meta["name"],
            uid=meta["uid"],
            revision=(meta.get("labels") or {}).get("controller-revision-hash", ""),
            ready=bool(since),
            terminating=bool(meta.get("deletionTimestamp")),
            broken=_broken(status),
            sidecar=_sidecar(status),
            unstarted=_unstarted(status),
            node_address=status.get("hostIP") or "",
            address=status.get("podIP") or "",
            node=(pod.get("spec") or {}).get("nodeName") or "",
            rack=annotations.get(RACK, "") or (meta.get("labels") or {}).get(topology_key, ""),
            restart=ASKED_FOR if annotations.get(MANUAL_ROLL, "false") != "false" else "",
            created=meta.get("creationTimestamp") or "",
            ready_since=next(iter(since), ""),
            image=image_of(pod.get("spec") or {}),
            config_hash=annotations.get(CONFIG_HASH, ""),
        )


def image_of(spec: Mapping[str, Any]) -> str:
    """The image of the broker, or of the ensemble member, in a pod's spec."""
    containers = spec.get("containers") or ()
    return next(
        (str(each.get("image", "")) for each in containers if each["name"] in OWN_CONTAINERS), ""
    )


def _broken(status: Mapping[str, Any]) -> str:
    for each in status.get("conditions") or ():
        unscheduled = each["type"] == "PodScheduled" and each["status"] == "False"
        if unscheduled and each.get("reason") == UNSCHEDULABLE:
            return UNSCHEDULABLE
    for kind in ("initContainerStatuses", "containerStatuses"):
        for container in status.get(kind) or ():
            waiting = (container.get("state") or {}).get("waiting") or {}
            if container.get("name") in OWN_CONTAINERS and waiting.get("reason") in BROKEN:
                return str(waiting["reason"])
    return ""


def _sidecar(status: Mapping[str, Any]) -> str:
    found = ""
    for container in status.get("containerStatuses") or ():
        waiting = (container.get("state") or {}).get("waiting") or {}
        if container.get("name") in OWN_CONTAINERS:
            if not container.get("ready"):
                return ""
        elif waiting.get("reason") in BROKEN:
            found = found or f"container {container.get('name')} is in {waiting['reason']}"
    return found


def _unstarted(status: Mapping[str, Any]) -> str:
    for container in status.get("containerStatuses") or ():
        state = container.get("state") or {}
        ran = container.get("lastState") or container.get("restartCount")
        if container.get("name") in OWN_CONTAINERS and "waiting" in state and not ran:
            return str(state["waiting"].get("reason") or "ContainerCreating")
    return ""


@dataclass(frozen=True, slots=True, kw_only=True)
class SetView:
    """What a roll needs to know of a StatefulSet; `current` is False before it was observed."""

    replicas: int
    update_revision: str
    current: bool
    # Of its spec: one more with each change.
    generation: int = 0

    @classmethod
    def of(cls, stateful_set: Mapping[str, Any]) -> SetView:
        """From the StatefulSet as the API server gives it."""
        meta, status = stateful_set["metadata"], stateful_set.get("status") or {}
        return cls(
            replicas=stateful_set["spec"].get("replicas", 1),
            update_revision=status.get("updateRevision", ""),
            current=status.get("observedGeneration") == meta.get("generation"),
            generation=meta.get("generation") or 0,
        )


def outdated(pods: Sequence[PodView], seen: SetView) -> list[PodView]:
    """The pods of another template than the current one, and those that are to be replaced."""
    if not seen.current or not seen.update_revision:
        return []
    return [pod for pod in pods if pod.restart or pod.revision != seen.update_revision]


def broken_to_replace(pods: Sequence[PodView], seen: SetView) -> DeletePod | None:
    """The first broken pod of an older template, one at a time, ready or not as the others are."""
    broken = [pod for pod in outdated(pods, seen) if pod.broken or pod.unstarted]
    return _first(pods, seen, broken)


def unready_to_replace(pods: Sequence[PodView], seen: SetView) -> DeletePod | None:
    """The first pod of an older template that is not ready: only where a roll is forced."""
    return _first(pods, seen, [pod for pod in outdated(pods, seen) if not pod.ready])


def _first(
    pods: Sequence[PodView], seen: SetView, candidates: Sequence[PodView]
) -> DeletePod | None:
    on_its_way = len(pods) < seen.replicas or any(pod.terminating for pod in pods)
    if not candidates or on_its_way:
        return None
    pod = min(candidates, key=lambda each: each.ordinal)
    reason = f"{pod.broken or pod.unstarted or 'not ready'}, and {_why(pod)}"
    return DeletePod(name=pod.name, uid=pod.uid, reason=reason)


def _why(pod: PodView) -> str:
    return pod.restart or "its pod template changed"


@dataclass(frozen=True, slots=True, kw_only=True)
class Together:
    """How many brokers of a rack may be replaced together, and which of them share partitions."""

    limit: int = 1
    replica_sets: frozenset[frozenset[int]] = frozenset()

    def groups(self, pods: Sequence[PodView], last: Collection[str] = ()) -> list[list[PodView]]:
        """The pods in their order, in groups of which each is replaced as a whole."""
        left, found = in_order(pods, last), []
        while left:
            group = [left.pop(0)]
            for pod in [*left]:
                if len(group) < self.limit and self._fits(pod, group, last):
                    left.remove(pod)
                    group.append(pod)
            found.append(group)
        return found

    def _fits(self, pod: PodView, group: Sequence[PodView], last: Collection[str]) -> bool:
        if any(each.name in last or each.sidecar for each in (pod, *group)):
            return False
        if not pod.rack or pod.rack != group[0].rack:
            return False
        return not share_partition(self.replica_sets, pod.ordinal, {each.ordinal for each in group})


def share_partition(replica_sets: Iterable[Set[int]], broker: int, others: Set[int]) -> bool:
    """Whether a partition has replicas on a broker and on one of the others."""
    return any(broker in each and others & each for each in replica_sets)


ONE_AT_A_TIME: Final = Together()


def next_to_replace(
    pods: Sequence[PodView],
    seen: SetView,
    last: Collection[str] = (),
    together: Together = ONE_AT_A_TIME,
) -> list[DeletePod]:
    """The pod whose turn it is, and those that go with it."""
    old = [pod for pod in outdated(pods, seen) if not pod.terminating]
    first, *others = next(iter(together.groups(old, last)), [None])
    if first is None:
        return []
    return [
        DeletePod(name=first.name, uid=first.uid, reason=_why(first)),
        *(
            DeletePod(name=pod.name, uid=pod.uid, reason=_why(pod), beside=first.name)
            for pod in others
            if pod is not None
        ),
    ]


def in_order(pods: Sequence[PodView], last: Collection[str] = ()) -> list[PodView]:
    """From the last to the first, those named in `last` after all.

    One with a broken sidecar is before all: the roll is what mends it.
    """
    return sorted(pods, key=lambda each: (not each.sidecar, each.name in last, -each.ordinal))


def absences(
    component: str, pods: Sequence[PodView], seen: SetView, progress: Mapping[str, str]
) -> list[Finding]:
    """Why a StatefulSet is not complete: each pod that is not ready, by name and state."""
    found = []
    if not seen.current:
        text = f"{component}: its StatefulSet was changed and not observed yet"
        found.append(Finding(reason=Reason.STATEFUL_SET_PENDING, message=text))
    for pod in sorted(pods, key=lambda each: each.ordinal):
        if pod.terminating:
            text = f"{pod.name} is terminating"
            found.append(Finding(reason=Reason.POD_TERMINATING, message=text))
        elif pod.broken:
            text = f"{pod.name} cannot start: {pod.broken}"
            found.append(Finding(reason=Reason.POD_BROKEN, message=text))
        elif not pod.ready:
            state = progress.get(pod.name, "")
            text = f"{pod.name} is not ready" + (f": log recovery: {state}" if state else "")
            text += f": {pod.sidecar}" if pod.sidecar else ""
            found.append(Finding(reason=Reason.POD_NOT_READY, message=text))
    if len(pods) < seen.replicas:
        text = f"{component}: {len(pods)} of {seen.replicas} pods exist"
        found.append(Finding(reason=Reason.POD_MISSING, message=text))
    return found


def is_complete(pods: Sequence[PodView], seen: SetView) -> bool:
    """Whether every pod of a StatefulSet has its current template and serves."""
    current = seen.current and not outdated(pods, seen)
    return current and len(pods) == seen.replicas and all(pod.serves for pod in pods)


def newly_broken(pods: Sequence[PodView], seen: SetView) -> list[PodView]:
    """The broken pods of the current template, while others still have an older one."""
    old = outdated(pods, seen)
    broken = [pod for pod in pods if pod.broken or pod.sidecar]
    return [pod for pod in broken if pod not in old] if old else []
