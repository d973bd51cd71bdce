"""What a resource may ask of its pods beyond what the operator needs of them.

Fields have Kubernetes' names and shapes. The larger ones are kept as they are given, since the
schemas of all that a pod can hold are megabytes: the API server checks them in a dry run of the
StatefulSet, before anything is applied.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any, ClassVar

from barnabas_operator.api.facts import Between, Doc, Fewest, Keyed, Longest

JsonObject = Mapping[str, Any]
JsonObjects = tuple[JsonObject, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ProbeSettings:
    """How often a probe asks, and how often it may fail; what it asks does not change."""

    initial_delay_seconds: Annotated[
        int | None, Doc("Seconds after the container's start."), Between(0, 86_400)
    ] = None
    period_seconds: Annotated[
        int | None, Doc("Seconds from one probe to the next."), Between(1, 3_600)
    ] = None
    timeout_seconds: Annotated[
        int | None, Doc("Seconds after which a probe has failed."), Between(1, 3_600)
    ] = None
    failure_threshold: Annotated[
        int | None, Doc("Failures in a row that count."), Between(1, 100_000)
    ] = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SecretReference:
    """A Secret of the namespace."""

    name: Annotated[str, Doc("Name of the Secret."), Fewest(1), Longest(253)]


@dataclass(frozen=True, slots=True, kw_only=True)
class PodTemplate:
    """What pods have beside what the operator gives them. A change replaces them one at a time."""

    # The stored resource has what was asked for, and no empty lists.
    DEFAULTS: ClassVar = False

    labels: Annotated[Mapping[str, str], Doc("Labels of the pods."), Longest(64)] = field(
        default_factory=dict
    )
    annotations: Annotated[Mapping[str, str], Doc("Annotations of the pods."), Longest(64)] = field(
        default_factory=dict
    )
    node_selector: Annotated[
        Mapping[str, str], Doc("Labels that a node must have."), Longest(64)
    ] = field(default_factory=dict)
    affinity: Annotated[
        JsonObject,
        Doc(
            "Affinity as in a pod. podAntiAffinity replaces the operator's own, which prefers other"
            " nodes than those of the other pods."
        ),
    ] = field(default_factory=dict)
    tolerations: Annotated[JsonObjects, Doc("Tolerations as in a pod."), Longest(64)] = ()
    topology_spread_constraints: Annotated[
        JsonObjects,
        Doc(
            "Constraints as in a pod; whenUnsatisfiable says whether they are hard (DoNotSchedule)"
            " or soft (ScheduleAnyway). Without a labelSelector these pods are meant."
        ),
        Longest(8),
    ] = ()
    priority_class_name: Annotated[str | None, Doc("PriorityClass of the pods."), Longest(253)] = (
        None
    )
    service_account_name: Annotated[
        str | None,
        Doc("ServiceAccount of the pods. Its token is not mounted; see volumes (projected)."),
        Longest(253),
    ] = None
    image_pull_secrets: Annotated[
        tuple[SecretReference, ...],
        Doc("Secrets with which images are pulled."),
        Keyed(("name",)),
        Longest(16),
    ] = ()
    termination_grace_period_seconds: Annotated[
        int | None,
        Doc("Seconds that a pod has to stop; a broker hands over its leaderships in that time."),
        Between(30, 86_400),
    ] = None
    env: Annotated[JsonObjects, Doc("Environment variables as in a container."), Longest(128)] = ()
    volumes: Annotated[JsonObjects, Doc("Volumes as in a pod."), Longest(32)] = ()
    volume_mounts: Annotated[
        JsonObjects, Doc("Where the broker's or the member's container has them."), Longest(32)
    ] = ()
    sidecars: Annotated[
        JsonObjects,
        Doc(
            "Containers beside the operator's. Unless they say otherwise they have no privileges:"
            " allowPrivilegeEscalation is false, and all capabilities are dropped."
        ),
        Longest(8),
    ] = ()
    startup_probe: Annotated[
        ProbeSettings | None, Doc("The startup probe of the operator's container.")
    ] = None
    liveness_probe: Annotated[
        ProbeSettings | None, Doc("The liveness probe of the operator's container.")
    ] = None
    readiness_probe: Annotated[
        ProbeSettings | None, Doc("The readiness probe of the operator's container.")
    ] = None
