"""The steps that a plan consists of: values that say what to do and why."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True, kw_only=True)
class Apply:
    """Bring an object to what it should be."""

    body: Mapping[str, Any]
    reason: str

    def __str__(self) -> str:
        return f"apply {self.body['kind']} {self.body['metadata']['name']}: {self.reason}"


@dataclass(frozen=True, slots=True, kw_only=True)
class DeletePod:
    """Delete a pod, so that its StatefulSet creates it from the current template."""

    name: str
    uid: str
    reason: str
    # The pod of its rack that is evicted before, under whose disruption it goes.
    beside: str = ""

    def __str__(self) -> str:
        together = f", together with {self.beside}" if self.beside else ""
        return f"delete Pod {self.name}: {self.reason}{together}"


@dataclass(frozen=True, slots=True, kw_only=True)
class DeleteObject:
    """Delete an object that is wanted no longer."""

    kind: str
    name: str
    uid: str
    reason: str

    def __str__(self) -> str:
        return f"delete {self.kind} {self.name}: {self.reason}"


@dataclass(frozen=True, slots=True, kw_only=True)
class GrowClaim:
    """Ask for a larger volume."""

    name: str
    size: str
    reason: str
    present: str = ""
    storage_class: str = ""

    def __str__(self) -> str:
        return f"grow PersistentVolumeClaim {self.name} to {self.size}: {self.reason}"


@dataclass(frozen=True, slots=True, kw_only=True)
class LabelClaim:
    """Set labels of a claim; None removes one."""

    name: str
    labels: Mapping[str, str | None]
    reason: str

    def __str__(self) -> str:
        return f"label PersistentVolumeClaim {self.name}: {self.reason}"


@dataclass(frozen=True, slots=True, kw_only=True)
class AnnotateRack:
    """Write the rack of its node on a pod; its broker waits for that."""

    name: str
    rack: str

    def __str__(self) -> str:
        return f"annotate Pod {self.name} with its rack: {self.rack}"


Step = Apply | DeletePod | DeleteObject | GrowClaim | LabelClaim | AnnotateRack
