"""What can be done about storage: claims grow, templates of claims stay as they are.

A StatefulSet's claim templates are immutable, so a StatefulSet that exists keeps those it has, and
its claims are grown one by one. New claims are then made too small and grown in the next pass.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

from barnabas_operator.api.amounts import show_bytes, stored_bytes
from barnabas_operator.api.clusters import ClusterSpec, Security
from barnabas_operator.api.storage import DeletionPolicy
from barnabas_operator.names import INSTANCE, SECURITY
from barnabas_operator.plan.steps import GrowClaim, LabelClaim
from barnabas_operator.resources.objects import Document, hashed

Object = Mapping[str, Any]


def with_present_templates(wanted: Document, found: Object | None) -> Document:
    """A wanted object, with the claim templates that its StatefulSet has if it exists.

    Their labels are also those that it has: earlier versions gave claims others.
    """
    if wanted["kind"] != "StatefulSet" or found is None:
        return wanted
    present = {
        each["metadata"]["name"]: each for each in found["spec"].get("volumeClaimTemplates", ())
    }
    templates = []
    for each in wanted["spec"]["volumeClaimTemplates"]:
        old = present.get(each["metadata"]["name"], each)
        names = ("accessModes", "resources", "storageClassName")
        kept = {name: old["spec"][name] for name in names if name in old["spec"]}
        meta = {
            name: old["metadata"][name] for name in ("name", "labels") if name in old["metadata"]
        }
        templates.append({**each, "metadata": meta, "spec": kept})
    return hashed({**wanted, "spec": {**wanted["spec"], "volumeClaimTemplates": templates}})


def claims_of(claims: Iterable[Object], stateful_set: str) -> list[Object]:
    """The claims of a StatefulSet's pods: its controller finds them by their names, and by nothing
    else. Labels say less: claims that were retained have those of the version that made them.
    """
    name = re.compile(rf"data-{re.escape(stateful_set)}-(0|[1-9][0-9]*)")
    return [each for each in claims if name.fullmatch(each["metadata"]["name"])]


def relabelled(claims: Iterable[Object], labels: Mapping[str, str]) -> list[LabelClaim]:
    """The claims to take the label from by which GitOps tools prune, and to give our own."""
    return [
        LabelClaim(
            name=each["metadata"]["name"],
            labels={INSTANCE: None, **labels},
            reason=f"{INSTANCE} may have it pruned",
        )
        for each in claims
        if INSTANCE in (each["metadata"].get("labels") or {})
    ]


def marked(claims: Iterable[Object]) -> list[LabelClaim]:
    """The claims of a secured cluster that do not say so: their templates are from before that."""
    secured = Security.SECURED.value
    return [
        LabelClaim(
            name=each["metadata"]["name"],
            labels={SECURITY: secured},
            reason="it is of a secured cluster, and may outlive it",
        )
        for each in claims
        if (each["metadata"].get("labels") or {}).get(SECURITY) != secured
    ]


def ordinal_of(claim: Object) -> int:
    """The number of the pod that a claim is for."""
    return int(claim["metadata"]["name"].rpartition("-")[2])


def ignored_class(wanted: str | None, found: Object | None) -> str:
    """What to say if a StatefulSet has claims of another StorageClass than the spec asks for."""
    if found is None:
        return ""
    templates = found["spec"].get("volumeClaimTemplates", ())
    classes = {each["spec"].get("storageClassName") or "" for each in templates}
    if classes <= {wanted or ""}:
        return ""
    asked, present = (each or "the default" for each in (wanted, min(classes)))
    return (
        f"{found['metadata']['name']}: claims keep StorageClass {present}, storageClass {asked} is"
        " ignored: it cannot change once the StatefulSet exists"
    )


def lost_cluster_id(spec: ClusterSpec) -> str:
    """What to say if brokers' claims outlive the ensemble's: a cluster that is created again from
    them would get a new id from its new ensemble, and its brokers refuse their old directories.
    """
    policies = spec.brokers.storage.deletion_policy, spec.zookeeper.storage.deletion_policy
    if policies != (DeletionPolicy.RETAIN, DeletionPolicy.DELETE):
        return ""
    return (
        "deleting the cluster deletes ZooKeeper's claims and keeps the brokers', which then belong"
        " to no cluster: set zookeeper.storage.deletionPolicy to Retain"
    )


def growth(claims: Iterable[Object], size: str) -> tuple[list[GrowClaim], list[str]]:
    """The claims to grow, and warnings about those that would have to shrink."""
    steps, warnings = [], []
    for claim in claims:
        name = claim["metadata"]["name"]
        present = claim["spec"]["resources"]["requests"]["storage"]
        held, wanted = stored_bytes(present), stored_bytes(size)
        if held < wanted:
            steps.append(
                GrowClaim(
                    name=name,
                    size=size,
                    reason=f"it has {present}",
                    present=present,
                    storage_class=claim["spec"].get("storageClassName") or "",
                )
            )
        elif held > wanted:
            kept = show_bytes(held)
            warnings.append(f"{name} keeps its {kept}: a claim cannot shrink to {size}")
    return steps, warnings
