"""The snapshot that a plan is made from: one read of Kubernetes, brokers and ensemble."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from barnabas_operator.plan.findings import Finding
from barnabas_operator.plan.rolling import PodView, SetView

Object = Mapping[str, Any]

COMPONENTS: Final = ("zookeeper", "broker")
LEADER: Final = "leader"


@dataclass(frozen=True, slots=True, kw_only=True)
class Images:
    """The images that pods are made of."""

    broker: str
    zookeeper: str
    pipeline: str
    # The operator's own version, and the images of broker, zookeeper and pipeline by version.
    operator: str = ""
    versions: Mapping[str, Mapping[str, str]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterView:
    """What the cluster says of itself."""

    cluster_id: str
    broker_ids: tuple[int, ...]
    # None while there is no controller.
    controller_id: int | None = None
    # Replicas by broker id, of every partition of every topic; brokers without any are absent.
    replicas: Mapping[int, int] = field(default_factory=dict)
    # The fewest replicas that a partition of each internal topic has.
    internal: Mapping[str, int] = field(default_factory=dict)
    # Brokers with a replica that is not in sync, live or not.
    out_of_sync: frozenset[int] = frozenset()
    # The brokers that have replicas of one partition, once for all partitions of the same; None
    # where that was not asked.
    replica_sets: frozenset[frozenset[int]] | None = None
    # Partitions without a leader, as topic-partition.
    leaderless: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Observed:
    """What there is of a cluster: objects by (kind, name), pods and claims by component."""

    objects: Mapping[tuple[str, str], Object]
    pods: Mapping[str, Sequence[PodView]]
    claims: Mapping[str, Sequence[Object]]
    # The rack of each node on which a broker waits for its own; empty where it has none.
    racks: Mapping[str, str] = field(default_factory=dict)
    racks_trouble: str = ""
    # The brokers' answer, or why there is none.
    brokers: ClusterView | None = None
    brokers_trouble: str = ""
    # The dynamic settings of all brokers, asked where the operator has set some, or why they are
    # not known.
    dynamic_config: Mapping[str, str] | Finding | None = None
    # The mode of each ensemble member by its pod, asked while a roll is due.
    modes: Mapping[str, str] = field(default_factory=dict)
    # How far log recovery has come, by the pod of the broker.
    recovery: Mapping[str, str] = field(default_factory=dict)
    # The hosts by which clients reach each listener, as far as they are known.
    listener_hosts: Mapping[str, frozenset[str]] = field(default_factory=dict)
    # What was found out about certificates.
    certificates: Sequence[Finding] = ()
    # Where the operator runs that observed it.
    operator_namespace: str = "default"
    # When this was observed, RFC 3339.
    now: str = ""

    def stateful_set(self, name: str) -> SetView | None:
        """The StatefulSet of this name, as far as a roll needs to know it."""
        found = self.objects.get(("StatefulSet", name))
        return SetView.of(found) if found is not None else None

    def leaders(self) -> frozenset[str]:
        """The ensemble members that lead."""
        return frozenset(name for name, mode in self.modes.items() if mode == LEADER)


def selector_of(body: Object) -> dict[str, str]:
    """The labels by which a StatefulSet or a budget selects pods; the former cannot change."""
    return dict(body["spec"]["selector"]["matchLabels"])
