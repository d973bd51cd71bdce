"""Applies objects that are ours, and no others.

Server-side apply with force takes over any object of that name. So the object is read first, it
must be controlled by the resource for which it is applied, and the API server is given its uid. An
object that does not exist is created without force: one that another client created meanwhile is a
conflict (409). Another operator's is none, for it has the same field manager; what must not be made
twice, as keys are, is applied as it was read.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from barnabas_operator.kube import KINDS, Document, Kube, KubeError
from barnabas_operator.names import COMPONENT, FIELD_MANAGER, INSTANCE

Object = Mapping[str, Any]


class ForeignObjectError(KubeError):
    """An object of the name exists, and another controls it."""

    def __init__(self, message: str) -> None:
        super().__init__(409, message)

    @property
    def refused(self) -> bool:
        """It stays so until a person deletes or renames something."""
        return True


def apply_owned(kube: Kube, body: Document) -> Document:
    """Create or change an object that its controller, named in the body, may change.

    Raises ForeignObjectError where the name is taken, KubeError otherwise.
    """
    meta = body["metadata"]
    found = kube.get(KINDS[body["kind"]], meta["namespace"], meta["name"])
    if found is None:
        return kube.apply(body)
    if objection := objection_to(found, body):
        raise ForeignObjectError(objection)
    return kube.apply(body, uid=found["metadata"]["uid"])


def apply_as_read(kube: Kube, body: Document, found: Object | None) -> Document:
    """Create an object, or change one that is still as it was `found` and is ours to change.

    Status 409, and nothing is changed, where it was created, changed or replaced meanwhile. An
    operator that ends in between may leave one without data, see `is_begun`.
    """
    meta = body["metadata"]
    if found is None:
        empty = {name: value for name, value in body.items() if name != "data"}
        found = kube.create(KINDS[body["kind"]], meta["namespace"], empty)
    version = found["metadata"]["resourceVersion"]
    as_read = {**body, "metadata": {**meta, "resourceVersion": version}}
    return kube.apply(as_read, uid=found["metadata"]["uid"])


def is_begun(found: Object) -> bool:
    """Whether an operator ended after it created this object, and before it applied any data."""
    return not (found.get("data") or is_applied_by_us(found))


def try_owned(kube: Kube, body: Document) -> None:
    """Have the API server check what `apply_owned` would write; raises KubeError.

    An object that is another's is not tried: to apply it says so.
    """
    meta = body["metadata"]
    found = kube.get(KINDS[body["kind"]], meta["namespace"], meta["name"])
    if found is None:
        kube.apply(body, dry_run=True)
    elif not objection_to(found, body):
        kube.apply(body, uid=found["metadata"]["uid"], dry_run=True)


def objection_to(found: Object, body: Object) -> str:
    """Why an existing object is not ours to change; empty if it is.

    One that has lost its owner (`kubectl delete --cascade=orphan`) is adopted if the operator
    created it, as Kubernetes' own controllers do, and as the same part of the same cluster: a
    KafkaUser may be named as the Secret of an authority is.
    """
    ours, theirs = controller(body), controller(found)
    if theirs is None:
        if ours is None or (is_applied_by_us(found) and _is_same_part(found, body)):
            return ""
        text = "no resource controls it"
    elif ours is not None and theirs["uid"] == ours["uid"]:
        return ""
    elif ours is not None and (theirs["kind"], theirs["name"]) == (ours["kind"], ours["name"]):
        text = f"an earlier {ours['kind']} {ours['name']} controls it (uid {theirs['uid']})"
    else:
        text = f"{theirs['kind']} {theirs['name']} controls it"
    name = f"{body['kind']} {body['metadata']['name']}"
    return f"{name} exists and {text}; delete or rename it, or rename the resource"


def is_ours(found: Object, uid: str) -> bool:
    """Whether the resource controls an object, or none does and we applied it before.

    Labels prove nothing, nor does the absence of an owner.
    """
    owner = controller(found)
    return is_applied_by_us(found) if owner is None else bool(owner["uid"] == uid)


def _is_same_part(found: Object, body: Object) -> bool:
    """Whether an object that we applied says nothing else of what it is than the new one."""
    before, now = (each["metadata"].get("labels") or {} for each in (found, body))
    return all(before.get(name, now.get(name)) == now.get(name) for name in (INSTANCE, COMPONENT))


def controller(body: Object) -> Object | None:
    """The owner reference of the resource that controls an object."""
    references = body["metadata"].get("ownerReferences") or ()
    return next((each for each in references if each.get("controller")), None)


def is_applied_by_us(found: Object) -> bool:
    """Whether the operator applied an object before."""
    entries = found["metadata"].get("managedFields") or ()
    return any(
        each.get("manager") == FIELD_MANAGER and each.get("operation") == "Apply"
        for each in entries
    )
