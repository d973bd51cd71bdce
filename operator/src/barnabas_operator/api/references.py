"""How a resource names its cluster, and the rule of fields that may not change."""

from __future__ import annotations

from typing import Annotated, Final

from barnabas_operator.api.facts import NAME, Doc, Fewest, Longest, Rule

ClusterName = Annotated[str, Doc("Name of the KafkaCluster."), NAME, Longest(40)]
ClusterNamespace = Annotated[
    str | None,
    Doc(
        "Namespace of the KafkaCluster, if it is not that of the resource. The cluster must"
        " allow that of the resource in its spec.allowedNamespaces."
    ),
    NAME,
    Fewest(1),
    Longest(63),
]

ANOTHER: Final = "make another resource"


def unchangeable(field: str, why: str = ANOTHER) -> Rule:
    """An optional field of the spec stays as it was created, present or absent."""
    return Rule(
        f"has(self.{field}) == has(oldSelf.{field})"
        f" && (!has(self.{field}) || self.{field} == oldSelf.{field})",
        f"{field} may not change: {why}",
    )


SAME_CLUSTER: Final = Rule("self.cluster == oldSelf.cluster", f"cluster may not change: {ANOTHER}")
