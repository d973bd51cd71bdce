"""Which pod of a StatefulSet is to be made anew next, and why.

StatefulSets are updated on deletion: the operator decides the order. At most one pod is taken in a
pass, and none while another is not ready or not there; but a pod that is itself broken may be
taken at any time, for its own brokenness must not stand in the way of its repair.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from barnabas_operator.names import RACK
from barnabas_operator.plan.steps import DeletePod


@dataclass(frozen=True, slots=True, kw_only=True)
class PodView:
    """What a roll needs to know of a pod."""

    name: str
    uid: str
    revision: str
    ready: bool
    leaving: bool
    node_address: str
    # Its own address, empty before it has one.
    address: str = ""
    # Where it runs, empty before it was scheduled; the rack that it was told, empty before.
    node: str = ""
    rack: str = ""

    @property
    def ordinal(self) -> int:
        """Its number in its StatefulSet."""
        return int(self.name.rpartition("-")[2])

    @classmethod
    def of(cls, pod: Mapping[str, Any]) -> PodView:
        """From the pod as the API server gives it."""
        meta, status = pod["metadata"], pod.get("status") or {}
        conditions = status.get("conditions") or ()
        return cls(
            name=meta["name"],
            uid=meta["uid"],
            revision=(meta.get("labels") or {}).get("controller-revision-hash", ""),
            ready=any(each["type"] == "Ready" and each["status"] == "True" for each in conditions),
            leaving=bool(meta.get("deletionTimestamp")),
            node_address=status.get("hostIP") or "",
            address=status.get("podIP") or "",
            node=(pod.get("spec") or {}).get("nodeName") or "",
            rack=(meta.get("annotations") or {}).get(RACK, ""),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class SetView:
    """What a roll needs to know of a StatefulSet; `current` is False before it was looked at."""

    replicas: int
    update_revision: str
    current: bool

    @classmethod
    def of(cls, stateful_set: Mapping[str, Any]) -> SetView:
        """From the StatefulSet as the API server gives it."""
        meta, status = stateful_set["metadata"], stateful_set.get("status") or {}
        return cls(
            replicas=stateful_set["spec"].get("replicas", 1),
            update_revision=status.get("updateRevision", ""),
            current=status.get("observedGeneration") == meta.get("generation"),
        )


def outdated(pods: Sequence[PodView], seen: SetView) -> list[PodView]:
    """The pods that were made from another template than the present one."""
    if not seen.current or not seen.update_revision:
        return []
    return [pod for pod in pods if pod.revision != seen.update_revision]


def next_to_roll(pods: Sequence[PodView], seen: SetView) -> DeletePod | None:
    """The pod to delete now; None if all are up to date or one has to be waited for."""
    old = outdated(pods, seen)
    if any(pod.leaving for pod in pods):
        return None
    broken = [pod for pod in old if not pod.ready]
    if broken:
        pod = min(broken, key=lambda each: each.ordinal)
        return DeletePod(name=pod.name, uid=pod.uid, reason="not ready, and its template changed")
    complete = len(pods) >= seen.replicas and all(pod.ready for pod in pods)
    if not old or not complete:
        return None
    # From the last to the first, as StatefulSets do.
    pod = max(old, key=lambda each: each.ordinal)
    return DeletePod(name=pod.name, uid=pod.uid, reason="its template changed")
