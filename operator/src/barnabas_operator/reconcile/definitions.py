"""Which definition a kind has: with a definition that is deleted all resources of its kind go.

That deletes resources that no user has deleted, and a list looks the same as after one. So the uid
of the definition is recorded with what is deleted with its resource (`plan.orphans`).
"""

from __future__ import annotations

from barnabas_operator.kube import DEFINITIONS, Kind, Kube, KubeError


def definition_uid(kind: Kind, kube: Kube) -> str:
    """The uid of the definition of a kind; empty where it is gone, being deleted, or may not be
    read. Raises KubeError."""
    group, _ = kind.group_and_version
    try:
        found = kube.get(DEFINITIONS, "", f"{kind.plural}.{group}")
    except KubeError as error:
        if not error.refused:
            raise
        return ""
    if found is None or found["metadata"].get("deletionTimestamp"):
        return ""
    return str(found["metadata"]["uid"])
