"""What can be done about storage: claims grow, templates of claims stay as they are.

A StatefulSet's claim templates are immutable, so a StatefulSet that exists keeps those it has, and
its claims are grown one by one. New claims are then made too small and grown in the next pass.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from barnabas_operator.api.amounts import parse_bytes, show_bytes
from barnabas_operator.plan.steps import GrowClaim
from barnabas_operator.resources.objects import Document, hashed

Object = Mapping[str, Any]


def with_present_templates(wanted: Document, found: Object | None) -> Document:
    """A wanted object, with the claim templates that its StatefulSet has if it exists."""
    if wanted["kind"] != "StatefulSet" or found is None:
        return wanted
    present = {
        each["metadata"]["name"]: each["spec"]
        for each in found["spec"].get("volumeClaimTemplates", ())
    }
    templates = []
    for each in wanted["spec"]["volumeClaimTemplates"]:
        old = present.get(each["metadata"]["name"], each["spec"])
        names = ("accessModes", "resources", "storageClassName")
        templates.append({**each, "spec": {name: old[name] for name in names if name in old}})
    return hashed({**wanted, "spec": {**wanted["spec"], "volumeClaimTemplates": templates}})


def growth(claims: Iterable[Object], size: str) -> tuple[list[GrowClaim], list[str]]:
    """The claims to grow, and warnings about those that would have to shrink."""
    steps, warnings = [], []
    for claim in claims:
        name = claim["metadata"]["name"]
        present = claim["spec"]["resources"]["requests"]["storage"]
        if parse_bytes(present) < parse_bytes(size):
            steps.append(GrowClaim(name=name, size=size, reason=f"it has {present}"))
        elif parse_bytes(present) > parse_bytes(size):
            kept = show_bytes(parse_bytes(present))
            warnings.append(f"{name} keeps its {kept}: a claim cannot shrink to {size}")
    return steps, warnings
