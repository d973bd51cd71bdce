"""Objects that the resource asks for no longer: Services of listeners and brokers that are gone.

Only what the resource controls, by uid, and only of kinds and components whose every object is
planned in one place. An operator that does not understand the whole resource prunes nothing: what
it does not know may be wanted by a field that it does not know.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from barnabas_operator.names import COMPONENT
from barnabas_operator.plan.observed import COMPONENTS
from barnabas_operator.plan.steps import DeleteObject

Object = Mapping[str, Any]

KINDS: Final = frozenset(
    {"Service", "ConfigMap", "Ingress", "TLSRoute", "NetworkPolicy", "Certificate"}
)


def surplus(
    wanted: Iterable[Object], found: Iterable[Object], *, owner_uid: str
) -> list[DeleteObject]:
    """The objects to delete, by kind and name."""
    kept = {(each["kind"], each["metadata"]["name"]) for each in wanted}
    steps = [
        DeleteObject(
            kind=each["kind"],
            name=each["metadata"]["name"],
            uid=each["metadata"]["uid"],
            reason="the resource asks for it no longer",
        )
        for each in found
        if each["kind"] in KINDS
        and (each["kind"], each["metadata"]["name"]) not in kept
        and (each["metadata"].get("labels") or {}).get(COMPONENT) in COMPONENTS
        and _controlled(each, owner_uid)
        and not each["metadata"].get("deletionTimestamp")
    ]
    return sorted(steps, key=lambda step: (step.kind, step.name))


def _controlled(found: Object, uid: str) -> bool:
    references = found["metadata"].get("ownerReferences") or ()
    return any(each.get("controller") and each["uid"] == uid for each in references)
